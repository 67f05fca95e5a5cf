"""`python step_driver.py RANKS NAME...`: small jobs trained on so many ranks (0: no launcher).

The name of a fault plants it and trains the job that it spoils.

Rank 0 writes one line of JSON: for each job what must not depend on the number of ranks.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradcli import engine
from gradcli.config import build, load
from gradcli.engine import distributed, nn
from gradcli.engine.device import cpu
from gradcli.train import evaluate, parts, step
from gradcli.train.diagnose import NonfiniteStep, explain
from gradcli.train.evaluate import Evaluation
from gradcli.train.job import Job
from gradcli.train.order import Order
from gradcli.train.state import tensors_of
from gradcli.train.step import TrainingStep

CONFIG = """
gradcli: 1
name: tiny
data: {{name: mnist, split: {{train: 44, val: 330}}{data}}}
model: [{model}]
loss: {loss}
metrics: [accuracy, {{f1: {{average: macro}}}}, log_loss, confusion]
optim: {{name: adamw, lr: 1e-2}}
train: {{steps: 12, batch: 16, seed: 4, micro_batch: {micro}{train}}}
"""
PLAIN = "flatten, {linear: 12}, gelu, {linear: 10}"
NORM = (
    "{{conv: {{out: 4, kernel: 3}}}}, {}, relu, {{maxpool: 4}}, flatten, {{dropout: 0.1}}, "
    "{{linear: 10}}"
)
# A batch of 16 has 6 parts, the last of 1 sample; that at the end of an epoch, 12 samples, has 4.
JOBS: dict[str, dict[str, str]] = {
    "plain": {},
    "dropout": {
        "model": "flatten, {dropout: 0.2}, {linear: 12}, relu, {dropout: 0.5}, {linear: 10}"
    },
    "batchnorm": {"model": NORM.format("batchnorm")},
    "averaged": {"model": NORM.format("batchnorm")},
    "ema": {
        "model": NORM.format("batchnorm"),
        "train": ", ema: 0.9",
    },
    "augment": {"data": ", augment: [crop, cutout]"},
    "mixup": {"data": ", augment: [mixup]"},
    "clip": {"train": ", clip: 0.5"},
    "clip_value": {"train": ", clip_value: 0.01"},
    "bf16": {"train": ", precision: bf16"},
    "weights": {"loss": "{name: cross_entropy, weight: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}"},
    "eager": {"train": ", capture: false"},
    "skip": {"model": NORM.format("batchnorm"), "train": ", on_nonfinite: skip"},
    "instancenorm": {"model": NORM.format("instancenorm")},
    "two_parts": {"micro": "8"},
    "ragged": {"micro": "4"},  # 4 parts, and 3 at the end of an epoch: of 4 ranks one has none
}


def job_of(name: str) -> Job:
    values = {
        "data": "",
        "model": PLAIN,
        "loss": "cross_entropy",
        "train": "",
        "micro": "3",
        **JOBS[name],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.yaml"
        path.write_text(CONFIG.format(**values))
        job = build(load(path))
    for module in job.model.modules():
        if name == "averaged" and isinstance(module, nn.BatchNorm2d):
            module.momentum = None
        if name == "instancenorm" and isinstance(module, nn.InstanceNorm2d):
            module.track_running_stats = True
            module.running_mean, module.running_var = engine.zeros(4), engine.ones(4)
    return job


def trained(name: str) -> dict[str, Any]:
    """What comes of 12 steps, a replay of some among them."""
    job = job_of(name)
    split, settings = job.dataset.splits["train"], job.settings
    notes: list[str] = []
    steps = TrainingStep(job, split, notes.append)
    order = Order(settings.seed, settings.batch, split.size, -(-split.size // settings.batch))
    losses: list[float] = []
    norms: list[float] = []
    why: list[str] = []
    while len(losses) < 12:
        done = len(losses)
        rows = order.rows(done, min(order.alike(done), 12 - done, 1 if name == "skip" else 12))
        weight = next(iter(job.model.parameters()))
        spare = weight.detach().clone()
        if name == "skip" and done in (4, 5):
            with engine.no_grad():
                weight.copy_(weight * 1e38 * 1e38)
        progress = steps.run(done + 1, rows)
        if progress.error is not None:
            if progress.nonfinite is None:
                raise progress.error
            steps.put_back()
            refused = NonfiniteStep(done + 1, rows[progress.count], progress.nonfinite)
            why.append(explain(job, steps, refused).error.message)
            with engine.no_grad():
                weight.copy_(spare)
            losses.append(0.0)
            continue
        losses += progress.losses
        norms += [*progress.norms, steps.norm()]
    assert len(why) == (2 if name == "skip" else 0)
    evaluation = Evaluation(job, job.dataset.splits["val"], "val")
    figures = [evaluation.run(), evaluation.run(limit=40), evaluation.tables]
    digest = hashlib.sha256()
    for key, stored in sorted(tensors_of(job.model, job.optimizer, steps.average).items()):
        digest.update(key.encode() + bytes(stored.data))
    return {
        "sha256": digest.hexdigest(),
        "figures": figures,
        "losses": losses,
        "norms": norms,
        "notes": notes,
        "why": why,
        "programs": len(steps.captured.programs),
    }


def no_sum() -> None:
    """Each rank goes on with what it has itself: equal ranks where all have the same."""
    parts._Buffer.read, whole = lambda self: self._own(), parts._Buffer.read

    def own(self: Any) -> Any:
        self.sum.out.copy_(self.sum.source.sum(0))
        return whole(self)

    parts._Buffer._own = own


def summed_per_part() -> None:
    """What a rank has so far is summed behind each part, and once more at the end."""
    whole = step.OneStep._backward

    def backward(self: Any, *arguments: Any) -> Any:
        made = whole(self, *arguments)
        for parameter in self._parameters if self.ranks is not None else ():
            parameter.grad = distributed.all_reduce_(parameter.grad.clone())
        return made

    step.OneStep._backward = backward


def masks_keyed_by_rank() -> None:
    """The draws of every rank begin at 0."""
    parts.Shares.first_draw = lambda *_: 0


def statistics_of_one_rank() -> None:
    """Running statistics learn of a rank's own parts."""
    whole = parts._Buffer.read

    def read(self: Any) -> Any:
        own = {part for node in self.sum.nodes for part in range(*node)}
        return [
            one if part in own else replace(one, statistics=())
            for part, one in enumerate(whole(self))
        ]

    parts._Buffer.read = read


def padded_evaluation() -> None:
    """The last batch is filled up with samples that were measured before."""
    whole = evaluate.stretches

    def stretches(size: int, batch: int, *count: int) -> Any:
        for rows in whole(size, batch, *count):
            missing = engine.arange(batch - rows.shape[1]).reshape(1, -1)
            yield engine.cat([rows, missing], 1) if missing.numel() else rows

    evaluate.stretches = stretches


FAULTS = {
    "padded_evaluation": (padded_evaluation, "plain"),
    "no_sum": (no_sum, "plain"),
    "summed_per_part": (summed_per_part, "eager"),
    "masks_keyed_by_rank": (masks_keyed_by_rank, "dropout"),
    "statistics_of_one_rank": (statistics_of_one_rank, "batchnorm"),
}


def main() -> None:
    cpu.set_threads(1)
    ranks, *names = sys.argv[1:]
    if ranks != "0":
        assert distributed.join(timeout=20).size == int(ranks)
    if names and names[0] in FAULTS:
        plant, name = FAULTS[names[0]]
        plant()
        names = [name]
    found = {name: trained(name) for name in names or JOBS}
    if distributed.rank() == 0:
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
