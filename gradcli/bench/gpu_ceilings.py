"""The ceilings of a GPU, measured on it: its own copies, and our largest matrix product.

The product is no limit of the hardware, as the multiply-adds of the CPU's ceilings are: it is what
a step can hope for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.bench import launches
from gradcli.bench.ceilings import Ceilings
from gradcli.bench.timing import once
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu.driver import Address

if TYPE_CHECKING:
    from gradcli.engine.device.gpu.device import GPU

LEVELS = (1 << 20, 1 << 24, 1 << 27, 1 << 31)  # bytes read and written
SIDES = (256, 1024, 4096)
TURNS, STRETCH = 5, 0.01
ENOUGH = 0.3  # seconds of a turn, after which nothing larger is tried


def measure(gpu: GPU) -> Ceilings:
    """Measure the copies and the matrix product of a GPU, the fastest of several turns each."""
    copies = []
    for size in LEVELS:
        if 4 * size > gpu.driver.free_memory():
            break
        seconds = _copy(gpu, size // 2)
        copies.append((size, size / seconds / 1e9))
        if seconds > ENOUGH:
            break
    rate = 0.0
    for side in SIDES:
        seconds = _product(gpu, side)
        rate = max(rate, 2 * side**3 / seconds / 1e9)
        if seconds > ENOUGH:
            break
    gpu.trim()
    return Ceilings(rate, tuple(copies), cpu.threads())


def _fastest(contender: launches.Contender) -> float:
    run, count = launches.long_enough(contender, STRETCH)
    seconds = math.inf
    for _ in range(TURNS):
        seconds = min(seconds, once(run) / count)
        if seconds > ENOUGH:
            break
    return seconds


def _copy(gpu: GPU, nbytes: int) -> float:
    memory = gpu.allocate(nbytes), gpu.allocate(nbytes)
    addresses = [Address(block.handle, 0) for block in memory]
    return _fastest(launches.copies(gpu, addresses[0], addresses[1], nbytes))


def _product(gpu: GPU, side: int) -> float:
    generator = engine.Generator(0)
    a, b = (engine.randn(side, side, generator=generator).to(gpu.name) for _ in range(2))
    with launches.record(gpu) as calls:
        product = a @ b
    seconds = _fastest(launches.replays(gpu, calls))
    del product
    return seconds
