"""How long a run will take: some of its steps and batches are made, the rest is counted.

Layers reach 4 to 90 % of what a machine can do, so that no model of time would be worth reading.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gradcli.bench.step import TrainingSteps, batch_size
from gradcli.config.build import build
from gradcli.data.hashes import so_far
from gradcli.train.baseline import baseline_of
from gradcli.train.checkpoint import CheckpointMeta
from gradcli.train.close_look import CloseLook
from gradcli.train.directory import RunDirectory, create
from gradcli.train.elsewhere import SilentReporter
from gradcli.train.evaluate import ROWS, Evaluation
from gradcli.train.job import logged_every, steps_per_epoch
from gradcli.train.loop import Trainer
from gradcli.train.signals import Signals
from gradcli.train.state import tensors_of

if TYPE_CHECKING:
    from gradcli.config.load import Config
    from gradcli.train.job import Job

LEARNING = 3  # runs of what is captured: two are recorded, the third is the first replay
REPLAYS = 5
AT_ONCE = 0.1  # seconds: steps are made in one go up to a line of the log, as far as that allows
LEAST_SECONDS = 0.4  # of the steps that are measured: half of it first, half of it last
SAVES = 4
STATUSES = 2  # for each checkpoint: behind the evaluation and behind the save


def run_length(config: Config, device: str) -> dict[str, Any]:
    """Seconds of the whole run, and of what it is made of; its data is needed."""
    job = build(config).to(device)
    with tempfile.TemporaryDirectory() as folder, create(Path(folder), job.name) as directory:
        return _length(config, job, directory)


def _length(config: Config, job: Job, directory: RunDirectory) -> dict[str, Any]:
    settings, sizes = job.settings, config.facts.sizes
    per_epoch = steps_per_epoch(settings, sizes["train"])
    steps = _Paced(job, logged_every(settings, config.steps), directory)
    steps.measure()
    evaluations = _times(config.steps, settings.eval_every or per_epoch) if "val" in sizes else 0
    saves = _times(config.steps, settings.checkpoint_every or per_epoch)
    evaluation, once = _evaluation(job, "val") if evaluations else (0.0, 0.0)
    last, last_once = _last(job)
    baseline, saving = _baseline(job), _saving(job, directory)
    steps.measure()
    programs = 2 if sizes["train"] % settings.batch and not settings.drop_last else 1
    seconds = programs * steps.learning + config.steps * steps.each
    seconds += once + evaluations * evaluation + last_once + last + baseline + saves * saving
    return {
        "seconds": round(seconds, 3),
        "step": steps.each,
        "evaluations": evaluations,
        "evaluation": evaluation,
        "checkpoints": saves,
        "saving": saving,
    }


class _Stretches(Trainer):
    """A training of which nothing is made but steps and the lines of their log."""

    def make(self) -> int:
        """The steps up to the next thing that is due: how many they were."""
        before = self.meta.step
        self._ranks.settle(before)
        self._advance()
        return self.meta.step - before


class _Paced:
    """The steps of a run as it makes them, with the lines of its log, timed.

    Attributes:
        learning: seconds that learning the step takes more than replays.
        each: seconds of one.
    """

    def __init__(self, job: Job, logged: int, directory: RunDirectory) -> None:
        steps = TrainingSteps(job, captured=job.settings.capture)
        learning = _seconds(lambda: steps.run(LEARNING))
        self.each = _seconds(lambda: steps.run(REPLAYS)) / REPLAYS
        self.learning = max(0.0, learning - LEARNING * self.each)
        every = max(REPLAYS, min(logged, int(AT_ONCE / self.each)))
        whole = replace(job.settings, log_every=every, drop_last=True, batch=batch_size(job))
        self._trainer = _Stretches(
            replace(job, settings=whole), directory, SilentReporter(), Signals()
        )
        self._count, self._duration = 0, 0.0
        while self._trainer.meta.step < LEARNING:
            self._trainer.make()

    def measure(self) -> None:
        """Half of what is measured."""
        until, before = self._duration + LEAST_SECONDS / 2, self._trainer.meta.step
        while self._duration < until:
            self._duration += _seconds(self._trainer.make)
        self._count += self._trainer.meta.step - before
        self.each = self._duration / self._count


def _times(steps: int, every: int) -> int:
    """How often something is due that is due at the end too."""
    return -(-steps // every)


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


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
    figures = _evaluation(job, name, look)
    job.model.eval()
    try:
        return figures[0], figures[1] + _seconds(look.finish)
    finally:
        job.model.train()


def _baseline(job: Job) -> float:
    """Seconds of what the last figures are compared with."""
    seconds, limit = 0.0, ROWS * job.settings.batch
    for name, split in job.dataset.splits.items():
        if name != "train":
            with suppress(ArithmeticError):  # of figures of nothing
                compare = partial(baseline_of, job, {f"{name}.loss": 0.0}, {name: split})
                seconds += _seconds(partial(compare, limit=limit)) * max(1.0, split.size / limit)
    return seconds


def _saving(job: Job, directory: RunDirectory) -> float:
    """Seconds of saving a checkpoint and of all that is written down around it."""
    meta = CheckpointMeta(
        step=0,
        epoch=0,
        seed=job.settings.seed,
        optimizer=job.optimizer_name,
        config_sha256="",
        config=job.resolved,
        data=so_far(job.dataset.sha256),
    )

    def save(step: int) -> None:
        tensors = tensors_of(job.model, job.optimizer)
        directory.save(replace(meta, step=step), tensors, job.settings.keep, lambda note: None)
        for _ in range(STATUSES):
            directory.status({"status": "running", "step": step})

    save(0)  # modules load at the first one
    return fmean(_seconds(partial(save, step)) for step in range(1, 1 + SAVES))
