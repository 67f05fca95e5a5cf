"""What `grad_norm` in the log costs: steps of every config with and without it, interleaved."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.medians import median_interval
from benchmarks.race import Say
from gradcli.config import build, load
from gradcli.errors import GradcliError
from gradcli.train.job import logged_every
from gradcli.train.order import Order
from gradcli.train.step import TrainingStep

PAIRS, QUICK_PAIRS = 40, 4
BLOCK = 0.05  # seconds, or one stretch
LONGEST = 60.0  # seconds for one config; 6 pairs are made in any case, which an interval needs
LEAST = 6


def log_cost(configs: Mapping[str, Path], quick: bool, say: Say) -> dict[str, Any]:
    """A row for each config, and how many processes wanted a processor in the meantime."""
    rows = {}
    for name, path in configs.items():
        rows[name] = row = measured(path, QUICK_PAIRS if quick else PAIRS)
        say(f"  {name}: {sentence(row)}")
    return {"rows": rows, "load": os.getloadavg()[1]}


def sentence(row: Mapping[str, Any]) -> str:
    """A row in one line."""
    if "missing" in row:
        return str(row["missing"])
    return (
        f"step {row['step_ms']:.3f} ms, the norm {row['norm_us']:.1f} us each {row['log_every']} "
        f"steps: {row['share']:.2%}; with / without {row['ratio']:.4f}, processors {row['cpu']:.4f}"
    )


def measured(path: Path, pairs: int) -> dict[str, Any]:
    """Stretches of steps between two lines of the log, every second block of them with the norm."""
    try:
        config = load(path)
        if config.train.clip is not None or config.train.on_nonfinite == "skip":
            return {"missing": "its steps need the norm themselves"}
        job = build(config)
    except GradcliError as error:
        return {"missing": error.message}
    split, settings = job.dataset.splits["train"], job.settings
    every = logged_every(settings, config.steps)
    order = Order(settings.seed, settings.batch, split.size, split.size // settings.batch)
    step = TrainingStep(job, split, _refuse)
    rows = order.rows(0, min(every, order.alike(0)))

    parts = max(1, round(every / rows.shape[0]))  # an epoch ends before the next line

    def stretch() -> None:
        for _ in range(parts):
            step.run(1, rows)

    for _ in range(3):  # both programs are learnt
        step.run(1, order.rows(0, 1))
        step.norm()
    times = _interleaved(stretch, step.norm, pairs)
    low, high = median_interval(times["ratios"])
    steps = parts * rows.shape[0]
    step_ms = statistics.median(times["without"]) / steps * 1e3
    norm_us = statistics.median(times["norms"]) * 1e6
    return {
        "parameters": sum(p.numel() for p in job.model.parameters()),
        "log_every": every,
        "stretch": steps,
        "step_ms": step_ms,
        "norm_us": norm_us,
        "share": norm_us / 1e3 / step_ms / steps,
        "ratio": statistics.median(times["ratios"]),
        "low": low,
        "high": high,
        "cpu": statistics.median(times["cpu"]),
        "pairs": len(times["ratios"]),
    }


def _refuse(why: str) -> None:
    raise AssertionError(why)


def _interleaved(
    stretch: Callable[[], None], norm: Callable[[], float], pairs: int
) -> dict[str, list[float]]:
    """Seconds of a stretch and of a norm, and with / without by the clock and by processors."""
    began = time.perf_counter()
    stretch()
    count = max(1, int(BLOCK / (time.perf_counter() - began)))
    times: dict[str, list[float]] = {"without": [], "norms": [], "ratios": [], "cpu": []}
    for pair in range(pairs):
        if pair >= LEAST and time.perf_counter() - began > LONGEST:
            break
        blocks = {}
        for looking in (False, True) if pair % 2 else (True, False):
            blocks[looking] = _block(stretch, norm if looking else None, count, times["norms"])
        times["without"].append(blocks[False][0] / count)
        times["ratios"].append(blocks[True][0] / blocks[False][0])
        times["cpu"].append(blocks[True][1] / blocks[False][1])
    return times


def _block(
    stretch: Callable[[], None],
    norm: Callable[[], float] | None,
    count: int,
    norms: list[float],
) -> tuple[float, float]:
    """So many stretches: seconds by the clock, and of all processors."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(count):
        stretch()
        if norm is not None:
            before = time.perf_counter()
            norm()
            norms.append(time.perf_counter() - before)
    return time.perf_counter() - clock, time.process_time() - processor


def shares(rows: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, float, bool]]:
    """Of each config that was measured: what part of its steps the norm takes, and if it is tiny.

    A step below half a millisecond is.
    """
    for name, row in rows.items():
        if "missing" not in row:
            yield name, row["share"], row["step_ms"] < 0.5
