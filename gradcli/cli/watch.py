"""`gradcli watch`: the page of a run in a browser, kept up to date while the run goes on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click

from gradcli.cli import completion, options, output
from gradcli.errors import OptionError

PRIORITY = 5  # below a training that may share this machine's cores


@click.command("watch")
@click.argument("run", default="last", shell_complete=completion.runs)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Listen on port N.  [default: the first free port from 8237]",
)
@options.runs
@options.basic
@click.pass_context
def command(ctx: click.Context, run: str, port: int | None, runs: Path) -> None:
    """Show the report of RUN in a browser and update it while RUN trains; Ctrl-C stops.

    RUN is a path, a run's name (the newest of that name) or `last`. `watch` only reads the run's
    files, so you can start and stop it at any time. Only this machine can open the page.
    """
    from gradcli.report.page import page
    from gradcli.report.run_files import RunFiles
    from gradcli.report.server import Server
    from gradcli.train.run_name import find

    path = RunFiles(find(runs, run).path).path

    def render(events: str) -> str:
        return page(RunFiles(path), live=events)

    try:
        server = Server(path, render, port, output.say_aside)
    except OptionError as error:
        raise click.BadParameter(error.message, ctx, param_hint="--port") from None
    with contextlib.suppress(OSError):
        os.nice(PRIORITY)
    with server, contextlib.suppress(KeyboardInterrupt):
        output.say_part(f"{path} is at {server.address} until Ctrl-C\n")
        server.serve_forever()
