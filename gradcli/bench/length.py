"""How long a run will take: some of its steps and batches are made, the rest is counted.

Layers reach 4 to 90 % of what a machine can do, so that no model of time would be worth reading.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.bench.step import Steps
from gradcli.config.build import build
from gradcli.train.checkpoint import Meta
from gradcli.train.close_look import CloseLook
from gradcli.train.directory import create
from gradcli.train.evaluate import ROWS, Evaluation
from gradcli.train.job import steps_per_epoch
from gradcli.train.state import tensors_of

if TYPE_CHECKING:
    from gradcli.config.load import Config
    from gradcli.train.job import Job

LEARNING = 3  # runs of what is captured: two are recorded, the third is the first replay
REPLAYS = 5
LEAST_SECONDS = 0.05  # of what is measured
SAVES = 4
STATUSES = 2  # for each checkpoint: behind the evaluation and behind the save
BASELINE = 0.5  # of an evaluation: the constant model does next to nothing


def run_length(config: Config, device: str) -> dict[str, Any]:
    """Seconds of the whole run, and of what it is made of; its data is needed."""
    job = build(config).to(device)
    settings, sizes = job.settings, config.facts.sizes
    per_epoch = steps_per_epoch(settings, sizes["train"])
    step, learning = _steps(job)
    evaluations = _times(config.steps, settings.eval_every or per_epoch) if "val" in sizes else 0
    saves = _times(config.steps, settings.checkpoint_every or per_epoch)
    evaluation, once = _evaluation(job, "val") if evaluations else (0.0, 0.0)
    last, last_once = _last(job)
    saving = _saving(job)
    programs = 2 if sizes["train"] % settings.batch and not settings.drop_last else 1
    seconds = programs * learning + config.steps * step
    seconds += once + evaluations * evaluation + last_once + last + saves * saving
    seconds += BASELINE * (evaluation + last + once + last_once)
    return {
        "seconds": round(seconds, 3),
        "step": step,
        "evaluations": evaluations,
        "evaluation": evaluation,
        "checkpoints": saves,
        "saving": saving,
    }


def _times(steps: int, every: int) -> int:
    """How often something is due that is due at the end too."""
    return -(-steps // every)


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _steps(job: Job) -> tuple[float, float]:
    """Seconds of a step, and those that learning it takes more."""
    steps = Steps(job, captured=job.settings.capture)
    learning = _seconds(lambda: steps.run(LEARNING))
    count, spent = 0, 0.0
    while count < REPLAYS or spent < LEAST_SECONDS:
        spent += _seconds(lambda: steps.run(REPLAYS))
        count += REPLAYS
    step = spent / count
    return step, max(0.0, learning - LEARNING * step)


def _evaluation(job: Job, name: str, look: CloseLook | None = None) -> tuple[float, float]:
    """Seconds of an evaluation of a split, and those that learning it takes more."""
    split = job.dataset.splits[name]
    evaluation = Evaluation(job, split, name, look=look)
    learning = _seconds(lambda: evaluation.run(limit=LEARNING * job.settings.batch))
    size = min(split.size, ROWS * job.settings.batch)
    whole = _seconds(lambda: evaluation.run(limit=size)) * split.size / size
    batches = max(1, split.size // job.settings.batch)
    return whole, max(0.0, learning - whole * min(LEARNING, batches) / batches)


def _last(job: Job) -> tuple[float, float]:
    """The same of the last evaluation, which looks closely at a split."""
    name = next((name for name in ("test", "val") if name in job.dataset.splits), None)
    if name is None:
        return 0.0, 0.0
    look = CloseLook(job, job.dataset.splits[name], name)
    found = _evaluation(job, name, look)
    job.model.eval()
    try:
        return found[0], found[1] + _seconds(look.finish)
    finally:
        job.model.train()


def _saving(job: Job) -> float:
    """Seconds of saving a checkpoint and of all that is written down around it."""
    meta = Meta(
        step=0,
        epoch=0,
        seed=job.settings.seed,
        optimizer=job.optimizer_name,
        config_sha256="",
        config=job.resolved,
        data=job.dataset.sha256,
    )

    def save(step: int) -> None:
        tensors = tensors_of(job.model, job.optimizer)
        directory.save(replace(meta, step=step), tensors, job.settings.keep, lambda note: None)
        for _ in range(STATUSES):
            directory.status({"status": "running", "step": step})

    with tempfile.TemporaryDirectory() as folder, create(Path(folder), job.name) as directory:
        save(0)  # modules load at the first one
        times = [_seconds(partial(save, step)) for step in range(1, 1 + SAVES)]
    return sum(times) / SAVES
