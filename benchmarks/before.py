"""This tree beside a revision of its past: the same bits, and no step or call slower."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import course, workloads_calls
from benchmarks.medians import median_interval
from benchmarks.process import Child, Competitor, Failure
from benchmarks.race import Say
from benchmarks.shipped import files
from benchmarks.tree import Tree

PAIRS, QUICK_PAIRS = 20, 2
STEPS, LONG_STEPS, QUICK_STEPS = 200, 10, 2  # of each training; those of configs/long take longer
CHUNK = 0.03  # seconds
CHUNKS = 4  # of each tree, in turns; the fastest counts: what disturbs only ever adds
EAGER, CAPTURED = (
    Competitor(m, "gradcli", "benchmarks.workloads_gradcli", m) for m in ("eager", "captured")
)
CALLS = Competitor("calls", "gradcli", "benchmarks.workloads_calls", "eager")


@dataclass(frozen=True)
class Item:
    """One thing to time: what a child process is asked, and by what name reports call it."""

    name: str
    competitor: Competitor
    build: Mapping[str, Any]


def items(folder: Path) -> list[Item]:
    """Steps of W1 to W8, eager and captured, and single calls; writes the batches to `folder`."""
    steps = []
    for name, workload in course.WORKLOADS.items():
        file = folder / name
        course.write(workload, file)
        build = {"do": "build", "workload": name, "file": str(file)}
        steps += [Item(f"{name} {c.name}", c, build) for c in (EAGER, CAPTURED)]
    return steps + [Item(n, CALLS, {"do": "call", "name": n}) for n in workloads_calls.CALLS]


def compare(old: Tree, new: Tree, quick: bool, pairs: int, say: Say) -> dict[str, Any]:
    """Weights after training each config in both trees, and times in interleaved pairs."""
    for tree in (old, new):
        tree.check()
    return {
        "revision": old.folder.parent.name,
        "bits": weights(old, new, quick, say),
        "times": times(old, new, QUICK_PAIRS if quick else pairs, say),
    }


# -- bits ------------------------------------------------------------------------------------------


def weights(old: Tree, new: Tree, quick: bool, say: Say) -> dict[str, Any]:
    """A row for each config of the present tree: the weights' hashes, and whether they agree."""
    rows: dict[str, Any] = {}
    short = files(long=False)
    for name, path in files(long=not quick).items():
        steps = QUICK_STEPS if quick else STEPS if name in short else LONG_STEPS
        config = path.relative_to(new.folder)
        if not (old.folder / config).exists():
            rows[name] = {"missing": "not in the revision"}
        else:
            hashes = {tree.name: trained(tree, config, steps) for tree in (old, new)}
            rows[name] = {"steps": steps, **hashes, "same": hashes["before"] == hashes["now"]}
        say(f"  {name}: {_weights_line(rows[name])}")
    return rows


def trained(tree: Tree, config: Path, steps: int) -> str:
    """The hash of the weights after so many steps of a config of the tree's own."""
    with tempfile.TemporaryDirectory() as runs:
        limits = ("--max-steps", str(steps), "--threads", "2", "--runs", runs, "--json")
        result = json.loads(tree.run(["-m", "gradcli", "train", str(config), *limits]))
    return str(result["weights_sha256"])


def _weights_line(row: Mapping[str, Any]) -> str:
    if "missing" in row:
        return str(row["missing"])
    return f"{row['steps']} steps, {'the same bits' if row['same'] else 'OTHER BITS'}"


# -- times -----------------------------------------------------------------------------------------


def times(old: Tree, new: Tree, pairs: int, say: Say) -> dict[str, Any]:
    """For each item, the ratio now / before of `pairs` pairs of fresh processes.

    Fresh, because where a process's memory happens to lie can cost a step some percent.
    """
    ratios: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        todo = items(Path(folder))
        for pair in range(pairs):
            trees = (old, new) if pair % 2 else (new, old)
            for competitor in (EAGER, CAPTURED, CALLS):
                batch = [i for i in todo if i.competitor is competitor and i.name not in failures]
                measured, failed = _pair(trees, competitor, batch)
                failures |= failed
                for name, ratio in measured.items():
                    ratios.setdefault(name, []).append(ratio)
            say(f"  pair {pair + 1} of {pairs}")
    rows = {i.name: _row(ratios.get(i.name, []), failures.get(i.name)) for i in todo}
    for name, row in rows.items():
        say(f"  {name:<28} {_time_line(row)}")
    return rows


def _pair(
    trees: Iterable[Tree], competitor: Competitor, batch: Iterable[Item]
) -> tuple[dict[str, float], dict[str, str]]:
    """By item the ratio now / before in one pair of processes, or why there is none."""
    ratios: dict[str, float] = {}
    failures: dict[str, str] = {}
    with ExitStack() as stack:
        children = {t.name: stack.enter_context(Child(competitor, t.python, t.path)) for t in trees}
        for item in batch:
            try:
                ratios[item.name] = _ratio(children, item)
            except Failure as failure:
                failures[item.name] = str(failure)
    return ratios, failures


def _ratio(children: Mapping[str, Child], item: Item) -> float:
    """The fastest chunk of the present tree over the fastest of the old one."""
    runs = {name: _Run(child, item) for name, child in children.items()}
    for turn in range(CHUNKS):
        for name in runs if turn % 2 else reversed(runs):
            runs[name].measure()
    return runs["now"].best / runs["before"].best


class _Run:
    """One item in one process, and its fastest chunk in seconds a step."""

    def __init__(self, child: Child, item: Item) -> None:
        self._child = child
        unit = child.ask(**item.build)
        child.ask("run", steps=2 * unit)  # a captured step is recorded in its first two calls
        self._steps = 2 * unit
        while (seconds := child.ask("run", steps=self._steps)["seconds"]) < CHUNK / 2:
            self._steps = int(self._steps * min(16.0, max(2.0, CHUNK / max(seconds, 1e-6))))
        self.best = float("inf")
        child.quiet()

    def measure(self) -> None:
        """Run one chunk."""
        seconds = self._child.ask("run", steps=self._steps)["seconds"]
        self.best = min(self.best, seconds / self._steps)
        self._child.quiet()


def _row(ratios: list[float], failure: str | None) -> dict[str, Any]:
    if failure is not None:
        return {"missing": failure}
    low, high = median_interval(ratios)
    median = statistics.median(ratios)
    return {"ratio": median, "low": low, "high": high, "pairs": len(ratios)}


def _time_line(row: Mapping[str, Any]) -> str:
    if "missing" in row:
        return f"not measured: {row['missing']}"
    return f"{row['ratio']:.3f} of before (95 %: {row['low']:.3f} to {row['high']:.3f})"
