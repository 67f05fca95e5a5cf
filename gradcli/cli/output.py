"""Every print of gradcli: results to stdout, messages to stderr, errors in their one form."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import traceback as tracebacks
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TextIO

import click

from gradcli import own
from gradcli.cells import cells, printable, window, wrap
from gradcli.errors import (
    ConfigError,
    GradcliError,
    Interrupted,
    Location,
    ShapeError,
    Stopped,
    say_once,
)
from gradcli.registry import closest
from gradcli.train.json_file import FORMAT

COLORS = ("auto", "always", "never")
Ink = Literal["error", "warning", "good", "heading"]
INKS: dict[Ink, dict[str, Any]] = {
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "good": {"fg": "green", "bold": True},
    "heading": {"bold": True},
}
CHOICE = re.compile(rf"\0--color[=\0]({'|'.join(COLORS)})(?=\0|$)")
FIRST_WORD = re.compile(r"\s*\S+")
CARETS = re.compile(r"( +\|\s*)(\^.*)")  # a source line begins with its number
LONG_WORD = re.compile(r"(\S{500})\S{400,}(\S{100})")  # no name or path that people use
LABEL = 11  # cells for the label of a row
_color = "auto"
_only_errors = False


def only_errors() -> None:
    """From here on nothing is said but errors: another process says the rest."""
    global _only_errors
    _only_errors = True


def shows_bars() -> bool:
    """Whether a person watches, who is shown how far long work has come."""
    return not _only_errors and is_terminal(sys.stderr)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads what is written there."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def width(stream: TextIO | None) -> int | None:
    """The cells of a line where `stream` is a terminal; None elsewhere, where programs read."""
    if stream is None or not is_terminal(stream):
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a terminal only by its own word
        columns = 0
    return columns or shutil.get_terminal_size().columns


def choose_color(arguments: Sequence[str]) -> None:
    """Take --color from a command line before it is parsed: complaints of that have colour too.

    With --json nothing has.
    """
    global _color
    choices = CHOICE.findall("\0".join(["", *arguments]))
    _color = "never" if "--json" in arguments else ["auto", *choices][-1]


def has_color(stream: TextIO | None) -> bool:
    """Whether what is written there may have colour; --color decides, else what the stream is."""
    if _color != "auto" or os.environ.get("NO_COLOR"):
        return _color == "always"
    if any(
        os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")
    ):
        return True
    return os.environ.get("TERM") != "dumb" and is_terminal(stream)


def paint(text: str, ink: Ink | None, stream: TextIO | None) -> str:
    """The text with its first word in colour, where the stream has it.

    Measure and break a text before: what this adds takes no cells.
    """
    word = FIRST_WORD.match(text)
    if ink is None or word is None or not has_color(stream):
        return text
    return click.style(word[0], **INKS[ink]) + text[word.end() :]


def never_fail_on_characters() -> None:
    """A terminal that lacks a character shows its escape; it never ends the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")


def say(text: str = "", ink: Ink | None = None, indent: int = 2) -> None:
    """Print lines of the result to stdout; on a terminal, break them between words."""
    say_as_is(paint(_fit(text, width(sys.stdout), indent), ink, sys.stdout))


def say_as_is(text: str) -> None:
    """A text for a file or another program, on stdout: never broken, wherever it goes."""
    if not _only_errors:
        print(text)


def say_part(text: str) -> None:
    """A piece of a text, on stdout at once; a terminal gets escapes for what would steer it."""
    if is_terminal(sys.stdout):
        text = "\n".join(map(printable, text.split("\n")))
    if not _only_errors:
        print(text, end="", flush=True)


def say_json(value: Mapping[str, object]) -> None:
    """The one JSON object of a command with --json, on stdout."""
    report = {"format": FORMAT, **value}  # bench has a format of its own, which --against knows
    say_as_is(json.dumps(report, ensure_ascii=False, allow_nan=False, default=str))


