"""`train.sampler: balanced`: each class is drawn equally often, whatever its share of the samples.

An epoch has as many drawings as there are samples. A drawing is one number: the index of the sample
plus k times the number of samples, where k counts the earlier drawings of this sample in the epoch.
The number seeds the sample's augmentation, so that a rare sample looks different at each drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data.targets import portions

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor

PURPOSE = "balanced"


class Balanced:
    """Draws every class that has samples, and within it every sample, with equal probability."""

    def __init__(self, labels: Tensor) -> None:
        self._size = int(labels.shape[0])
        numbers = labels.reshape(-1).to(engine.int64)
        self._by_class = engine.sort(numbers, stable=True)[1]
        counts = engine.bincount(numbers)
        if counts.device != "meta":
            counts = engine.tensor([count for count in counts.tolist() if count])
        self._counts = counts.to(engine.float64)
        self._starts = counts.cumsum(dim=0) - counts

    @classmethod
    def of(cls, split: Split) -> Balanced:
        """By the labels of a split."""
        return cls(engine.cat(list(portions(split))))

    def samples(self, u: Tensor) -> Tensor:
        """The samples that numbers of [0, 1) stand for."""
        classes = self._counts.shape[0]
        scaled = u * classes
        which = scaled.floor().clamp(max=classes - 1)
        number = which.to(engine.int64)
        counts = engine.index_select(self._counts, 0, number)
        offset = engine.minimum(((scaled - which) * counts).floor(), counts - 1)
        starts = engine.index_select(self._starts, 0, number)
        return engine.index_select(self._by_class, 0, starts + offset.to(engine.int64))

    def order(self, seed: int, epoch: int, samples: int) -> Tensor:
        """The drawings of an epoch: a pure function of seed and epoch."""
        generator = engine.Generator(seed, purpose=PURPOSE, step=epoch)
        drawings = self.samples(engine.rand(samples, generator=generator, dtype=engine.float64))
        in_order, indices = engine.sort(drawings, stable=True)
        counts = engine.bincount(drawings, minlength=samples)
        first = engine.index_select(counts.cumsum(dim=0) - counts, 0, in_order)
        before = engine.arange(samples) - first
        return drawings + engine.index_select(before, 0, engine.sort(indices)[1]) * samples
