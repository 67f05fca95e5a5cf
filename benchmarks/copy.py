"""A copy of the tracked files whose kernels are compiled with other flags."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import ROOT


@dataclass(frozen=True)
class Copy:
    """The tree in another folder, and the environment that its processes get besides ours."""

    folder: Path
    environment: dict[str, str]

    def python(self, *arguments: str, check: bool = True) -> str:
        """What `python ARGUMENTS` prints there; raises ChildProcessError where it fails."""
        ending = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if check and ending.returncode:
            raise ChildProcessError(f"{arguments}: {ending.stdout[-2000:]}{ending.stderr[-2000:]}")
        return ending.stdout


def build(folder: Path, *flags: str) -> Copy:
    """The tracked files as they are now, and their kernels compiled with these flags."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    pack = ["tar", "--null", "--files-from=-", "--create"]
    packed = subprocess.run(pack, cwd=ROOT, input=names, capture_output=True, check=True).stdout
    subprocess.run(["tar", "--extract"], cwd=folder, input=packed, check=True)
    copy = Copy(folder, {})
    copy.python("tests/build_kernels.py", "-O1", *flags)
    return copy