def aside(text: str, ink: Ink | None = None, indent: int = 2) -> str:
    """Format lines for stderr; a line that begins with `warning:` stands out."""
    ink = "warning" if text.startswith("warning:") else ink
    return paint(_fit(text, width(sys.stderr), indent), ink, sys.stderr)


def say_aside(text: str, ink: Ink | None = None, indent: int = 2) -> None:
    """Lines beside the result, on stderr; a terminal gets them broken between words."""
    if not _only_errors:
        _say_aside_as_is(aside(text, ink, indent))


def say_rows_aside(rows: Iterable[tuple[str, str]]) -> None:
    """Labels and what belongs to each, on stderr, aligned."""
    for label, text in rows:
        say_aside(f"{label:<{LABEL}}{text}", "heading", LABEL)


def say_commands_aside(label: str, commands: Iterable[str]) -> None:
    """Command lines below each other behind a label, on stderr; whole, for they are copied."""
    for command in () if _only_errors else commands:
        _say_aside_as_is(f"{paint(f'{label:<{LABEL}}', 'heading', sys.stderr)}{command}")
        label = ""


def _say_aside_as_is(text: str) -> None:
    if sys.stderr is None:  # closed by the caller; print would take stdout instead
        return
    if sys.stdout is not None:  # what both go to has them in the order they were said
        with contextlib.suppress(OSError):  # it is said again when the command ends
            sys.stdout.flush()
    with contextlib.suppress(OSError):  # a full disk, a terminal that is gone: the exit code stays
        print(text, file=sys.stderr, flush=True)


def _fit(text: str, columns: int | None, indent: int = 2) -> str:
    """Prepare a text for a terminal: escape control characters and break long lines."""
    if columns is None:
        return text
    lines = map(printable, text.split("\n"))
    return "\n".join(part for line in lines for part in wrap(line, columns, indent))


def traceback(error: BaseException) -> None:
    """The whole traceback, for --debug."""
    tracebacks.print_exception(error, file=sys.stderr)


def usage_error(error: click.ClickException, command: str) -> GradcliError:
    """Click's complaint about the command line, as one of our errors."""
    notes = [f"Usage: {command} [OPTIONS] ...", f"help: {command} --help"]
    context = getattr(error, "ctx", None)
    if context is not None:
        notes = [*context.get_usage().splitlines(), f"help: {context.command_path} --help"]
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        # Without the dashes, which make any two options alike.
        names = {name.lstrip("-"): name for name in error.possibilities}
        near = closest(error.option_name.lstrip("-"), names)
        offered = [names[near]] if near else []
        error = click.NoSuchOption(error.option_name, error.message, offered, error.ctx)
    message = error.format_message()
    message = re.sub(r"is not a valid integer( range)?\.", "is not a whole number.", message)
    message = re.sub(r"is not a valid float( range)?\.", "is not a number.", message)
    possibilities = getattr(error, "possibilities", None)
    if possibilities and "Did you mean" not in message:
        message += f" Did you mean {' or '.join(sorted(possibilities))}?"
    problem = ConfigError(message, code="E100", notes=tuple(notes))
    # A value can be wrong on one host alone, such as a path; what is no option is so on all.
    of_value = isinstance(error, click.BadParameter) and not isinstance(
        error, click.MissingParameter
    )
    return problem if of_value else say_once(problem)


def bug(error: Exception) -> GradcliError:
    """An exception that nobody foresaw; what a user's own code raises is no bug of ours."""
    last = tracebacks.extract_tb(error.__traceback__)[-1:]
    where = f"{last[0].filename}:{last[0].lineno}" if last else ""
    if where and where == own_location(error):
        return ShapeError(f"own code, {where}: {type(error).__name__}: {error}")
    where = where and f" at {where}"
    return GradcliError(
        f"this is a bug in gradcli: {type(error).__name__}: {error}{where}",
        notes=("the same command with --debug shows the traceback; please report both",),
    )


