"""Run spoilt calls in a process of their own: `python mutate.py --count 100000 --seconds 600`.

A crash, an endless loop or a request for all memory ends that process only; the call in progress is
known, and counts as a failure. `--only N` runs the one call of that number here. `--free` sets no
limit to memory, of which sanitizers take more than there is.
"""

from __future__ import annotations

import argparse
import json
import mmap
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mutations import Result, mutate, run

MEMORY = 3 << 30  # bytes of address space: what is more is refused, and not tried
PATIENCE = 20.0  # seconds for one call


@dataclass
class Report:
    """What came of the calls: how many of each outcome, and those that are not right."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.counts[result.outcome] += 1
        if result.outcome in ("vague", "silent", "raw"):
            self.wrong.append(result)


def work(first: int, end: int, until: float, notes: str) -> None:
    """Run calls, note each number before its call, and write down what came of them."""
    with Path(notes).open("r+b") as file, mmap.mmap(file.fileno(), 8) as note:
        for number in range(first, end):
            if time.monotonic() > until:
                return
            note[:] = number.to_bytes(8, "little")
            sys.stdout.write(json.dumps(asdict(run(number))) + "\n")
            sys.stdout.flush()


def mutated(
    first: int, end: int, seconds: float, program: str = __file__, *, free: bool = False
) -> Report:
    """Run the calls of these numbers in processes of a program, until the time is over."""
    limit = ["--free"] if free else []
    report, until = Report(), time.monotonic() + seconds
    with tempfile.NamedTemporaryFile() as notes:
        while first < end and time.monotonic() < until:
            notes.seek(0)
            notes.write(first.to_bytes(8, "little"))
            notes.flush()
            arguments = [str(first), str(end), str(until), notes.name]
            for result in _worker(
                [sys.executable, program, *limit, "--work", *arguments], notes.name
            ):
                report.add(result)
                first = result.number + 1
    return report


def _worker(command: list[str], notes: str) -> Iterator[Result]:
    """The results of one process; where it dies, what it was at."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while select.select([process.stdout], [], [], PATIENCE)[0]:
            line = process.stdout.readline()
            if not line.endswith(b"\n"):
                break
            yield Result(**json.loads(line))
        else:
            process.kill()
        code = process.wait()
        if code:
            number = int.from_bytes(Path(notes).read_bytes(), "little")
            said = process.stderr.read().decode(errors="replace").strip()[-300:]
            yield _death(number, code, said)


def _death(number: int, code: int, said: str) -> Result:
    target, one = mutate(number)
    how = signal.Signals(-code).name if code < 0 else f"exit {code}"
    how = f"no answer in {PATIENCE:.0f} s" if code == -signal.SIGKILL else how
    return Result(number, target.name, one.argument, repr(one.value)[:60], "raw", f"{how} {said}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--free", action="store_true", help="set no limit to memory")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        if not given.free:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        first, end, until, notes = given.work
        work(int(first), int(end), float(until), notes)
        return
    if given.only is not None:
        sys.stdout.write(f"{run(given.only)}\n")
        return
    end = given.first + given.count
    report = mutated(given.first, end, given.seconds, free=given.free)
    if given.json:
        wrong = [str(result) for result in report.wrong]
        sys.stdout.write(json.dumps({"counts": report.counts, "wrong": wrong}) + "\n")
        return
    lines = [*map(str, report.wrong), str(dict(report.counts))]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
