"""docs/tutorial.md, line by line: each command ends well and prints what the page shows."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from points import Ended, gradcli

__all__ = ["gradcli"]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
# Figures and times are of one machine.
NUMBER = r"\d[\d.]*(?:Z?-\d+[\dZ-]*)?"


def pattern(line: str) -> str:
    """The line, with any number in place of a figure."""
    return "".join(
        re.escape(part) if number % 2 == 0 else NUMBER
        for number, part in enumerate(re.split(f"({NUMBER})", line))
    )


def test_the_page_can_be_followed(gradcli: Callable[..., Ended]) -> None:
    said, ran = "", []
    for language, text in BLOCKS:
        if language == "python":
            subprocess.run([sys.executable, "-c", text], check=True)
        elif language == "sh":
            said = ""
            for line in text.splitlines():
                program, *words = shlex.split(line)
                assert program == "gradcli"
                ended = gradcli(*words)
                assert ended.code == 0, ended.err
                assert "warning" not in ended.err
                said += ended.out + ended.err
                ran.append(words[0])
        else:
            lines = said.splitlines()
            missing = [
                line
                for line in text.splitlines()
                if not any(re.fullmatch(pattern(line), each) for each in lines)
            ]
            assert not missing, said
    first, then = ["init", "explain", "check", "plan"], ["train", "eval", "report"]
    assert ran == [*first, *then, "predict", "predict"]
    assert Path("answers.csv").exists()
    [status] = Path("runs/guests").glob("*/status.json")
    assert json.loads(status.read_text())["metrics"]["test.accuracy"] >= 0.85
