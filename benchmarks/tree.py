"""A source tree of gradcli with its own environment: the present one, or another revision."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import ROOT

BUILDS = ROOT / "build" / "before"  # ignored by git; a revision is built once


@dataclass(frozen=True)
class Tree:
    """One version of gradcli.

    Attributes:
        name: what reports call it.
        folder: its sources, configs and datasets.
        python: the interpreter that imports it.
        path: where that interpreter takes `benchmarks` from; always the present package.
    """

    name: str
    folder: Path
    python: str
    path: Path

    def run(self, arguments: Sequence[str]) -> str:
        """What `python ARGUMENTS` prints, run in the tree's folder; raises ChildProcessError."""
        return _output([self.python, *arguments], self.folder)

    def measure(self, arguments: Sequence[str]) -> str:
        """The same, with the present package `benchmarks` where Python looks for modules."""
        return _output([self.python, *arguments], self.path, self.path)

    def check(self) -> None:
        """Raise ChildProcessError where another tree's gradcli would be measured."""
        file = Path(self.measure(["-c", "import gradcli; print(gradcli.__file__)"]).strip())
        if file.resolve().parents[1] != self.folder.resolve():
            raise ChildProcessError(f"{self.name}: gradcli is imported from {file.parent}")


def present() -> Tree:
    """This tree, with the environment that is running."""
    return Tree("now", ROOT, sys.executable, ROOT)


def revision(name: str) -> Tree:
    """The tree of a git revision, checked out and built beside this one.

    Raises ChildProcessError where git does not know the revision or the build fails.
    """
    commit = _output(["git", "rev-parse", "--verify", f"{name}^{{commit}}"], ROOT).strip()
    place = BUILDS / commit[:12]
    tree = Tree("before", place / "tree", str(place / "venv" / "bin" / "python"), place / "path")
    ready = place / "ready"
    if not ready.exists():
        _build(tree, place, commit)
        ready.touch()
    return tree


def _build(tree: Tree, place: Path, commit: str) -> None:
    for folder in (tree.folder, tree.path):
        folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(tree.folder)], stdin=archive.stdout, check=True)
    if archive.wait():
        raise ChildProcessError(f"git archive {commit} failed")
    link = tree.path / "benchmarks"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(__file__).resolve().parent, target_is_directory=True)
    venv.create(place / "venv", with_pip=True)
    tree.run(["-m", "pip", "install", "--quiet", "--editable", "."])


def _output(command: Sequence[str], folder: Path, path: Path | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    process = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        words = process.stderr.strip()[-500:] or f"exit code {process.returncode}"
        raise ChildProcessError(f"{' '.join(command[:4])}: {words}")
    return process.stdout
