"""What scripts read: each --json, status.json and errors begin with a format, and are listed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from points import Ended, gradcli, only_run

from gradcli.cli.main import COMMANDS, cli
from gradcli.train.json_file import FORMAT

__all__ = ["gradcli"]

Command = Callable[..., Ended]
# A quick call of every command with --json; `train` made a run before.
CALLS: dict[str, tuple[str, ...]] = {
    "init": ("init",),
    "init penguins": ("init", "penguins"),
    "explain": ("explain", "dropout"),
    "train": ("train", "dots.yaml"),
    "resume": ("resume", "last"),
    "eval": ("eval", "last"),
    "predict": ("predict", "last", "new.txt"),
    "predict --out": ("predict", "last", "new.txt", "--out", "new.jsonl"),
    "export": ("export", "last", "weights.safetensors"),
    "compare": ("compare", "last", "dots"),
    "runs": ("runs",),
    "report": ("report", "last"),
    "runs clean": ("runs", "clean", "--keep", "1"),
    "data list": ("data", "list"),
    "data prepare": ("data", "prepare", "dots.yaml"),
    "data verify": ("data", "verify"),
    "data clean": ("data", "clean"),
    "plan": ("plan", "dots.yaml"),
    "check": ("check", "dots.yaml"),
    "bench": ("bench", "dots.yaml", "--steps", "1"),
    "gradcheck": ("gradcheck", "add"),
    "ops": ("ops", "add"),
    "doctor": ("doctor",),
}
FORMATS = {"bench": "gradcli bench 1"}
DOCUMENT = Path(__file__).parents[2] / "docs" / "runs.md"


def documented() -> dict[str, tuple[set[str], set[str]]]:
    """Of each output the keys that it has, and those that it may have."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("## For scripts")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    keys: dict[str, tuple[set[str], set[str]]] = {}
    for names, always, sometimes in rows[2:]:
        parts = re.sub(r";.*|\(.*?\)", "", always), sometimes
        first, second = (set(re.findall(r"`(\w+)`", part)) for part in parts)
        for name in re.findall(r"`([^`]+)`", names) or [names.strip()]:
            keys[name] = first, second
    return keys


def check(name: str, value: dict[str, Any]) -> None:
    format_key, *keys = value
    always, sometimes = documented()[name]
    assert (format_key, value["format"]) == ("format", FORMATS.get(name, FORMAT))
    assert always <= set(keys) <= always | sometimes


def test_every_command_with_json_is_called_here() -> None:
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    with_json = {
        name
        for name, command in commands.items()
        if command is not None
        for part in (command, *getattr(command, "commands", {}).values())
        if any("--json" in one.opts for one in part.params)
    }
    assert {name.partition(" ")[0] for name in CALLS} == with_json


@pytest.mark.parametrize("name", CALLS)
def test_its_json_begins_with_the_format_and_has_the_keys_listed(
    gradcli: Command, name: str
) -> None:
    Path("new.txt").write_text("0.1 0.2\n")
    if "last" in CALLS[name]:
        gradcli("train", "dots.yaml", "--max-steps", "6")
    ended = gradcli(*CALLS[name], "--json")
    check(name, ended.json)
    if name == "predict --out":
        lines = map(json.loads, Path("new.jsonl").read_text().splitlines())
        assert [(next(iter(line)), line["format"]) for line in lines] == [("format", FORMAT)]


@pytest.mark.parametrize("steps", ["6", "18"])
def test_the_status_begins_with_the_format_and_has_the_keys_listed(
    gradcli: Command, steps: str
) -> None:
    gradcli("train", "dots.yaml", "--max-steps", steps)
    check("status.json", json.loads((only_run() / "status.json").read_text()))


def test_the_status_of_a_run_that_failed_is_listed_too(gradcli: Command) -> None:
    gradcli("train", "dots.yaml", "-s", "optim.lr=1e38", "-s", "train.epochs=20")
    status = json.loads((only_run() / "status.json").read_text())
    assert status["status"] == "failed"
    check("status.json", status)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "doctor"])
def test_errors_begin_with_the_format(gradcli: Command, name: str) -> None:
    ended = gradcli(CALLS[name][0], "--json", "--there-is-no-such-option")
    check("errors, on stderr", json.loads(ended.err))


def test_the_schema_is_a_document_of_its_own(gradcli: Command) -> None:
    assert "format" not in gradcli("check", "--schema").json
