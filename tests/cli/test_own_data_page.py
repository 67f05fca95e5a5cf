"""docs/own-data.md, followed to the letter: each config is checked, trained and used elsewhere."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from data_files import arrays, pictures, table, text
from points import gradcli

__all__ = ["gradcli"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "own-data.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def block(section: str, language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", SECTIONS[section], re.DOTALL)
    return str(found)


DATA = {"A table": table, "Pictures": pictures, "A text": text, "Arrays": arrays}
TRAINED_ON = ("houses.csv", "shapes", "story.txt", "sensor.npz")


@pytest.mark.parametrize("section", DATA)
def test_the_page_leads_from_data_to_predictions(
    gradcli, section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    DATA[section](random.Random(4))
    commands = [shlex.split(line)[1:] for line in block(section, "sh").splitlines()]
    config = commands[0][1]
    assert f"`{config}`" in SECTIONS[section]
    Path(config).write_text(block(section, "yaml"))
    printed = [run(gradcli, command) for command in commands]
    Path("elsewhere").mkdir()
    for path in Path().iterdir():
        if path.name not in ("elsewhere", *TRAINED_ON) and path.suffix != ".yaml":
            path.rename(Path("elsewhere", path.name))
    monkeypatch.chdir("elsewhere")
    for path in Path().glob("*.csv"):
        if path.name != "new.csv":
            path.unlink()  # what --out wrote
    for command, before in zip(commands, printed, strict=True):
        if command[0] == "predict":
            assert run(gradcli, command) == before
    if section == "A table":
        python = [sys.executable, "-c", block("In Python", "python")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        lines = subprocess.check_output(python, env=environment, text=True).splitlines()
        assert [line.split()[:2] for line in lines] == [["new.csv", "0"], ["new.csv", "1"]]


def run(gradcli: Callable[..., object], command: list[str]) -> str:
    ended = gradcli(*command)
    assert (ended.code, "warning" in ended.err) == (0, False), (command, ended.err)  # type: ignore[attr-defined]
    return str(ended.out)  # type: ignore[attr-defined]
