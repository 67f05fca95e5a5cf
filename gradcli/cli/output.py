"""Every print of gradcli: results to stdout, messages to stderr, errors in their one form."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import traceback as tracebacks
from collections.abc import Iterable
from typing import Any

import click

from gradcli import own
from gradcli.errors import ConfigError, GradcliError, Interrupted, Place, ShapeError, Stopped

MAX_LINE = 160


def never_fail_on_characters() -> None:
    """A terminal that lacks a character shows its escape; it never ends the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")


def say(text: str = "") -> None:
    """A line of the result, on stdout."""
    print(text)


def say_part(text: str) -> None:
    """A piece of a line, on stdout at once."""
    print(text, end="", flush=True)


def say_json(value: object) -> None:
    """The one JSON object of a command with --json, on stdout."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))


def say_aside(text: str) -> None:
    """A line beside the result, on stderr; where nobody listens, nothing is lost."""
    if sys.stderr is None:  # closed by the caller; print would take stdout instead
        return
    with contextlib.suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)


def traceback(error: BaseException) -> None:
    """The whole traceback, for --debug."""
    tracebacks.print_exception(error, file=sys.stderr)


def usage_error(error: click.ClickException, command: str) -> GradcliError:
    """Click's complaint about the command line, as one of our errors."""
    notes = [f"Usage: {command} [OPTIONS] ...", f"help: {command} --help"]
    context = getattr(error, "ctx", None)
    if context is not None:
        notes = [*context.get_usage().splitlines(), f"help: {context.command_path} --help"]
    message = error.format_message()
    message = re.sub(r"is not a valid integer( range)?\.", "is not a whole number.", message)
    message = re.sub(r"is not a valid float( range)?\.", "is not a number.", message)
    possibilities = getattr(error, "possibilities", None)
    if possibilities and "Did you mean" not in message:
        message += f" Did you mean {' or '.join(sorted(possibilities))}?"
    return ConfigError(message, code="E100", notes=tuple(notes))


def bug(error: Exception) -> GradcliError:
    """An exception that nobody foresaw; what a user's own code raises is no bug of ours."""
    last = tracebacks.extract_tb(error.__traceback__)[-1:]
    where = f"{last[0].filename}:{last[0].lineno}" if last else ""
    if where and where == own_place(error):
        return ShapeError(f"own code, {where}: {type(error).__name__}: {error}")
    where = where and f" at {where}"
    return GradcliError(
        f"this is a bug in gradcli: {type(error).__name__}: {error}{where}",
        notes=("the same command with --debug shows the traceback; please report both",),
    )


def own_place(error: BaseException) -> str:
    """The last line of a user's own code on the way to an error; "" where it met none."""
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in tracebacks.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").startswith(own.MODULE)
    ]
    return places[-1] if places else ""


def errors(problems: Iterable[GradcliError], exit_code: int, as_json: bool) -> None:
    """Errors, all at once, on stderr."""
    if as_json:
        rows = [as_object(problem) for problem in problems]
        say_aside(json.dumps({"errors": rows, "exit_code": exit_code}, ensure_ascii=False))
        return
    for problem in problems:
        stopped = isinstance(problem, Stopped | Interrupted)
        say_aside(rendered(problem, "stopped" if stopped else "error"))


def warnings(problems: Iterable[GradcliError]) -> None:
    """Warnings, on stderr."""
    for problem in problems:
        say_aside(rendered(problem, "warning"))


def as_object(problem: GradcliError) -> dict[str, Any]:
    """An error as JSON has it; the same fields as the printed form."""
    place = problem.place
    return {
        "code": problem.code,
        "message": problem.message,
        "file": place.file if place else None,
        "line": place.line if place and place.line else None,
        "column": place.column if place and place.line else None,
        "caret": problem.caret or None,
        "notes": list(problem.notes),
    }


def rendered(problem: GradcliError, kind: str = "error") -> str:
    """The message, its place with the source line and a caret, and the ways out."""
    lines = [f"{kind}[{problem.code}] {problem.message}"]
    place = problem.place
    margin = " "
    if place:
        lines.append(f"  --> {place}")
        if place.text:
            margin = " " * len(str(place.line))
            lines += _source(place, problem.caret, margin)
        elif problem.caret:
            lines.append(f"  {margin} {problem.caret}")
    lines += [f"{margin} = {note}" for note in problem.notes]
    return "\n".join(_visible(line) for line in lines)


def _source(place: Place, caret: str, margin: str) -> list[str]:
    """The source line and what points at the mistake, cut to a readable width."""
    text, column = place.text, max(place.column - 1, 0)
    if len(text) > MAX_LINE:
        start = max(0, column - MAX_LINE // 2)
        text, column = text[start : start + MAX_LINE], column - start
    width = max(1, min(place.width, len(text) - column))
    # Tabs stay tabs in the line below, so that the caret stands under its character.
    indent = "".join("\t" if c == "\t" else " " for c in text[:column])
    return [
        f"{place.line} | {text}",
        f"{margin} | {indent}{'^' * width}{' ' + caret if caret else ''}",
    ]


def _visible(line: str) -> str:
    """No character of a file may move the cursor of a terminal."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)
