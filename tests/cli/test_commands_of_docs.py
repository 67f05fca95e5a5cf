"""Every `gradcli` command in README and docs/ has the commands, options and arguments of today.

Those of the tutorial and of the pages on data are run as well, by tests of their own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gradcli.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"^(?:\$ )?(?:\S*/bin/|mpirun -n \d+ )*gradcli (?=[a-z-])(.*)")


def commands(page: Path) -> Iterator[tuple[str, bool]]:
    """The arguments of each command, and whether it stands in a block, with values to type."""
    text = page.read_text(encoding="utf-8")
    blocks = [block for kind, block in BLOCK.findall(text) if kind in ("", "sh", "console")]
    joined = "".join(blocks).replace("\\\n", " ")
    # Two spaces stand in what a command prints.
    lines = [
        (line, True) for line in joined.splitlines() if "  " not in line.partition("#")[0].strip()
    ]
    lines += [(code, False) for code in INLINE.findall(BLOCK.sub("", text))]
    for line, literal in lines:
        match = COMMAND.match(line.strip())
        if match and "..." not in line:
            yield re.split(r" [|>#;]|&&", match[1])[0], literal


def words(command: str) -> list[str]:
    """The arguments; optional parts in brackets are written, of choices the first."""
    plain = re.sub(r"\[(-[^]]*)\]", r"\1", command)
    return [re.sub(r"^([a-z0-9-]+)\|.*", r"\1", word) for word in shlex.split(plain)]


def problem(arguments: list[str], literal: bool) -> str | None:
    """What the parser of the command says; nothing is run."""
    group: click.Command = cli
    context = click.Context(cli)
    try:
        while isinstance(group, click.Group) and arguments and not arguments[0].startswith("-"):
            name, command, arguments = group.resolve_command(context, arguments)
            assert command is not None
            group, context = command, click.Context(command, info_name=name, parent=context)
        parser = group.make_parser(context)
        parser.parse_args(args=list(arguments))
    except click.BadOptionUsage:
        return "an option lacks its value" if literal else None
    except click.UsageError as error:
        return error.message
    if literal and not isinstance(group, click.Group):
        return complete(group, arguments)
    return None


def complete(command: click.Command, arguments: list[str]) -> str | None:
    """What is wrong with the values, too; a file need not be there."""
    try:
        command.make_context(command.name, list(arguments))
    except click.UsageError as error:
        return error.message
    except click.exceptions.Exit:  # --help and --version print and end
        return None
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_one_of_today(page: Path) -> None:
    wrong = [
        f"gradcli {command}: {text}"
        for command, literal in commands(page)
        if (text := problem(words(command), literal)) is not None
    ]
    assert wrong == []


def test_commands_that_are_not_there_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Type `gradcli trian CONFIG` or `gradcli train --epoch 3 CONFIG`.\n"
        "```sh\n.venv/bin/gradcli eval last more --json\ngradcli train a.yaml --threads x\n```\n"
    )
    texts = [problem(words(command), literal) for command, literal in commands(page)]
    assert len(texts) == 4
    assert None not in texts
