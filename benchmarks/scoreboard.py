"""What was tried to break gradcli, and what came of it: the figures of docs/scoreboard.md.

A row is a command, run from the root of the tree, and what its output says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.process import ROOT

Outcome = dict[str, Any]
KILLED = re.compile(r"^(\d+) of (\d+) equal to", re.MULTILINE)
PASSED = re.compile(r"(\d+) passed")
FAILED = re.compile(r"(\d+) (?:failed|error)")


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard.

    Attributes:
        what: what is tried, as a reader says it.
        command: words behind `python`, such as ("-m", "pytest").
        read: the figures in the output.
        say: the figures in words.
    """

    what: str
    command: tuple[str, ...]
    read: Callable[[str], Outcome]
    say: Callable[[Outcome], str]


def last_json(output: str) -> Outcome:
    """The JSON object of the last line."""
    outcome: Outcome = json.loads(output.strip().splitlines()[-1])
    return outcome


def equal_runs(output: str) -> Outcome:
    """Of a driver that compares final weights: how many were equal, of how many."""
    match = KILLED.search(output)
    if match is None:
        raise ValueError(f"no figures in {output[-500:]!r}")
    return {"equal": int(match[1]), "tried": int(match[2])}


def tests(output: str) -> Outcome:
    """Of pytest: how many tests passed and failed."""
    passed, failed = PASSED.search(output), FAILED.search(output)
    if passed is None:
        raise ValueError(f"no figures in {output[-500:]!r}")
    return {"passed": int(passed[1]), "failed": int(failed[1]) if failed else 0}


def _tests(figures: Outcome) -> str:
    return f"{figures['passed']:,} tests passed, {figures['failed']} failed"


def _gradients(figures: Outcome) -> str:
    wrong = len(figures["failed"])
    return f"{figures['cases']:,} cases of {figures['ops']} ops, {wrong} wrong"


def _equal(figures: Outcome) -> str:
    return f"{figures['equal']} of {figures['tried']} ended in the same weights, bit for bit"


def _calls(figures: Outcome) -> str:
    counts, wrong = figures["counts"], len(figures["wrong"])
    refusals, allowed = counts.get("refused", 0), counts.get("allowed", 0)
    return (
        f"{refusals + allowed + wrong:,} calls: {refusals:,} refused in a sentence, {allowed:,} "
        f"allowed by their types, {wrong} wrong, reports of a sanitizer among them"
    )


def _parsers(figures: Outcome) -> str:
    rows = figures["parsers"]
    inputs, faults = sum(row["inputs"] for row in rows), sum(row["faults"] for row in rows)
    slowest, peak = max(row["slowest_s"] for row in rows), max(row["peak_mb"] for row in rows)
    return (
        f"{inputs:,} damaged inputs of {len(rows)} parsers, {faults} faults; the slowest took "
        f"{slowest:.1f} s, the largest {peak:,.0f} MB"
    )


def _mutants(figures: Outcome) -> str:
    return f"{figures['caught']} of {figures['mutants']} caught, {figures['equivalent']} equivalent"


def _rounding(figures: Outcome) -> str:
    name, worst = max(figures.items(), key=lambda item: float(item[1]["largest"]))
    return f"{len(figures)} ops; the worst is {name} with {worst['largest']:.1f} ulp"


def _share(figures: Mapping[str, int]) -> str:
    return f"{100 * figures['ran'] / figures['lines']:.1f} % of {figures['lines']:,} lines"


def _coverage(figures: Outcome) -> str:
    return f"C: {_share(figures['c'])}; Python: {_share(figures['python'])}"


PYTEST = ("-m", "pytest", "-n", "2")
ROWS = {
    "gradients": Row(
        "Gradients against finite differences in float64",
        ("-m", "gradcli", "gradcheck", "--json"),
        last_json,
        _gradients,
    ),
    "second-gradients": Row(
        "Double backward, the same way",
        ("-m", "gradcli", "gradcheck", "--second-order", "--json"),
        last_json,
        _gradients,
    ),
    "ops": Row(
        "Each op on each declared sample: values against plain Python, layouts, strides, threads, "
        "NaN, wrong inputs",
        (*PYTEST, "tests/test_ops.py"),
        tests,
        _tests,
    ),
    "parity": Row(
        "Results against PyTorch and scikit-learn ([parity.md](parity.md))",
        (*PYTEST, "-m", "parity", "--ignore=tests/gpu"),
        tests,
        _tests,
    ),
    "rounding": Row(
        "Float32 results of each op against float64",
        ("-m", "benchmarks.rounding"),
        last_json,
        _rounding,
    ),
    "kills": Row(
        "Trainings killed with -9 at a random moment, then resumed",
        (
            *("tests/kill_driver.py", "--config", "configs/mnist.yaml", "--runs", "30"),
            *("-s", "train.epochs=1"),
        ),
        equal_runs,
        _equal,
    ),
    "faults": Row(
        "Trainings in which a call to the file system fails (EIO, ENOSPC, EACCES), then resumed",
        ("tests/fault_driver.py", "--config", "configs/penguins.yaml", "--faults", "60"),
        equal_runs,
        _equal,
    ),
    "parsers": Row(
        "Damaged files and configs",
        ("tests/fuzz/fuzz.py", "--seconds", "300", "--json"),
        lambda output: {"parsers": [json.loads(line) for line in output.strip().splitlines()]},
        _parsers,
    ),
    "calls": Row(
        "Wrong arguments to everything in the engine, under the address and undefined behaviour "
        "sanitizers",
        ("-m", "benchmarks.sanitized", "--count", "100000"),
        last_json,
        _calls,
    ),
    "mutants": Row(
        "Faults planted in the CPU kernels, each of which a test must catch",
        ("tests/mutation/kernel_mutants.py", "--count", "50", "--json"),
        last_json,
        _mutants,
    ),
    "coverage": Row(
        "Line coverage of the tests, without GPUs and parity",
        ("-m", "benchmarks.coverage"),
        last_json,
        _coverage,
    ),
}


def measure(name: str, say: Callable[[str], None]) -> Outcome:
    """Run the row of this name: its figures, and when and of what they are."""
    row, began = ROWS[name], time.monotonic()
    changed = "+" if _git("status", "--porcelain", "--", "gradcli", "tests", "configs") else ""
    ending = subprocess.run(
        [sys.executable, *row.command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    try:
        figures = row.read(ending.stdout)
    except (ValueError, LookupError) as error:
        raise ChildProcessError(
            f"{name}: {command_of(row)} gave no figures ({error}), exit {ending.returncode}: "
            f"{ending.stderr[-2000:]}"
        ) from None
    say(f"{name}: {row.say(figures)}")
    return {
        "figures": figures,
        "commit": _git("rev-parse", "--short", "HEAD") + changed,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "seconds": round(time.monotonic() - began),
    }


def _git(*arguments: str) -> str:
    ending = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ending.stdout.strip()


def command_of(row: Row) -> str:
    """The command as a reader types it."""
    return " ".join(["python", *(f'"{word}"' if " " in word else word for word in row.command)])
