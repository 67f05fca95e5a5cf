"""The samples of each step: a pure function of the seed and the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gradcli import engine

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor
    from gradcli.train.job import TrainSettings
    from gradcli.train.large_order import LargeOrder

    Drawing = Callable[[int, int, int], Tensor | LargeOrder]  # of seed, epoch and samples

MAX_LISTED = 1 << 22  # samples in a listed order; that of more is computed place by place


class Order:
    """The samples of the steps of a training."""

    def __init__(
        self, seed: int, batch: int, samples: int, per_epoch: int, drawing: Drawing | None = None
    ) -> None:
        self._drawing = drawing or order_of
        self._seed = seed
        self._batch = batch
        self._samples = samples
        self._per_epoch = per_epoch
        self._epoch: tuple[int, Tensor | LargeOrder] | None = None

    def alike(self, step: int) -> int:
        """How many steps after this one have batches of one size in one epoch."""
        within = step % self._per_epoch
        whole = min(self._per_epoch, self._samples // self._batch)
        return whole - within if within < whole else 1

    def samples(self, step: int, count: int) -> Tensor:
        """The indices of the samples of the next `count` steps, all alike: (count, batch)."""
        rows = self.rows(step, count)
        return rows if self._drawing is order_of else rows % self._samples

    def rows(self, step: int, count: int) -> Tensor:
        """The samples, or drawings of them, of the next `count` steps, all alike."""
        epoch, within = divmod(step, self._per_epoch)
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = (epoch, self._drawing(self._seed, epoch, self._samples))
        first = within * self._batch
        last = min(first + count * self._batch, self._samples)
        return self._epoch[1][first:last].reshape(count, -1)


def order_in(settings: TrainSettings, split: Split, per_epoch: int) -> Order:
    """The samples of a training on this split."""
    drawing = None
    if settings.sampler is not None:
        from gradcli.train.balanced import Balanced  # few ask for it

        drawing = Balanced.of(split.to("cpu")).order
    return Order(settings.seed, settings.batch, split.size, per_epoch, drawing)


def order_of(seed: int, epoch: int, samples: int) -> Tensor | LargeOrder:
    """The order of an epoch of any number of samples; slice it for places."""
    if samples <= MAX_LISTED:
        return epoch_order(seed, epoch, samples)
    from gradcli.train.large_order import LargeOrder  # few have so many samples

    return LargeOrder(seed, epoch, samples)


def epoch_order(seed: int, epoch: int, samples: int) -> Tensor:
    """The order of an epoch, listed: a pure function of seed and epoch."""
    generator = engine.Generator(seed, purpose="shuffle", step=epoch)
    return engine.randperm(samples, generator=generator)


def next_due(step: int, periods: Sequence[int]) -> int:
    """Steps from this one to the nearest multiple of one of the periods."""
    return min(period - step % period for period in periods)
