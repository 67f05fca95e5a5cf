"""A GPU that is measured: what it is, the launches of a piece of work, and how long they take."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import click

import gradcli
from gradcli.bench.timing import Spread, once, spread
from gradcli.engine.device.gpu import opened
from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.device.gpu.driver import Place, Ready
from gradcli.errors import GradcliError

PACKAGES = ("cuda-bindings", "nvidia-cuda-nvrtc", "pyobjc-framework-Metal", "torch")
_QUERY = "--query-gpu=name,driver_version,power.limit,clocks.max.sm"
_LONGEST = 2000  # times that work is queued before somebody waits

Run = Callable[[], object]  # queues work, and waits for it
Contender = Callable[[int], Run]  # made ready to do its work so many times


@dataclass(frozen=True)
class Effort:
    """How carefully a time is taken: `times` measurements of at least `stretch` seconds each."""

    stretch: float = 0.05
    times: int = 7


QUICK = Effort(stretch=0.0, times=2)


class NoDevice(click.ClickException):
    """The GPU that was asked for cannot be used."""

    exit_code = 4


def used(name: str) -> GPU:
    """The device; without one the command ends with what is missing."""
    try:
        gpu = opened.device(name)
    except GradcliError as error:
        raise NoDevice(error.message) from None
    assert gpu is not None, "the CPU is not measured here"
    return gpu


def description(gpu: GPU) -> dict[str, Any]:
    """What the figures hold for."""
    versions = {name: _version(name) for name in PACKAGES}
    return {
        "device": gpu.name,
        "is": gpu.driver.describe(),
        "driver": _driver() if gpu.name == "cuda" else "",
        "versions": {"gradcli": gradcli.__version__, **{n: v for n, v in versions.items() if v}},
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _driver() -> str:
    """Name, version of the driver, limit of power and highest clock, as nvidia-smi tells them."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    command = [tool, _QUERY, "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.strip().partition("\n")[0]


class _Noting:
    """A driver that notes what it launches."""

    def __init__(self, driver: Any, found: list[Ready]) -> None:
        self._driver = driver
        self._found = found

    def launch(self, ready: Ready) -> None:
        """Note it and pass it on."""
        self._found.append(ready)
        self._driver.launch(ready)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)


@contextmanager
def noted(gpu: GPU) -> Iterator[list[Ready]]:
    """The launches of what is computed inside a `with` block, for replays.

    They hold no memory: what they read and write must be kept alive, or be of no account.
    """
    found: list[Ready] = []
    driver: Any = gpu.driver
    gpu.driver = _Noting(driver, found)
    try:
        yield found
    finally:
        gpu.driver = driver


def replays(gpu: GPU, launches: Sequence[Ready]) -> Contender:
    """Launches one after another, so many times over, in one replay: no Python in between."""

    def ready(count: int) -> Run:
        recorded = gpu.driver.record(list(launches) * count)

        def run() -> None:
            recorded.replay()
            gpu.driver.synchronize()

        return run

    return ready


def copies(gpu: GPU, to: Place, source: Place, nbytes: int) -> Contender:
    """The device's own copy."""

    def ready(count: int) -> Run:
        def run() -> None:
            for _ in range(count):
                gpu.driver.copy(to, source, nbytes)
            gpu.driver.synchronize()

        return run

    return ready


def timed(contenders: Mapping[str, Contender], effort: Effort) -> dict[str, Spread]:
    """The time of each one's work, measured in turns, after a few that do not count."""
    runs = {name: _long_enough(ready, effort) for name, ready in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(effort.times):
        for name, (run, count) in runs.items():
            seconds[name].append(once(run) / count)
    return {name: spread(found) for name, found in seconds.items()}


def _long_enough(ready: Contender, effort: Effort) -> tuple[Run, int]:
    """Work that takes a stretch, and how often the piece is done in it."""
    run, count = ready(1), 1
    run()  # loads and compiles what is not there yet
    seconds = once(run)
    while seconds * 1.5 < effort.stretch and count < _LONGEST:
        count = min(_LONGEST, math.ceil(count * effort.stretch / max(seconds, 1e-6)))
        run = ready(count)
        seconds = once(run)
    return run, count
