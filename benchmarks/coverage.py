"""Which lines of Python and C the tests run: `python -m benchmarks.coverage` prints JSON.

The suite runs in a copy of the tree whose kernels count their lines (gcov); coverage.py counts
Python's, in every process that a test starts. Takes twice the time of the tests alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import copy

SETTINGS = """\
[run]
source = gradcli
parallel = true
patch = subprocess, fork, _exit
data_file = {folder}/.coverage
"""
SUITE = ("-m", "not parity and not mpi", "-n", "2", "--ignore=tests/gpu")


@dataclass(frozen=True)
class Lines:
    """How many lines of code there are in a language, and how many ran."""

    lines: int
    ran: int


def measure(suite: Iterable[str] = SUITE) -> dict[str, Any]:
    """Lines that the suite runs, of both languages, and pytest's last line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = copy.build(folder, "--coverage")
        settings = folder / "coverage.ini"
        settings.write_text(SETTINGS.format(folder=folder), encoding="utf-8")
        tree = replace(tree, environment={"COVERAGE_RCFILE": str(settings)})
        tests = tree.python("-m", "coverage", "run", "-m", "pytest", *suite, check=False)
        tree.python("-m", "coverage", "combine")
        tree.python("-m", "coverage", "json", "-o", "coverage.json")
        totals = json.loads((folder / "coverage.json").read_text(encoding="utf-8"))["totals"]
        return {
            "python": asdict(Lines(totals["num_statements"], totals["covered_lines"])),
            "c": asdict(of_kernels(folder)),
            "tests": tests.strip().splitlines()[-1],
        }


def of_kernels(folder: Path) -> Lines:
    """The lines of the CPU's C: one ran where any of the builds that contain it ran it."""
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for notes in sorted(folder.rglob("*.gcno")):
        process = subprocess.run(
            ["gcov", "--json-format", "--stdout", str(notes)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        for line in process.stdout.splitlines():
            for file in json.loads(line)["files"]:
                if "gradcli/csrc/" in str(folder / file["file"]):
                    for row in file["lines"]:
                        counts[file["file"], row["line_number"]] += row["count"]
    return Lines(len(counts), sum(count > 0 for count in counts.values()))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1:] or SUITE)) + "\n")
