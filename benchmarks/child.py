"""A competitor's own process: reads one request a line, does it, answers with one line.

`python -m benchmarks.child MODULE MODE`, started by process.py.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import course as courses
from benchmarks.runner import Runner


class Competitor:
    """The requests that a parent may make."""

    def __init__(self, module: str, mode: str) -> None:
        self._module = importlib.import_module(module)
        self._mode = mode
        self._runner: Runner | None = None

    def versions(self) -> dict[str, str]:
        """What the competitor is."""
        numbers: dict[str, str] = self._module.versions()
        return numbers

    def build(self, workload: str, file: str) -> int:
        """Make a workload ready; gives the steps of one call."""
        self._runner = None
        course = courses.read(courses.WORKLOADS[workload], Path(file))
        self._runner = self._module.build(course, self._mode)
        return self._ready.unit

    def matmul(self, m: int, k: int, n: int) -> int:
        """Make one matrix product ready."""
        self._runner = None
        self._runner = self._module.matmul(m, k, n, self._mode)
        return self._ready.unit

    def generation(self, batch: int) -> int:
        """Make the writing of so many texts ready."""
        self._runner = None
        self._runner = self._module.generation(batch, self._mode)
        return self._ready.unit

    def op(self, code: str, way: str, side: int, dtype: str) -> int:
        """Make a single call of op_cases ready."""
        self._runner = None
        self._runner = self._module.op(code, way, side, dtype)
        return self._ready.unit

    def grow(self, axis: str, size: int) -> int:
        """Make the training step of a size of grow_cases ready."""
        self._runner = None
        self._runner = self._module.grow(axis, size)
        return self._ready.unit

    def call(self, name: str) -> int:
        """Make one call of the engine ready."""
        self._runner = None
        self._runner = self._module.call(name, self._mode)
        return self._ready.unit

    def losses(self, steps: int) -> list[float]:
        """Losses of the first steps."""
        return self._ready.losses(steps)

    def run(self, steps: int) -> dict[str, float]:
        """Run steps: seconds they took, seconds the process's threads waited for a processor."""
        waited = waiting()
        began = time.perf_counter()
        self._ready.run(steps)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "waited": waiting() - waited}

    def remark(self) -> str:
        """What a reader of the figures must know."""
        return self._ready.remark()

    def peak(self) -> int:
        """Most memory the process ever held, in bytes."""
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise OSError("the system does not tell the peak of memory")

    @property
    def _ready(self) -> Runner:
        assert self._runner is not None, "a workload is built first"
        return self._runner


def waiting(process: str = "self", column: int = 1) -> float:
    """Seconds that the threads of a process were ready and had no processor; 0 where not told.

    Column 0 is the time they had one.
    """
    total = 0
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
    except OSError:
        return 0.0
    for thread in threads:
        try:
            total += int((thread / "schedstat").read_text().split()[column])
        except (OSError, IndexError, ValueError):
            continue
    return total * 1e-9


def serve(module: str, mode: str) -> None:
    """Answer until the input ends."""
    # What libraries print goes to stderr: the real output belongs to the answers.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        competitor: Competitor | None = None
        for line in sys.stdin:
            request = json.loads(line)
            try:
                competitor = competitor or Competitor(module, mode)
                act: Callable[..., Any] = getattr(competitor, request.pop("do"))
                answer = {"answer": act(**request)}
            except Exception as error:
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}"[:500]}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    serve(*sys.argv[1:])
