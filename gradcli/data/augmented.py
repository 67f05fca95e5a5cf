"""A training split whose samples change with each epoch: by seed, epoch and sample alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from gradcli import engine
from gradcli.data.augment import Mixup, Transform
from gradcli.data.samples import Samples
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor

PURPOSE = "augment"  # of the generator whose step is the epoch and whose draw is the sample
POINTS = 2048  # of the table of a Beta distribution


@dataclass(frozen=True)
class Augmented:
    """Samples with transforms.

    Attributes:
        classes: labels become probabilities of so many where they are mixed; None: no labels.
    """

    plain: Samples
    chain: tuple[Transform, ...]
    classes: int | None

    @property
    def size(self) -> int:
        """The number of samples."""
        return self.plain.size

    @property
    def stored_targets(self) -> Tensor | None:
        """The targets of all samples, as they are stored."""
        return self.plain.stored_targets

    def to(self, device: str) -> Augmented:
        """The same samples in the memory of a device."""
        return replace(self, plain=self.plain.to(device))

    def staged(self, device: str) -> Augmented:
        """The same samples where they are, whose batches go to a device."""
        return replace(self, plain=self.plain.staged(device))

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The samples as they are stored."""
        return self.plain.batch(indices)

    def spans(self, indices: Tensor) -> Iterator[tuple[Tensor, list[int], int]]:
        """What a batch reads, but for the partners of mixup."""
        return self.plain.spans(indices)

    def augment(
        self,
        indices: Tensor,
        state: Tensor,
        draws: Tensor | None = None,
        partners: Callable[[Tensor], Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Transform samples of an epoch; `state` is int64 (key, epoch, 0), sample i takes draw i.

        `draws` replaces the draw numbers. `partners` maps numbers of [0, 1) to the samples that
        are mixed in; by default each sample is equally probable.
        """
        u = self._draw(indices if draws is None else draws, state)
        inputs, targets = self._transformed(indices, u)
        mixup = next((each for each in self.chain if isinstance(each, Mixup)), None)
        if mixup is None:
            return inputs, targets
        at = sum(each.NUMBERS for each in self.chain[: self.chain.index(mixup)])
        partner_indices = self._partners(u[:, at]) if partners is None else partners(u[:, at])
        theirs = self._transformed(partner_indices, self._draw(partner_indices, state))
        share = shares(u[:, at + 1], mixup.alpha).to(inputs.dtype)
        mixed = _mixed(inputs, theirs[0], share)
        if self.plain.itself:
            return mixed, mixed
        pair = (self._soft(targets), self._soft(theirs[1]))
        return mixed, _mixed(*pair, share)

    def _partners(self, u: Tensor) -> Tensor:
        return (u * self.size).floor().to(engine.int64).clamp(max=self.size - 1)

    def _draw(self, indices: Tensor, state: Tensor) -> Tensor:
        count = sum(each.NUMBERS for each in self.chain)
        return engine.rand_at(state, indices, count=count, dtype=engine.float64)

    def _transformed(self, indices: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        x = self.plain.raw(indices)
        at = 0
        for each in self.chain:
            x = each.apply(x, u[:, at : at + each.NUMBERS])
            at += each.NUMBERS
        return self.plain.finish(x, indices)

    def _soft(self, targets: Tensor) -> Tensor:
        """Labels as probabilities of the classes."""
        if self.classes is None:
            return targets
        numbers = engine.arange(self.classes).reshape(1, -1)
        return targets.reshape(-1, 1).eq(numbers).to(engine.float32)


def _mixed(a: Tensor, b: Tensor, share: Tensor) -> Tensor:
    t = share.reshape(-1, *[1] * (a.ndim - 1))
    return t * a + (1 - t) * b


def shares(u: Tensor, alpha: float) -> Tensor:
    """Numbers of [0, 1) mapped to Beta(alpha, alpha) by its inverse distribution function."""
    mirrored = (u >= 0.5).to(u.dtype)
    half = u * (1 - mirrored) + (1 - u) * mirrored  # 0 to 0.5; the distribution is symmetric
    table = engine.tensor(_table(alpha), dtype=engine.float64)
    position = half * (2 * POINTS)
    low = position.floor().clamp(max=POINTS - 1)
    index = low.long()
    left = engine.index_select(table, 0, index)
    right = engine.index_select(table, 0, index + 1)
    t = (left + (right - left) * (position - low)).clamp(min=0.0) ** (1 / alpha)
    return t * (1 - mirrored) + (1 - t) * mirrored


@cache
def _table(alpha: float) -> list[float]:
    """t^alpha of the quantile t at 0, ..., 0.5, which is nearly a straight line where t is small.

    With v = t^alpha the density is proportional to (1 - t)^(alpha - 1) dv, which has no pole.
    """
    end = 0.5**alpha
    steps = 4 * POINTS

    def density(step: float) -> float:
        t = (end * step / steps) ** (1 / alpha)
        return float((1 - t) ** (alpha - 1))

    sums = [0.0]
    for step in range(steps):  # Simpson
        sums.append(sums[-1] + density(step) + 4 * density(step + 0.5) + density(step + 1))
    table, step = [], 0
    for point in range(POINTS + 1):
        level = sums[-1] * point / POINTS
        while step < steps - 1 and sums[step + 1] < level:
            step += 1
        within = (level - sums[step]) / (sums[step + 1] - sums[step])
        table.append(end * min(1.0, (step + within) / steps))
    return table


def epoch_state(seed: int, epoch: Tensor) -> Tensor:
    """What `changed` takes; `epoch` is int64 (1,)."""
    key = engine.tensor([engine.Generator(seed, purpose=PURPOSE).key])
    return engine.cat([key, epoch, engine.tensor([0])])
