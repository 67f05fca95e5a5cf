"""The frame of the command line: the table of commands, and the one place where errors end.

Imports click and nothing heavy, so that `gradcli --help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from gradcli import __version__, watching
from gradcli.cli import completion, launchers, options, output
from gradcli.errors import ConfigError, DeviceError, GradcliError, RunError, members
from gradcli.free_memory import is_refusal, used_up
from gradcli.registry import did_you_mean
from gradcli.train.launcher import is_first

COMMANDS = {
    "init": "Write a config from a template or for your own data.",
    "train": "Train a model from a config.",
    "resume": "Continue a run exactly where it stopped.",
    "eval": "Evaluate a run on a split of its data.",
    "predict": "Predict for new files, or continue a text.",
    "export": "Export the weights of a run for other programs.",
    "compare": "Compare runs and explain why their results differ.",
    "runs": "List all runs; `runs clean` removes old ones.",
    "data": "List, prepare, verify and remove cached data.",
    "report": "Write an HTML report on a run.",
    "watch": "Show the report of a run in a browser while it trains.",
    "plan": "Estimate memory, work and time before training.",
    "check": "Check configs for mistakes without training.",
    "explain": "Explain a key, a name or an error code.",
    "bench": "Benchmark kernels and training steps.",
    "gradcheck": "Check the gradient of each op in float64.",
    "ops": "List all ops.",
    "doctor": "Show compiler, instruction set, devices and versions.",
}

# What these ask for every process would print; of a launcher's the first one does.
HELP = {"-h", "--help", "--version"}
INTERRUPTED = 130
# What a shell reports for a program that a closed pipe ended.
BROKEN_PIPE = 141
# What the machine refuses, and no mistake of ours: full, over quota, read-only, forbidden.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


class CommandTable(click.Group):
    """Commands by name; a command's file is imported when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The click command called `cmd_name`."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"gradcli.cli.{cmd_name}").command
        if ctx.resilient_parsing:  # a shell completes a line: nothing is tried out
            for parameter in command.params:
                parameter.callback = None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name, or a usage error with the nearest name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS, f"commands: {', '.join(COMMANDS)}")
            raise click.UsageError(f"there is no command '{args[0]}'; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The table and the options, without importing any command."""
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=COMMANDS[name]) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 ok, 1 a bug in gradcli, 2 usage or config, 3 data, 4 device or memory, "
    "5 numbers, 6 a missed expectation, 7 checkpoint or run, 75 stopped with a checkpoint, "
    "130 interrupted.",
)
@options.color
@click.version_option(__version__, prog_name="gradcli", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Train neural networks from YAML files, with a small deep-learning engine of its own."""
    if not ctx.obj:  # it asks for help
        launchers.begin(ctx.invoked_subcommand)


def run(args: Sequence[str]) -> int:
    """Run one command line; every outcome becomes an exit code here."""
    if completion.VARIABLE in os.environ:
        return completion.answer(cli)
    output.never_fail_on_characters()
    arguments = list(args)
    output.choose_color(arguments)
    watching.watcher, watching.teller = _watch, output.say_aside
    try:
        if HELP.intersection(arguments) and not is_first():
            return 0
        if not arguments:
            if launchers.may_speak(on_all_ranks=True):
                output.say_aside(cli.get_help(click.Context(cli, info_name="gradcli")))
            return 2
        return _invoked(arguments)
    except BrokenPipeError:
        _drop_output()
        return launchers.leave(BROKEN_PIPE)
    except (KeyboardInterrupt, click.Abort):
        output.say_aside("interrupted")
        return launchers.leave(INTERRUPTED)
    except Exception as error:  # the last door: nothing may leave as a raw traceback
        return _handle(error, arguments)


def _invoked(arguments: list[str]) -> int:
    """Run the command; what it printed is written out when this returns."""
    code = 0
    try:
        # Not cli.main(): click would end a closed pipe and Ctrl-C in ways of its own.
        with cli.make_context("gradcli", arguments, obj=HELP.intersection(arguments)) as context:
            cli.invoke(context)
    except click.exceptions.Exit as done:
        code = done.exit_code
    if sys.stdout:  # None where the caller closed it
        sys.stdout.flush()
    return code


def _watch(what: str, progress: int, total: int | None, unit: str) -> None:
    """Show the progress of long work on data."""
    from gradcli.cli import data_bar

    data_bar.watch(what, progress, total, unit)


def _drop_output() -> None:
    """Python flushes stdout again on leaving; give it somewhere to write to."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _handle(error: Exception, arguments: list[str]) -> int:
    problem: GradcliError
    if "--debug" in arguments:
        output.traceback(error)
    if isinstance(error, click.ClickException):
        command = " ".join(["gradcli", *(name for name in arguments[:1] if name in COMMANDS)])
        problem = output.usage_error(error, command)
    elif isinstance(error, GradcliError):
        problem = error
        output.name_own_code(error)
    elif is_refusal(error):
        problem = DeviceError(used_up(), code="E402")
    elif isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        problem = ConfigError(f"no file can be called {_begin(error.filename)}: it is too long")
    elif isinstance(error, OSError) and error.errno in UNWRITABLE:
        where = f" {error.filename}" if error.filename else ""
        problem = RunError(f"cannot write{where}: {error.strerror}", code="E703")
        if not error.filename:  # it was stdout
            _drop_output()
    else:
        problem = output.bug(error)
    return _report(problem, "--json" in arguments)


def _report(problem: GradcliError, as_json: bool) -> int:
    """The exit code of a problem; one that not all ranks have ends the others."""
    errors = members(problem)
    if launchers.may_speak(problem.on_all_ranks):
        if not problem.on_all_ranks:
            launchers.name_rank(errors[0])
        output.errors(errors, problem.exit_code, as_json)
    return problem.exit_code if problem.on_all_ranks else launchers.leave(problem.exit_code)


def _begin(name: object) -> str:
    """The first letters of a name, for a sentence."""
    return f"{str(name)[:40]!a}..."


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
