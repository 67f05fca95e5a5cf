"""BatchNorm1d and BatchNorm2d: each channel brought to mean 0 and variance 1 over the batch."""

from __future__ import annotations

from gradcli.wording import quantity

__all__ = ["BatchNorm1d", "BatchNorm2d"]

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar, NamedTuple

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import NotNegative, Portion, Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.norm import Norm
from gradcli.engine.ops.creation.creation import ones, tensor, zeros
from gradcli.engine.recompute import repeating
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


class BatchStatistics(NamedTuple):
    """What a layer would have its running statistics learn of one batch."""

    layer: RunningNorm
    mean: Tensor
    var: Tensor


_notes: ContextVar[list[BatchStatistics] | None] = ContextVar("notes", default=None)


@contextmanager
def collect_statistics(
    notes: list[BatchStatistics] | None = None,
) -> Iterator[list[BatchStatistics]]:
    """Inside a `with` block layers leave their running statistics alone.

    What they would learn is in the list instead, in the order of their calls: so that batches which
    are computed apart can be learnt in order, each by `layer.learn(mean, var)`. A list that is
    handed in goes on.
    """
    notes = [] if notes is None else notes
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def is_collecting() -> bool:
    """Whether somebody asked for the statistics of batches."""
    return _notes.get() is not None


class RunningNorm(Norm):
    """What batch and instance norm share: a weight and bias, and running statistics."""

    ranks: ClassVar[tuple[int, ...]]
    _repr_format = (
        "{0.num_features}, eps={0.eps}, momentum={0.momentum}, affine={0.affine}, "
        "bias={0._has_bias}, track_running_stats={0.track_running_stats}"
    )
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: Whole,
        eps: NotNegative = 1e-5,
        momentum: Portion | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0) if tracked else None)
        self._make(num_features, affine, bias, dtype)

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        for buffer, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if buffer is not None:
                init.constant_(buffer, value)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and fresh running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    @no_grad()
    def learn(self, mean: Tensor, var: Tensor) -> None:
        """Move the running statistics towards those of a batch."""
        rate = self._rate()
        for running, new in zip((self.running_mean, self.running_var), (mean, var), strict=True):
            assert running is not None
            running.copy_(running + (new - running) * rate)

    def _rate(self) -> Tensor | float:
        """How much of the way they go; 0 without a momentum."""
        return self.momentum or 0.0

    def _fresh(self) -> tuple[Tensor, Tensor]:
        """What the kernel moves the whole way to a batch's statistics, to have them alone."""
        assert self.running_mean is not None
        mean = self.running_mean
        shape, dtype, device = (self.num_features,), mean.dtype, mean.device
        first, second = (zeros(shape, dtype=dtype, device=device) for _ in range(2))
        return first, second

    def _note(self, own: tuple[Tensor, Tensor]) -> None:
        """A batch's statistics, for whoever asked for them; else they are learnt at once."""
        notes = _notes.get()
        if notes is None:
            self.learn(*own)
        else:
            notes.append(BatchStatistics(self, *own))

    def _check(self, input: Tensor, x: Tensor) -> None:
        """`x` is what was given with a batch."""
        if input.ndim not in self.ranks or x.shape[1] != self.num_features:
            ranks = " or ".join(str(rank) for rank in self.ranks)
            raise ShapeError(
                f"{type(self).__name__}: expects {quantity(ranks, 'dimension')} with "
                f"{quantity(self.num_features, 'channel')} second, got shape {input.shape}"
            )


class _BatchNorm(RunningNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel (Ioffe and Szegedy 2015).

    Training uses the batch's mean and variance and moves the running ones by `momentum`
    (None: their plain average); evaluation uses the running ones.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The same shape, normalized."""
        self._check(input, input)
        counts = self.training and self.num_batches_tracked is not None and not repeating()
        if counts and (self.momentum is None or is_collecting()):
            own = self._fresh()
            y = self._normalized(input, *own, 1.0)
            self._note(own)
            return y
        if counts:
            self._count_batch()
        rate = 0.0 if self.momentum is None else self.momentum
        return self._normalized(input, self.running_mean, self.running_var, rate)

    def _normalized(
        self, input: Tensor, mean: Tensor | None, var: Tensor | None, rate: float
    ) -> Tensor:
        own = self.training or self.running_mean is None
        return F.batch_norm(input, mean, var, self.weight, self.bias, own, rate, self.eps)

    @no_grad()
    def _count_batch(self) -> Tensor:
        """The number of batches seen, with this one."""
        count = self.num_batches_tracked
        assert count is not None
        return count.copy_(count + 1)

    def _rate(self) -> Tensor | float:
        """Counts the batch; without a momentum 1 / batches."""
        count = self._count_batch()
        assert self.running_mean is not None
        dtype = self.running_mean.dtype
        return 1.0 / count.to(dtype) if self.momentum is None else self.momentum


class BatchNorm1d(_BatchNorm):
    """Normalises each channel to mean 0 and variance 1 over the batch: (N, C) or (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel to mean 0 and variance 1 over the batch: (N, C, H, W)."""

    ranks = (4,)
