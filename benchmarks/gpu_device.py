"""A GPU that is measured: what it is, and times that are taken in turns."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import click

import gradcli
from gradcli.bench.launches import Contender, long_enough
from gradcli.bench.timing import Spread, once, spread
from gradcli.engine.device.gpu import opened
from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.device.gpu.installed import BINDINGS, COMPILERS, METAL_PACKAGE
from gradcli.errors import GradcliError

PACKAGES = (BINDINGS, *COMPILERS.values(), METAL_PACKAGE, "torch")
_QUERY = "--query-gpu=name,driver_version,power.limit,clocks.max.sm"


@dataclass(frozen=True)
class Effort:
    """How carefully a time is taken: `times` measurements of at least `stretch` seconds each."""

    stretch: float = 0.05
    times: int = 7


QUICK = Effort(stretch=0.0, times=2)


class NoDevice(click.ClickException):
    """The GPU that was asked for cannot be used."""

    exit_code = 4


def open_device(name: str) -> GPU:
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
        "driver": _driver() if gpu.driver.target == "cuda" else "",
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
    process = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return process.stdout.strip().partition("\n")[0]


def timed(contenders: Mapping[str, Contender], effort: Effort) -> dict[str, Spread]:
    """The time of each one's work, measured in turns, after a few that do not count."""
    runs = {name: long_enough(ready, effort.stretch) for name, ready in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(effort.times):
        for name, (run, count) in runs.items():
            seconds[name].append(once(run) / count)
    return {name: spread(measures) for name, measures in seconds.items()}
