"""A close look at a split while it is evaluated: how wrong each sample is, and some outputs.

Beside its figures the evaluation then gives, for each batch, the loss and the guess for each sample
and, if they are small, the outputs. Only the worst samples are computed twice.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.engine.nn import functional as F
from gradcli.train import precision
from gradcli.train.metrics import label_rows

if TYPE_CHECKING:
    from gradcli.data import DataSpec, Split
    from gradcli.engine import Tensor
    from gradcli.train.job import Job

Task = Literal["classes", "values", "images", "text"]

ROWS = 4096  # whose outputs are kept, at most
KEPT_BYTES = 4 << 20  # of those outputs, with their targets
WORST = 24
MATRIX = 1000  # classes of a confusion matrix, at most
# Of outputs that a stretch of batches brings along; where they are more, none are kept.
STRETCH_BYTES = 16 << 20
CHANNELS = (1, 3, 4)  # of a picture
UNJUDGED = -1.0  # in place of the loss of a label that is no class: an own loss may leave it out


@dataclass
class Sight:
    """What a close look collected, on the CPU.

    Attributes:
        index: the samples whose outputs and targets are kept, evenly spaced over the split.
        worst: the samples with the largest losses, largest first; infinity stands for NaN.
        confusion: counts of all samples, a row for each class and a column for each guess.
        inputs, predictions, truths: those of the worst samples.
    """

    task: Task
    split: str
    samples: int
    index: list[int] = field(default_factory=list)
    outputs: Tensor | None = None
    targets: Tensor | None = None
    worst: list[tuple[int, float]] = field(default_factory=list)
    confusion: Tensor | None = None
    inputs: Tensor | None = None
    predictions: Tensor | None = None
    truths: Tensor | None = None


def task_of(facts: DataSpec) -> Task:
    """The kind of task that such data sets."""
    if facts.input_kind == "index" and facts.target:
        return "text"
    if facts.classes is not None:
        return "classes"
    image = len(facts.target) == 3 and facts.target[0] in CHANNELS
    return "images" if image else "values"


class CloseLook:
    """Looks at each batch of a split, then at the worst samples.

    Attributes:
        name: the name of the split.
        sees: whether it can look at this task; not at texts, nor at a label for each place.
    """

    def __init__(self, job: Job, split: Split, name: str) -> None:
        self.name = name
        self._job = job
        self._split = split
        facts = job.dataset.facts
        self._task = task_of(facts)
        self._classes = facts.classes or 0
        width = self._classes or math.prod(facts.target)
        row = 4 * width + (8 if self._classes else 4 * width)
        stretch = 16 * job.settings.batch * row
        self.sees = self._task != "text" and not (self._classes and facts.target)
        keeps = self.sees and stretch <= STRETCH_BYTES
        rows = min(split.size, ROWS, KEPT_BYTES // row) if keeps else 0
        self._index = [i * split.size // rows for i in range(rows)]
        self._scale = _deviations(facts, width)
        self.begin()

    def begin(self) -> None:
        """Start again at the first sample of the split, with nothing collected."""
        self._worst: list[tuple[float, int]] = []
        self._outputs: list[Tensor] = []
        self._targets: list[Tensor] = []
        self._confusion: Tensor | None = None

    def of_batch(self, predictions: Any, targets: Any) -> dict[str, Tensor]:
        """The values to collect of a batch, a row for each sample; none if shapes are unusual.

        It is captured with the rest of the evaluation, so it must not read any number.
        """
        shapes = getattr(predictions, "shape", None), getattr(targets, "shape", None)
        if None in shapes or not self.sees:
            return {}
        rows = (
            self._of_classes(predictions, targets) if self._classes else _pair(predictions, targets)
        )
        if rows and not self._classes:
            off = rows["outputs"] - rows["targets"]
            off = off if self._scale is None else off / engine.tensor(self._scale)
            rows["loss"] = (off * off).mean(1)
        if rows and not self._index:
            del rows["outputs"]
            if not self._classes:
                del rows["targets"]
        return rows

    def _of_classes(self, predictions: Tensor, targets: Tensor) -> dict[str, Tensor]:
        if tuple(predictions.shape) != (targets.shape[0], self._classes) or targets.ndim != 1:
            return {}
        if targets.dtype.is_floating_point:
            return {}
        scores, labels = label_rows(predictions, targets)
        inside = (labels >= 0) & (labels < self._classes)
        loss = F.cross_entropy(scores, labels.clamp(0, self._classes - 1), reduction="none")
        loss = engine.where(inside, loss, UNJUDGED)
        return {"loss": loss, "guess": scores.argmax(1), "targets": labels, "outputs": scores}

    def take(self, first: int, stacked: Mapping[str, Tensor]) -> None:
        """Collect the values of the next batches, whose samples count from `first`."""
        if not stacked:
            return
        with engine.device("cpu"):
            rows = {key: tensor.to("cpu").flatten(0, 1) for key, tensor in stacked.items()}
            losses = rows["loss"].tolist()
            self._note_worst(first, losses)
            if self._classes and self._classes <= MATRIX:
                self._count(rows["targets"], rows["guess"], rows["loss"])
            self._keep(first, len(losses), rows)

    def _note_worst(self, first: int, losses: list[float]) -> None:
        least = self._worst[-1][0] if len(self._worst) == WORST else UNJUDGED
        worse = [(loss, -i) for i, loss in enumerate(losses, first) if not loss <= least]
        sure = [(math.inf if loss != loss else loss, index) for loss, index in worse]
        self._worst = heapq.nlargest(WORST, [*self._worst, *sure])

    def _count(self, labels: Tensor, guesses: Tensor, losses: Tensor) -> None:
        size = self._classes**2
        cells = (labels * self._classes + guesses).clamp(0, size - 1)
        counts = engine.zeros(size, dtype=engine.int64)
        counts = counts.scatter_add(0, cells, (losses != UNJUDGED).to(engine.int64))
        self._confusion = counts if self._confusion is None else self._confusion + counts

    def _keep(self, first: int, count: int, rows: Mapping[str, Tensor]) -> None:
        begin, end = (bisect.bisect_left(self._index, at) for at in (first, first + count))
        if begin == end or "outputs" not in rows:
            return
        indices = engine.tensor([i - first for i in self._index[begin:end]], dtype=engine.int64)
        self._outputs.append(engine.index_select(rows["outputs"], 0, indices))
        self._targets.append(engine.index_select(rows["targets"], 0, indices))

    def finish(self) -> Sight:
        """All that was collected, and the worst samples computed by themselves.

        The model must have the weights that were evaluated, and be in evaluation mode.
        """
        sight = Sight(self._task, self.name, self._split.size)
        if self._outputs:
            sight.index = self._index
            sight.outputs, sight.targets = engine.cat(self._outputs), engine.cat(self._targets)
        if self._confusion is not None:
            sight.confusion = self._confusion.reshape(self._classes, self._classes)
        sight.worst = [(-index, loss) for loss, index in self._worst]
        if sight.worst:
            indices = engine.tensor([index for index, _ in sight.worst], dtype=engine.int64)
            with engine.no_grad():
                inputs, targets = self._split.batch(indices)
                with precision.forward(self._job.settings):
                    predictions = self._job.postprocess(self._job.model(inputs))
            sight.inputs, sight.predictions = inputs.to("cpu"), predictions.to("cpu").float()
            sight.truths = targets.to("cpu")
        return sight


def _pair(predictions: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """The values of each sample as a row; none unless outputs and targets have equal sizes."""
    size = targets.shape[0]
    if predictions.shape[0] != size or predictions.numel() != targets.numel():
        return {}
    outputs, truths = predictions.reshape(size, -1).float(), targets.reshape(size, -1).float()
    return {"outputs": outputs, "targets": truths}


def _deviations(facts: DataSpec, width: int) -> list[float] | None:
    """The standard deviation of each value over the training split, if known."""
    targets = getattr(facts, "targets", None)
    return list(targets.std) if targets is not None and len(targets.std) == width else None
