"""The competitors, and their processes as the parent sees them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.child import waiting

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 600.0  # seconds; a first compilation takes one of them


class Failure(Exception):  # noqa: N818 -- an answer, not an error of ours
    """A competitor that cannot do what it was asked."""


@dataclass(frozen=True)
class Competitor:
    """A library, and how it is used."""

    name: str
    package: str  # what must be installed
    module: str
    mode: str

    def missing(self) -> str:
        """Why it cannot take part; empty where it can."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed"
        return ""


def _competitors(*rows: tuple[str, str, str]) -> dict[str, Competitor]:
    """By name; each row has that name, the package and the mode."""
    return {
        name: Competitor(name, package, f"benchmarks.workloads_{package}", mode)
        for name, package, mode in rows
    }


COMPETITORS = _competitors(
    ("gradcli eager", "gradcli", "eager"),
    ("gradcli captured", "gradcli", "captured"),
    ("gradcli scan", "gradcli", "scan"),
    ("torch eager", "torch", "eager"),
    ("torch compile", "torch", "compile"),
    ("jax jit", "jax", "jit"),
    ("jax scan", "jax", "scan"),
)
PRODUCTS = _competitors(
    ("gradcli eager", "gradcli", "eager"),
    ("gradcli captured", "gradcli", "captured"),
    ("gradcli c", "gradcli", "c"),
    ("torch", "torch", "mm"),
    ("numpy", "numpy", "matmul"),
)
OP_PEERS = _competitors(("gradcli", "gradcli", "eager"), ("torch", "torch", "eager"))
GROW_PEERS = _competitors(("gradcli", "gradcli", "captured"), ("torch", "torch", "eager"))
GENERATORS = {
    f"{package}, {threads}": Competitor(
        f"{package}, {threads}", package, f"benchmarks.generation_{package}", threads[0]
    )
    for package in ("gradcli", "torch")
    for threads in ("1 thread", "2 threads")
}


class Child:
    """A competitor's process: asked one thing after the other, asleep in between."""

    def __init__(
        self, competitor: Competitor, python: str = sys.executable, path: Path = ROOT
    ) -> None:
        self.competitor = competitor
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the child
        environment = {**os.environ, "PYTHONPATH": str(path)}
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = "2"
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.child", competitor.module, competitor.mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=path,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, do: str, patience: float = PATIENCE, **values: Any) -> Any:
        """Have something done; raises Failure with the reason where it is not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(patience, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError as error:
            raise Failure(f"its process is gone: {error}") from None
        finally:
            timer.cancel()
        if not line:
            raise Failure(f"its process ended in '{do}': {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer["answer"]

    def _last_words(self) -> str:
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip()
        return words[-300:] or "it said nothing, or took too long"

    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def quiet(self, limit: float = 0.5) -> float:
        """Wait until its threads no longer spin; gives the seconds of processor they used."""
        number = str(self._process.pid)
        began, deadline = waiting(number, 0), time.monotonic() + limit
        before = began
        while time.monotonic() < deadline:
            time.sleep(0.004)
            now = waiting(number, 0)
            if now - before < 2e-4:
                break
            before = now
        return before - began

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # what it was told and never read
            self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()


def two_processors() -> list[int]:
    """Confine this process, and the children it will start, to two processors."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cores)
    return cores
