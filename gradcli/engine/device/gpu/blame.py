"""Blame: the errors that all drivers have, and which kernel each may come from."""

from __future__ import annotations

from collections.abc import Iterable

from gradcli.engine.device.gpu.driver import Ready
from gradcli.errors import DeviceError
from gradcli.wording import quantity

_MOST_NAMES = 6  # of kernels in one error


def no_memory(nbytes: int, product: str, free: int) -> DeviceError:
    """A block does not fit into the memory that is free."""
    return DeviceError(
        f"no memory for {quantity(nbytes, 'byte', form=',')} on {product}; free: "
        f"{quantity(free, 'byte', form=',')}"
    )


def no_launch(ready: Ready) -> str:
    """The beginning of why a launch is refused."""
    grid = " x ".join(str(size) for size in ready.grid)
    blocks, threads = quantity(grid, "block"), quantity(ready.threads, "thread")
    return f"kernel '{ready.kernel}' cannot be launched on {blocks} of {threads}"


def no_module(driver: str, key: str, log: str, reason: str) -> DeviceError:
    """The compiler's first error and the line of the source; `reason` where it says nothing."""
    lines = [line.strip() for line in log.splitlines() if line.strip()] or [reason]
    first = next((i for i, line in enumerate(lines) if "error" in line), 0)
    beside = tuple(lines[first + 1 : first + 2])
    return DeviceError(f"{driver}: module '{key}' does not compile: {lines[first]}", notes=beside)


def failure(driver: str, queued: Iterable[str], reason: str) -> DeviceError:
    """One of the kernels that were queued has failed."""
    names = list(dict.fromkeys(queued))
    variable = f"{driver.upper()}_LAUNCH_BLOCKING=1"
    tells = f"{variable} in the environment tells which kernel it was"
    return DeviceError(
        f"{driver}: {_one_of(names)} failed: {reason}", notes=(tells,) if len(names) > 1 else ()
    )


def _one_of(names: list[str]) -> str:
    """Which kernels may have failed."""
    if len(names) < 2:
        return f"kernel '{names[0]}'" if names else "a kernel"
    first = ", ".join(f"'{name}'" for name in names[:_MOST_NAMES])
    rest = f" and {quantity(len(names) - _MOST_NAMES, 'other')}" if len(names) > _MOST_NAMES else ""
    return f"one of the kernels {first}{rest}"
