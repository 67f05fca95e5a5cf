"""A race: every competitor in its own process, told in turn to run a chunk of about 30 ms.

Between two chunks a probe looks where the threads run; chunks of bad moments are dropped.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.medians import Chunk, furthest, judged, summary
from benchmarks.probe import Probe
from benchmarks.process import Child, Competitor, Failure

CHUNK = 0.03
TRACE = 16  # losses compared: twice through the batches
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Effort:
    """How long to race: until each has `good_chunks`, or `seconds` are over."""

    good_chunks: int = 25
    seconds: float = 60.0
    least: int = 3


QUICK = Effort(good_chunks=3, seconds=4.0, least=2)


@dataclass
class Entry:
    """One competitor in the race."""

    child: Child
    unit: int
    losses: list[float] = field(default_factory=list)
    steps: int = 0
    spun: float = 0.0
    remark: str = ""
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The competitor's name."""
        return self.child.competitor.name


Build = Callable[[Child], int]
Say = Callable[[str], None]


class Race:
    """Competitors, the probe between their chunks, and what came of each."""

    def __init__(self, probe: Probe, effort: Effort, say: Say) -> None:
        self._probe = probe
        self._effort = effort
        self._say = say
        self._shuffle = random.Random(1)
        self.children: dict[str, Child] = {}
        self.absent: dict[str, str] = {}

    def enter(
        self, competitors: Mapping[str, Competitor], left_out: Mapping[str, str] | None = None
    ) -> None:
        """Start the processes of all that are installed and not left out."""
        for name, competitor in competitors.items():
            reason = (left_out or {}).get(name) or competitor.missing()
            if reason:
                self.absent[name] = reason
                self._say(f"  {name}: takes no part: {reason}")
            else:
                self.children[name] = Child(competitor)

    def leave(self) -> None:
        """End the processes."""
        for child in self.children.values():
            child.close()
        self.children.clear()

    def versions(self) -> dict[str, str]:
        """Of every library that takes part."""
        numbers: dict[str, str] = {}
        for child in self.children.values():
            try:
                numbers |= child.ask("versions")
            except Failure as failure:
                numbers[child.competitor.package] = f"fails: {failure}"
        return numbers

    def run(self, build: Build, trace: int = TRACE, chunk: float = CHUNK) -> dict[str, Any]:
        """One workload: rows by competitor, those that failed with the reason."""
        rows: dict[str, Any] = {name: {"missing": why} for name, why in self.absent.items()}
        entries = []
        for child in list(self.children.values()):
            try:
                entries.append(self._ready(child, build, trace, chunk))
            except Failure as failure:
                self._out(child, failure, rows)
        self._rounds(entries, rows)
        reference = next((e.losses for e in entries if e.name == "torch eager"), None)
        for entry in entries:
            if entry.name not in rows:
                rows[entry.name] = _row(entry, reference or entries[0].losses)
        return rows

    def _ready(self, child: Child, build: Build, trace: int, chunk: float) -> Entry:
        entry = Entry(child, build(child))
        entry.losses = child.ask("losses", steps=trace) if trace else []
        entry.remark = child.ask("remark")
        for _ in range(2):  # the first finds caches cold
            took = child.ask("run", steps=entry.unit)["seconds"]
        for _ in range(3):  # few steps are timed badly: come near the wanted length in turns
            entry.steps = max(1, round(chunk / 3 / max(took, 1e-9))) * entry.unit
            took = child.ask("run", steps=entry.steps)["seconds"] * entry.unit / entry.steps
        entry.steps = max(1, round(chunk / max(took, 1e-9))) * entry.unit
        child.quiet()
        return entry

    def _out(self, child: Child, failure: Failure, rows: dict[str, Any]) -> None:
        """Without this competitor; one whose process is gone takes no part from now on."""
        name = child.competitor.name
        rows[name] = {"missing": str(failure)}
        self._say(f"  {name}: takes no part: {failure}")
        if child.ended():
            self.absent[name] = str(failure)
            self.children.pop(name).close()

    def _rounds(self, entries: list[Entry], rows: dict[str, Any]) -> None:
        began, turns = time.monotonic(), 0
        racing = list(entries)
        while racing:
            self._shuffle.shuffle(racing)
            for entry in list(racing):
                try:
                    entry.chunks.append(self._chunk(entry))
                except Failure as failure:
                    racing.remove(entry)
                    self._out(entry.child, failure, rows)
            turns += 1
            good = min((sum(not c.fault for c in judged(e.chunks)) for e in racing), default=0)
            late = time.monotonic() - began > self._effort.seconds
            if (good >= self._effort.good_chunks or late) and turns >= self._effort.least:
                return

    def _chunk(self, entry: Entry) -> Chunk:
        fault = self._probe.wait()
        ran = entry.child.ask("run", steps=entry.steps)
        entry.spun = max(entry.spun, entry.child.quiet())
        fault = fault or self._probe.look()
        return Chunk(ran["seconds"] / entry.steps, fault, ran["waited"] / ran["seconds"])


def _row(entry: Entry, reference: list[float]) -> dict[str, Any]:
    off = furthest(entry.losses, reference)
    row = {
        **summary(entry.chunks).as_json(),
        "steps_per_chunk": entry.steps,
        "spun_ms": round(entry.spun * 1e3, 3),
    }
    if entry.remark:
        row["remark"] = entry.remark
    if entry.losses:
        row |= {"last_loss": entry.losses[-1], "off_course": off, "same_course": off <= TOLERANCE}
    return row


def brief(rows: Mapping[str, Any]) -> dict[str, Any]:
    """What a result of a thousand races keeps of one: times, and what makes them doubtful."""
    keys = ("ms", "p10", "noisy", "missing")
    return {peer: {key: row[key] for key in keys if key in row} for peer, row in rows.items()}
