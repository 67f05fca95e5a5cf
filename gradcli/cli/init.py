"""`gradcli init`: a first config, from a template or from a user's own data."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ConfigError, RunError
from gradcli.registry import did_you_mean
from gradcli.table import Column, lines

if TYPE_CHECKING:
    from gradcli.starter.templates import Template

ENDINGS = (".yaml", ".yml")  # of a config


@click.command("init")
@click.argument("what", required=False, shell_complete=completion.starters)
@click.option("--target", metavar="COLUMN", help="Column of the table to predict.")
@click.option(
    "--data",
    type=options.path,
    metavar="FILE.txt",
    help="Text to train a published model on.",
)
@click.option(
    "-o",
    "--out",
    type=options.path,
    metavar="FILE.yaml",
    help="Config to write.  [default: the name of WHAT, in this folder]",
)
@options.json
@options.basic
def command(
    what: str | None, target: str | None, data: Path | None, out: Path | None, as_json: bool
) -> None:
    """Write a config that is ready to train.

    WHAT is a template, a table (.csv, .parquet, .jsonl, ...), a folder with one folder of pictures
    per class, a text (.txt), or, with --data, the folder of a published language model. Without
    WHAT, list the templates.
    """
    from gradcli.starter.templates import templates

    names = templates()
    if what is None:
        options = {"--target": target, "--data": data, "--out": out}
        option = next((name for name, value in options.items() if value is not None), None)
        if option is not None:
            raise ConfigError(
                f"{option} is of a config to write: say of what, such as `gradcli init FILE.csv`"
            )
        _list(list(names.values()), as_json)
        return
    if out is not None and out.suffix not in ENDINGS:
        raise ConfigError(
            f"the name of a config ends in .yaml or .yml, got '{out}'; such as --out FILE.yaml"
        )
    try:
        files, notes = _write(what, target, data, out, names)
    except OSError as error:
        path = error.filename or out or "a file here"
        raise RunError(f"cannot write {path}: {error.strerror}", code="E703") from error
    if as_json:
        output.say_json({"written": files, "notes": notes})
        return
    output.say(f"written    {', '.join(files)}", indent=11)
    for note in notes:
        output.say_aside(note)
    output.say_commands_aside("next", [f"gradcli train {shlex.quote(files[0])}"])


def _write(
    what: str,
    target: str | None,
    data: Path | None,
    out: Path | None,
    names: dict[str, Template],
) -> tuple[list[str], list[str]]:
    """Write the files; return their names, the config's first, and notes for the user."""
    # `gpt2` is a template, and what people call its folder: with a text it is the folder.
    if what not in names or (data is not None and os.path.isdir(what)):  # noqa: PTH112
        return _from_data(what, target, data, out, list(names))
    if target is not None:
        raise ConfigError("--target names a column of a table, and this is a template")
    if data is not None:
        raise ConfigError("--data is the text for a published model, and this is a template")
    return _from_template(names[what], out)


def _list(templates: list[Template], as_json: bool) -> None:
    if as_json:
        output.say_json({"templates": {each.name: each.what for each in templates}})
        return
    columns = (Column(20, "name", gap=2), Column(1, "text"))
    rows = [(each.name, each.what) for each in templates]
    for line in lines(columns, rows, output.width(sys.stdout)):
        output.say(line)
    output.say("\n`gradcli init NAME` writes one; FILE.csv, FILE.txt or FOLDER: one for your data")


def _from_template(template: Template, out: Path | None) -> tuple[list[str], list[str]]:
    from gradcli.config import load
    from gradcli.errors import ErrorGroup
    from gradcli.starter import writing
    from gradcli.starter.templates import copy

    out = out or Path(f"{template.name}.yaml")
    files = [writing.write(template.text(), out), *writing.write_schema(out.parent)]
    try:
        load(out, room=None)
    except ErrorGroup:  # its data is elsewhere
        pairs = [(file, out.parent / beside) for file, beside in template.data()]
        files += [str(to) for file, to in pairs if copy(file, to)]
    try:
        load(out, room=None)
    except ErrorGroup as error:
        first = error.errors[0]
        cure = first.notes[-1].removeprefix("or ") if first.notes else ""
        return files, [f"warning: {first.message}{'; ' * bool(cure)}{cure}"]
    return files, []


def _from_data(
    what: str, target: str | None, text: Path | None, out: Path | None, names: list[str]
) -> tuple[list[str], list[str]]:
    from gradcli.starter import writing

    source = Path(what)
    if not what or not os.path.exists(what):  # noqa: PTH110 -- no name makes it fail
        hint = did_you_mean(what, names, "`gradcli init` lists the templates")
        raise ConfigError(f"'{what}' is no template, and no file or folder is there; {hint}")
    out = out or Path(f"{writing.run_name(source)}.yaml")
    writing.refuse_existing(out)
    draft = writing.draft(source, out.parent, target, text)
    file = writing.write(draft.text(), out)
    config = writing.load_draft(out, source)
    warnings = [f"warning: {each.message}" for each in config.warnings]
    return [file, *writing.write_schema(out.parent)], [*draft.remarks, *warnings]
