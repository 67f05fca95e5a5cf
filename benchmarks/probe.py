"""Where this process's two threads run at this moment, told by a little C program.

Virtual machines move their two processors about: at times both are the hyper-threads of one core,
at times another process has one of them. What is timed then says nothing of the code.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("probe.c")
FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-pthread", "-ffp-contract=fast")
BARRIERS, ROUNDS = 600, 30_000
ONE_CORE = 50.0  # nanoseconds; hyper-threads of one core meet in 30, two cores in 80 to 400
SLOW = 0.75  # of the best rate seen


@dataclass(frozen=True)
class Sight:
    """One look: nanoseconds a barrier, and the rate of multiply-adds on both threads."""

    nanoseconds: float
    gflops: float


class Probe:
    """Looks, and remembers the best rate it has seen."""

    def __init__(self, library: ctypes.CDLL | None, reason: str = "") -> None:
        self._library = library
        self.reason = reason
        self.best = 0.0
        self.sights: list[Sight] = []

    def look(self) -> str:
        """Why a time measured now does not count; empty where it does."""
        if self._library is None:
            return ""
        nanoseconds, gflops = ctypes.c_double(), ctypes.c_double()
        if self._library.probe(BARRIERS, ROUNDS, ctypes.byref(nanoseconds), ctypes.byref(gflops)):
            return ""
        sight = Sight(nanoseconds.value, gflops.value)
        self.best = max(self.best, sight.gflops)
        self.sights.append(sight)
        return fault(sight, self.best)

    def settle(self, looks: int = 40) -> float:
        """Learn the machine's best rate; gives the share of bad moments."""
        self.look()
        return sum(bool(self.look()) for _ in range(looks)) / looks

    def wait(self, looks: int = 12) -> str:
        """Look until a moment is good, or `looks` times; what the last look found."""
        now = self.look()
        for _ in range(looks - 1):
            if not now:
                break
            time.sleep(0.005)
            now = self.look()
        return now


def fault(sight: Sight, best: float) -> str:
    """`one core`, `busy` or nothing."""
    if sight.nanoseconds < ONE_CORE:
        return "one core"
    if sight.nanoseconds > 1e6 or sight.gflops < SLOW * best:
        return "busy"
    return ""


def new_probe() -> Probe:
    """The probe, compiled at first use into the folder for temporary files."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return Probe(None, "no C compiler")
    key = hashlib.sha256(SOURCE.read_bytes() + repr((compiler, FLAGS)).encode()).hexdigest()[:16]
    binary = Path(tempfile.gettempdir()) / f"gradcli-probe-{os.getuid()}-{key}.so"
    try:
        if not binary.exists():
            _compile(compiler, binary)
        return Probe(ctypes.CDLL(str(binary)))
    except (OSError, subprocess.SubprocessError) as error:
        return Probe(None, f"probe.c could not be built or loaded: {error}")


def _compile(compiler: str, binary: Path) -> None:
    """Into a name of its own first, so that nobody loads half a file."""
    fresh = binary.with_suffix(f".{os.getpid()}.so")
    for extra in (["-march=native"], []):
        command = [compiler, *FLAGS, *extra, "-o", str(fresh), str(SOURCE)]
        ending = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if ending.returncode == 0:
            fresh.replace(binary)
            return
    raise OSError(
        ending.stderr.strip().splitlines()[-1] if ending.stderr else "the compiler failed"
    )
