"""Each family of kernels on shapes that training meets, for `gradcli bench` without a config."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.bench import launches, rates, timing
from gradcli.dataclass import dataclass

if TYPE_CHECKING:
    from gradcli.bench.ceilings import Ceilings
    from gradcli.engine import Tensor
    from gradcli.engine.device.gpu.device import GPU

FLOAT_BYTES = 4
STRETCH = 0.005  # seconds of one measurement on a GPU at least


@dataclass(frozen=True)
class Item:
    """Something to time: what it does, and how much arithmetic and memory traffic that is."""

    name: str
    work: Callable[[], object]
    flops: float = 0.0
    nbytes: float = 0.0


def timed(times: int) -> list[tuple[Item, float]]:
    """Each item with the median of its seconds."""
    items = (item for group in GROUPS for item in group("cpu"))
    return [(item, timing.repeated(item.work, times)) for item in items]


def replayed(gpu: GPU, times: int) -> list[tuple[Item, float]]:
    """The same on a GPU: replay the launches of each item many times, without Python."""
    timings = []
    for item in (item for group in GROUPS for item in group(gpu.name)):
        with launches.record(gpu) as calls:
            outputs = item.work()
        run, count = launches.long_enough(launches.replays(gpu, calls), STRETCH)
        seconds = statistics.median(timing.once(run) for _ in range(times)) / count
        del outputs
        timings.append((item, seconds))
    return timings


def rated(timings: Sequence[tuple[Item, float]], ceilings: Ceilings) -> list[dict[str, Any]]:
    """The items with their rates, and what share of the machine's ceilings these are."""
    return [
        {"name": item.name, **rates.of(seconds, item.flops, item.nbytes, ceilings)}
        for item, seconds in timings
    ]


def _numbers(device: str, *shape: int) -> Tensor:
    """Values in 0..1, the same ones each time."""
    numbers = engine.rand(*shape, generator=engine.Generator(0))
    return numbers.to(device)


def _memory(device: str) -> list[Item]:
    n = 1 << 22
    x, y = _numbers(device, n), _numbers(device, n)
    return [
        Item("copy 4M", x.clone, nbytes=2 * FLOAT_BYTES * n),
        Item("add 4M", lambda: x + y, flops=n, nbytes=3 * FLOAT_BYTES * n),
        Item("relu 4M", x.relu, nbytes=2 * FLOAT_BYTES * n),
        Item("exp 4M", x.exp, nbytes=2 * FLOAT_BYTES * n),
        Item("tanh 4M", x.tanh, nbytes=2 * FLOAT_BYTES * n),
    ]


def _matmul(device: str) -> list[Item]:
    items = []
    for m, k, n in ((128, 784, 128), (128, 128, 10), (256, 256, 256), (1024, 1024, 1024)):
        a, b = _numbers(device, m, k), _numbers(device, k, n)
        work = _later(lambda a, b: a @ b, a, b)
        nbytes = FLOAT_BYTES * (m * k + k * n + m * n)
        items.append(Item(f"matmul {m}x{k}x{n}", work, flops=2 * m * k * n, nbytes=nbytes))
    return items


def _conv(device: str) -> list[Item]:
    items = []
    for channels, side, filters, kernel in ((1, 28, 16, 5), (16, 14, 32, 3)):
        batch, out = 64, side - kernel + 1
        x, w = (
            _numbers(device, batch, channels, side, side),
            _numbers(device, filters, channels, kernel, kernel),
        )
        work = _later(engine.conv2d, x, w)
        flops = 2 * batch * filters * out * out * channels * kernel * kernel
        nbytes = FLOAT_BYTES * (x.numel() + w.numel() + batch * filters * out * out)
        name = f"conv2d {batch}x{channels}x{side}x{side} {filters}x{kernel}x{kernel}"
        items.append(Item(name, work, flops=flops, nbytes=nbytes))
    return items


def _rows(device: str) -> list[Item]:
    rows, columns = 4096, 1024
    x, n = _numbers(device, rows, columns), rows * columns
    return [
        Item("sum 4096x1024 along 1", _later(engine.sum, x, 1), flops=n, nbytes=FLOAT_BYTES * n),
        Item("sum 4096x1024 along 0", _later(engine.sum, x, 0), flops=n, nbytes=FLOAT_BYTES * n),
        Item("softmax 4096x1024", _later(engine.softmax, x, 1), nbytes=2 * FLOAT_BYTES * n),
    ]


def _later(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
    """The call, bound to these arguments now."""
    return lambda: function(*arguments)


GROUPS = (_memory, _matmul, _conv, _rows)
