"""The command line in a real terminal of some width, for tests of what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gradcli as package
from gradcli.cells import cells


@dataclass(frozen=True)
class Screen:
    """What a terminal received, as lines without colours."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        """Each line; of a bar that was drawn anew, the last drawing."""
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.text)
        return [line.rstrip("\r").split("\r")[-1] for line in plain.split("\n")]

    def widest(self) -> int:
        """The cells of the widest line."""
        return max(map(cells, self.lines))


def in_terminal(columns: int, arguments: Sequence[str], folder: Path, **environ: str) -> Screen:
    """Run gradcli in `folder` with stdout and stderr on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "gradcli", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(package.__file__).parents[1]),
            "PYTHONIOENCODING": "utf-8",
            "TERM": "xterm",
            **environ,
        },
    )
    os.close(theirs)
    received = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        received += piece
    os.close(ours)
    return Screen(process.wait(timeout=60), received.decode())
