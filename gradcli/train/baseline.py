"""What a model has to beat: one answer to every sample, from the targets of the training split."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data.targets import column_means
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor, nn
from gradcli.train.evaluate import Evaluation
from gradcli.train.metrics import better, direction_of

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.data.facts import DataFacts
    from gradcli.engine.program.capture import Captured
    from gradcli.train.job import Job


@dataclass(frozen=True)
class Baseline:
    """How well one answer does.

    Attributes:
        answer: a description of the constant answer.
        metrics: what the answer reaches in each figure of the model.
        unbeaten: the figures in which the model is no better.
    """

    answer: str
    metrics: Mapping[str, float]
    unbeaten: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "unbeaten": list(self.unbeaten)}


def read_baseline(record: object) -> Baseline | None:
    """The baseline out of status.json; None if it holds no usable one."""
    if not isinstance(record, Mapping):
        return None
    answer, metrics, unbeaten = (record.get(key) for key in ("answer", "metrics", "unbeaten"))
    if not isinstance(metrics, Mapping) or not isinstance(unbeaten, list):
        return None
    figures = {name: value for name, value in metrics.items() if type(value) is float}
    names = (name for name in unbeaten if isinstance(name, str) and name in figures)
    return Baseline(str(answer), figures, tuple(names))


def baseline_of(
    job: Job,
    figures: Mapping[str, float],
    splits: Mapping[str, Split],
    capture: Callable[..., Captured] = engine.capture,
    limit: int | None = None,
) -> Baseline | None:
    """The baseline for a model's figures on these splits; None if there is no constant answer.

    With a `limit`, only the first samples of each split count.
    """
    answer = _answer(job)
    if answer is None:
        return None
    row, text = answer
    constant = replace(job, model=ConstantModel(job.outputs(row)))
    values: dict[str, float] = {}
    for name in dict.fromkeys(figure.partition(".")[0] for figure in figures):
        if name in splits:
            values |= Evaluation(constant, splits[name], name, capture=capture).run(limit=limit)
    metrics = {name: values[name] for name in figures if math.isfinite(values.get(name, math.nan))}
    unbeaten = [
        name
        for name, value in metrics.items()
        if (direction := direction_of(name, job.metrics)) != "neither"
        and not better(direction, figures[name], value)
    ]
    return Baseline(text, metrics, tuple(unbeaten))


class ConstantModel(nn.Module):
    """A model that gives every sample the same outputs."""

    def __init__(self, row: Tensor) -> None:
        super().__init__()
        self.row = row

    def forward(self, x: Tensor) -> Tensor:
        """The row for each sample of x."""
        return self.row.to(x.device).expand(x.shape[0], *self.row.shape)


def _answer(job: Job) -> tuple[Tensor, str] | None:
    """The class scores or the values for one sample, and a description of them."""
    facts: Any = job.dataset.facts
    targets = getattr(facts, "targets", None)
    if targets is None:
        return None
    if targets.counts:
        return _shares(facts), _commonest(facts)
    if targets.mean:
        return engine.tensor(targets.mean).reshape(facts.target), "the mean of the training targets"
    if "train" not in job.dataset.splits:
        return None
    mean = column_means(job.dataset.splits["train"]).to(engine.float32)
    return mean.reshape(facts.target), "the mean of the training targets"


def _shares(facts: DataFacts) -> Tensor:
    """Logarithms of the shares of the classes, each counted once more, so that none is 0."""
    assert facts.targets is not None
    total = sum(facts.targets.counts) + len(facts.targets.counts)
    logs = [math.log((count + 1) / total) for count in facts.targets.counts]
    return engine.tensor(logs).expand(*facts.target, len(logs))


def _commonest(facts: DataFacts) -> str:
    assert facts.targets is not None
    if facts.target:
        return "unigram: the shares of the tokens in training"
    counts = facts.targets.counts
    number = counts.index(max(counts))
    label = facts.labels[number] if facts.labels else str(number)
    return f"the shares of the classes in training; the commonest is '{label}'"
