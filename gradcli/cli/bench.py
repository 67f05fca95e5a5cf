"""`gradcli bench`: how fast the kernels are, or the training step of a config."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import options, output

if TYPE_CHECKING:
    from gradcli.config import Config
    from gradcli.engine import Tensor
    from gradcli.train.job import Job

FLOAT_BYTES = 4
WARM_UP = 3


@dataclass(frozen=True)
class Item:
    """Something to time: what it does, and how much arithmetic and memory traffic that is."""

    name: str
    work: Callable[[], object]
    flops: float = 0.0
    nbytes: float = 0.0


@click.command("bench")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=30,
    metavar="N",
    help="Measurements of each item, of which the median counts.  [default: 30]",
)
@options.overrides
@options.common
def command(
    config: Path | None,
    steps: int,
    overrides: tuple[str, ...],
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Time the kernels; with CONFIG its training step and the forward pass of each layer."""
    if config is None and overrides:
        raise click.UsageError("-s replaces values of a config, and no CONFIG is given")
    from gradcli.engine.device import cpu

    used = options.compute_with(threads)
    where = {"device": device, "instruction_set": cpu.isa(), "threads": used}
    found = kernels(steps) if config is None else training(config, overrides, steps)
    if as_json:
        output.say_json({**where, **found})
    else:
        _show({**where, **found})


def measured(item: Item, steps: int) -> dict[str, Any]:
    """The item's median time, and the rates that follow from it; null where they mean nothing."""
    seconds = statistics.median(_times(item.work, steps))
    return {
        "name": item.name,
        "ms": round(seconds * 1e3, 4),
        "gflops": _rate(item.flops, seconds),
        "gbs": _rate(item.nbytes, seconds),
    }


def _times(work: Callable[[], object], steps: int) -> list[float]:
    """Seconds of each turn, after a few that fill caches and start the threads."""
    for _ in range(WARM_UP):
        work()
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return times


def _rate(amount: float, seconds: float) -> float | None:
    return round(amount / seconds / 1e9, 2) if amount and seconds > 0 else None


# -- kernels ---------------------------------------------------------------------------------------


def kernels(steps: int) -> dict[str, Any]:
    """Each family of kernels on shapes that training meets."""
    groups = (_memory, _matmul, _conv, _rows)
    return {"items": [measured(item, steps) for group in groups for item in group()]}


def _numbers(*shape: int) -> Tensor:
    """Values in 0..1, the same ones each time."""
    from gradcli import engine

    numbers: Tensor = engine.rand(*shape, generator=engine.Generator(0))
    return numbers


def _memory() -> list[Item]:
    n = 1 << 22
    x, y = _numbers(n), _numbers(n)
    return [
        Item("copy 4M", x.clone, nbytes=2 * FLOAT_BYTES * n),
        Item("add 4M", lambda: x + y, flops=n, nbytes=3 * FLOAT_BYTES * n),
        Item("relu 4M", x.relu, nbytes=2 * FLOAT_BYTES * n),
        Item("exp 4M", x.exp, nbytes=2 * FLOAT_BYTES * n),
        Item("tanh 4M", x.tanh, nbytes=2 * FLOAT_BYTES * n),
    ]


def _matmul() -> list[Item]:
    items = []
    for m, k, n in ((128, 784, 128), (128, 128, 10), (256, 256, 256), (1024, 1024, 1024)):
        a, b = _numbers(m, k), _numbers(k, n)
        work = _later(lambda a, b: a @ b, a, b)
        nbytes = FLOAT_BYTES * (m * k + k * n + m * n)
        items.append(Item(f"matmul {m}x{k}x{n}", work, flops=2 * m * k * n, nbytes=nbytes))
    return items


def _conv() -> list[Item]:
    from gradcli import engine

    items = []
    for channels, side, filters, kernel in ((1, 28, 16, 5), (16, 14, 32, 3)):
        batch, out = 64, side - kernel + 1
        x, w = _numbers(batch, channels, side, side), _numbers(filters, channels, kernel, kernel)
        work = _later(engine.conv2d, x, w)
        flops = 2 * batch * filters * out * out * channels * kernel * kernel
        nbytes = FLOAT_BYTES * (x.numel() + w.numel() + batch * filters * out * out)
        name = f"conv2d {batch}x{channels}x{side}x{side} {filters}x{kernel}x{kernel}"
        items.append(Item(name, work, flops=flops, nbytes=nbytes))
    return items


def _rows() -> list[Item]:
    from gradcli import engine

    rows, columns = 4096, 1024
    x, n = _numbers(rows, columns), rows * columns
    return [
        Item("sum 4096x1024 along 1", _later(engine.sum, x, 1), flops=n, nbytes=FLOAT_BYTES * n),
        Item("sum 4096x1024 along 0", _later(engine.sum, x, 0), flops=n, nbytes=FLOAT_BYTES * n),
        Item("softmax 4096x1024", _later(engine.softmax, x, 1), nbytes=2 * FLOAT_BYTES * n),
    ]


def _later(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
    """The call, bound to these arguments now."""
    return lambda: function(*arguments)


# -- a config --------------------------------------------------------------------------------------


def training(path: Path, overrides: tuple[str, ...], steps: int) -> dict[str, Any]:
    """The training step of a config as it runs in `train`, and the layers one by one."""
    from gradcli.config import build, load

    plan = load(path, overrides)
    output.warnings(plan.warnings)
    job = build(plan)
    return {"config": str(path), **_steps(job, steps), "items": _layers(plan, job, steps)}


def _steps(job: Job, steps: int) -> dict[str, Any]:
    from gradcli.train.step import TrainingStep, epoch_order

    split = job.dataset.splits["train"]
    step = TrainingStep(job, split, output.say_aside)
    batch = min(job.settings.batch, split.size)
    order = epoch_order(job.settings.seed, 0, split.size)
    number = 0

    def one() -> None:
        nonlocal number
        first = number * batch % (split.size - batch + 1)
        number += 1
        step.run(number, order[first : first + batch].reshape(1, batch))

    seconds = statistics.median(_times(one, steps))
    rate = round(batch / seconds, 1)
    return {"step_ms": round(seconds * 1e3, 4), "batch": batch, "samples_per_second": rate}


def _layers(plan: Config, job: Job, steps: int) -> list[dict[str, Any]]:
    from gradcli import engine

    split = job.dataset.splits["train"]
    x, _ = split.batch(engine.arange(min(job.settings.batch, split.size)))
    items = []
    with engine.no_grad():
        for planned, layer in zip(plan.model, job.model, strict=True):
            item = Item(f"{planned.index} {planned.title}", _later(layer, x))
            items.append(measured(item, steps))
            x = layer(x)
    return items


def _show(found: dict[str, Any]) -> None:
    used = f"{found['device']}, {found['instruction_set']}, threads {found['threads']}"
    if "config" in found:
        rate = f"{found['samples_per_second']:,.0f} samples/s"
        step = f"step {found['step_ms']:.3f} ms at batch {found['batch']}, {rate}"
        output.say(f"{found['config']}: {step}; {used}")
    else:
        output.say(f"medians; {used}")
    output.say(f"{'':<32} {'ms':>10} {'GFLOP/s':>10} {'GB/s':>10}")
    for item in found["items"]:
        rates = (f"{'' if item[key] is None else item[key]:>10}" for key in ("gflops", "gbs"))
        output.say(f"{item['name']:<32} {item['ms']:>10.4f} {' '.join(rates)}".rstrip())