def own_location(error: BaseException) -> str:
    """The last line of a user's own code on the way to an error; "" where it met none."""
    locations = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in tracebacks.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").startswith(own.MODULE)
    ]
    return locations[-1] if locations else ""


def name_own_code(error: GradcliError) -> None:
    """Note the line of a user's own code that led to an error, if one did."""
    where = own_location(error)
    error.notes += (f"called in own code, {where}",) if where else ()


def errors(problems: Iterable[GradcliError], exit_code: int, as_json: bool) -> None:
    """Errors, all at once, on stderr."""
    if as_json:
        rows = [as_object(problem) for problem in problems]
        report = {"format": FORMAT, "errors": rows, "exit_code": exit_code}
        _say_aside_as_is(json.dumps(report, ensure_ascii=False))
        return
    for problem in problems:
        if isinstance(problem, Stopped | Interrupted):
            _say_problem(problem, "stopped", "warning")
        else:
            _say_problem(problem, "error", "error")


def warnings(problems: Iterable[GradcliError]) -> None:
    """Warnings, on stderr."""
    for problem in () if _only_errors else problems:
        _say_problem(problem, "warning", "warning")


def _say_problem(problem: GradcliError, kind: str, ink: Ink) -> None:
    """Print a problem with its kind and its carets in colour."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    text = render(problem, kind, width(sys.stderr), encoding)
    first, *rest = paint(text, ink, sys.stderr).split("\n")
    _say_aside_as_is("\n".join([first, *(_with_carets(line, ink) for line in rest)]))


def _with_carets(line: str, ink: Ink) -> str:
    """The line; if carets stand in it, with them and what is said beside them in colour."""
    parts = CARETS.fullmatch(line)
    if parts is None or not has_color(sys.stderr):
        return line
    return parts[1] + click.style(parts[2], **INKS[ink])


def as_object(problem: GradcliError) -> dict[str, Any]:
    """An error as JSON has it; the same fields as the printed form."""
    location = problem.location
    return {
        "code": problem.code,
        "message": problem.message,
        "file": location.file if location else None,
        "line": location.line if location and location.line else None,
        "column": location.column if location and location.line else None,
        "caret": problem.caret or None,
        "notes": list(problem.notes),
    }


def render(
    problem: GradcliError, kind: str = "error", columns: int | None = None, encoding: str = "utf-8"
) -> str:
    """The message, the source line with a caret, and the notes.

    With `columns`, every line fits: prose is broken between words, and a long source line is cut
    around the caret.
    """

    def prose(line: str, indent: int) -> list[str]:
        return wrap(printable(LONG_WORD.sub(r"\1...\2", line), encoding), columns, indent)

    lines = prose(f"{kind}[{problem.code}] {problem.message}", 2)
    location = problem.location
    margin = " "
    if location:
        lines += prose(f"  --> {location}", 6)
        if location.text:
            margin = " " * len(str(location.line))
            lines += _source(location, printable(problem.caret, encoding), columns, encoding)
        elif problem.caret:
            lines += prose(f"  {margin} {problem.caret}", 4)
    for note in problem.notes:
        lines += prose(f"{margin} = {note}", len(margin) + 3)
    return "\n".join(lines)


def _source(location: Location, caret: str, columns: int | None, encoding: str) -> list[str]:
    """The source line, or the part of it that fits, and a caret at the mistake."""
    margin = " " * len(str(location.line))
    room = columns and max(columns - len(margin) - 3, 1)
    part = window(location.text, location.column - 1, location.width, room, encoding)
    pointer = " " * part.start + "^" * part.size
    lines = [f"{location.line} | {part.text}", f"{margin} | {pointer}"]
    if not caret:
        return lines
    beside = part.start + part.size + 1 + cells(caret)
    if room is None or beside <= room:
        return [lines[0], f"{lines[1]} {caret}"]
    # Below the caret, as far to the right as it fits.
    remark = " " * max(0, min(part.start, room - cells(caret))) + caret
    return [*lines, *(f"{margin} | {line}" for line in wrap(remark, room, 0))]
