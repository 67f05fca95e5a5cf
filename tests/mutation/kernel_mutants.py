"""How many mutants of the CPU's kernels the tests notice: `kernel_mutants.py --count 50 --seed 1`.

A mutant is caught when a test fails, crashes or hangs. The places are spread evenly over all lines
with code. `--only FILE:LINE` tries those of one line, `--list` only says which would be tried.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mutant_build
from c_mutants import Mutant, mutants_of
from mutant_build import ROOT, SANITIZERS, Bench, NoValidCError
from mutant_rules import EQUIVALENT, rule_of
from mutant_trials import Stages, Tree, catch, far, near

DRAWS = 60  # tries to find a mutant that is one in a part of the lines


@dataclass
class Place:
    """A line with mutants, by operator."""

    file: str
    line: int
    mutants: dict[str, list[Mutant]]


@dataclass
class Report:
    """What came of the mutants, and how many were left out, by reason."""

    seed: int
    catches: list[str] = field(default_factory=list)
    survivors: list[str] = field(default_factory=list)
    equivalent: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    earlier: int = 0  # caught in the run that this one goes on from
    lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        """A line on the screen, whole."""
        with self.lock:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def go_on(self, counts: dict[str, Any]) -> None:
        """Count what an earlier run has caught and left out too."""
        self.seed, self.earlier, self.equivalent = (
            counts[name] for name in ("seed", "caught", "equivalent")
        )
        self.left_out.update(counts["left_out"])

    def counts(self) -> dict[str, object]:
        """What docs/scoreboard.md needs."""
        return {
            "seed": self.seed,
            "mutants": self.earlier + len(self.catches) + len(self.survivors),
            "caught": self.earlier + len(self.catches),
            "equivalent": self.equivalent,
            "left_out": dict(self.left_out),
            "survivors": sorted(self.survivors),
        }


def texts() -> dict[str, str]:
    """All files of C and their texts."""
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in mutant_build.files()}


def places(sources: dict[str, str]) -> list[Place]:
    """All lines with mutants, file after file."""
    listed: dict[tuple[str, int], Place] = {}
    for file, text in sources.items():
        for mutant in mutants_of(file, text):
            line = mutant.line(text)
            place = listed.setdefault((file, line), Place(file, line, {}))
            place.mutants.setdefault(mutant.operator, []).append(mutant)
    return list(listed.values())


def draws(every: list[Place], part: int, count: int, seed: int) -> Iterator[Mutant]:
    """Mutants by chance from one of `count` equal parts of the lines, never one twice."""
    chance = random.Random(f"{seed} {part}")
    own = every[len(every) * part // count : len(every) * (part + 1) // count]
    seen: set[Mutant] = set()
    for _ in range(DRAWS):
        place = chance.choice(own)
        mutant = chance.choice(place.mutants[chance.choice(sorted(place.mutants))])
        if mutant not in seen:
            seen.add(mutant)
            yield mutant


def admits(mutant: Mutant, text: str, report: Report) -> bool:
    """Whether neither a rule nor the list of equivalent ones leaves it out; counts them."""
    if rule := rule_of(mutant, text):
        report.left_out[rule] += 1
    elif mutant.key(text) in EQUIVALENT:
        report.equivalent += 1
    else:
        return True
    return False


@dataclass
class Trials:
    """Where mutants are built and tried: a bench and a tree for each that runs at a time."""

    work: Path
    objects: Path
    report: Report
    sources: dict[str, str]
    isa: str
    failing: list[str] = field(default_factory=list)  # tests that fail without a mutant too
    free: queue.Queue[tuple[Bench, Tree]] = field(default_factory=queue.Queue)
    optimised: list[Bench] = field(default_factory=list)
    sanitized: list[Bench] = field(default_factory=list)

    def prepare(self, at_once: int) -> None:
        """Make the copies."""
        self.optimised.append(self._bench("optimised", "-O1"))
        self.sanitized.append(self._bench("sanitized", *SANITIZERS))
        for number in range(at_once):
            bench = self._bench(f"bench{number}", "-O0")
            bench.plain()
            self.free.put((bench, Tree(self.work / f"tree{number}")))

    def _bench(self, name: str, *flags: str) -> Bench:
        return Bench(self.work / name, self.objects, self.isa, flags)

    def draw(self, drawing: Iterator[Mutant]) -> Mutant | None:
        """The first of these that is a mutant, unless the tests of its file notice it."""
        bench, tree = self.free.get()
        try:
            for mutant in drawing:
                text = self.sources[mutant.file]
                if not admits(mutant, text, self.report) or not self._builds(bench, tree, mutant):
                    continue
                if how := self._catch(bench, tree, mutant, near):
                    self._enter(mutant, how)
                    return None
                if self._is_other_code(mutant):
                    self.report.say(f"not noticed at first: {mutant.key(text)}")
                    return mutant
            return None
        finally:
            self.free.put((bench, tree))

    def _is_other_code(self, mutant: Mutant) -> bool:
        """False where an optimising compiler proves that the mutant does the same."""
        changed = mutant.applied(self.sources[mutant.file])
        with self.report.lock:
            other = not self.optimised or self.optimised[0].changes(mutant.file, changed)
        if not other:
            self.report.left_out["the same machine code"] += 1
        return other

    def ask_all(self, mutant: Mutant) -> None:
        """Ask the sanitizers, and then the other tests."""
        bench, tree = self.free.get()
        try:
            how = self._by_sanitizer(tree, mutant)
            if not how:
                self._builds(bench, tree, mutant)
                how = self._catch(bench, tree, mutant, far)
            self._enter(mutant, how)
        finally:
            self.free.put((bench, tree))

    def survive(self, mutant: Mutant) -> None:
        """Ask nothing more."""
        self._enter(mutant, "")

    def _builds(self, bench: Bench, tree: Tree, mutant: Mutant) -> bool:
        text = self.sources[mutant.file]
        try:
            if bench.build(mutant.file, mutant.applied(text), tree.kernels):
                return True
            self.report.left_out["not compiled for this processor"] += 1
        except NoValidCError:
            self.report.left_out["no valid C"] += 1
        return False

    def _catch(self, bench: Bench, tree: Tree, mutant: Mutant, stages: Stages) -> str:
        """What notices it that is content without it."""
        text = self.sources[mutant.file]
        asked = stages(mutant.file, mutant.whole_line(text))
        while how := catch(tree, asked, self.failing):
            test = how.partition(": ")[2]
            if "::" not in test or test in self.failing:
                return how
            bench.build(mutant.file, text, tree.kernels)
            if not tree.failures([test]):
                return how
            self.report.say(f"fails without a mutant too: {test}")
            self.failing.append(test)
            bench.build(mutant.file, mutant.applied(text), tree.kernels)
        return ""

    def _enter(self, mutant: Mutant, how: str) -> None:
        text = self.sources[mutant.file]
        key, report = mutant.key(text), self.report
        (report.catches if how else report.survivors).append(key)
        report.say(f"{mutant.line(text)} of {key}\n    {how or 'SURVIVES'}")

    def _by_sanitizer(self, tree: Tree, mutant: Mutant) -> str:
        """What CI's lane `sanitize` says, asked of the file's own tests and of hostile calls."""
        text = self.sources[mutant.file]
        if not self.sanitized:
            return ""
        asan = subprocess.run(
            ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        )

        def failures(content: str, arguments: Sequence[str]) -> list[str]:
            with self.report.lock:
                self.sanitized[0].build(mutant.file, content, tree.kernels)
            return tree.failures(
                arguments,
                memory=0,
                LD_PRELOAD=asan.stdout.strip(),
                ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
                PYTHONMALLOC="malloc",
            )

        for arguments in near(mutant.file, mutant.whole_line(text)).values():
            without = [f"--deselect={name}" for name in self.failing]
            for test in failures(mutant.applied(text), [*arguments, "-x", *without]):
                if "::" not in test or not failures(text, [test]):
                    return f"the sanitizers: {test}"
        return ""


def isa_here() -> str:
    """The instruction set that the library picks on this machine."""
    code = "from gradcli.engine.device import cpu; print(cpu.isa())"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def drawings(sources: dict[str, str], options: argparse.Namespace) -> list[Iterator[Mutant]]:
    """What is drawn from each part of the lines, or the mutants of the line that is named."""
    every = places(sources)
    if options.again:
        keys = json.loads(options.again.read_text(encoding="utf-8"))["survivors"]
        listed = (m for place in every for some in place.mutants.values() for m in some)
        return [iter([m]) for m in listed if m.key(sources[m.file]) in keys]
    if options.only:
        file, _, line = options.only.rpartition(":")
        near = [p for p in every if p.file.endswith(file) and p.line == int(line)]
        return [iter([m]) for p in near for listed in p.mutants.values() for m in listed]
    return [draws(every, part, options.count, options.seed) for part in range(options.count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="all mutants of one line, as FILE:LINE")
    parser.add_argument("--again", type=Path, help="the survivors of a run that wrote this --json")
    parser.add_argument("--list", action="store_true", help="say what is drawn, and try nothing")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--near", action="store_true", help="ask the tests of its file only")
    parser.add_argument("--objects", type=Path, help="a folder where objects are kept for later")
    parser.add_argument("--json", type=Path, nargs="?", help="write the last line to this file too")
    options = parser.parse_args()
    sources, report = texts(), Report(options.seed)
    parts = drawings(sources, options)
    if options.again:
        report.go_on(json.loads(options.again.read_text(encoding="utf-8")))
    if options.list:
        for draw in parts:
            mutant = next(one for one in draw if admits(one, sources[one.file], report))
            report.say(mutant.key(sources[mutant.file]))
        return
    with tempfile.TemporaryDirectory(prefix="gradcli-mutants-") as work:
        objects = options.objects or Path(work) / "objects"
        trials = Trials(Path(work), objects, report, sources, isa_here())
        trials.prepare(options.at_once)
        with ThreadPoolExecutor(options.at_once) as pool:
            left = [mutant for mutant in pool.map(trials.draw, parts) if mutant]
            report.say(f"{len(left)} are not noticed by the tests of their files")
            list(pool.map(trials.survive if options.near else trials.ask_all, left))
    counts = json.dumps(report.counts())
    report.say(counts)
    if options.json:
        options.json.write_text(counts + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
