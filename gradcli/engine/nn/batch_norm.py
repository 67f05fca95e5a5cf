"""BatchNorm1d and BatchNorm2d: each channel brought to mean 0 and variance 1 over the batch."""

from __future__ import annotations

from gradcli.wording import quantity

__all__ = ["BatchNorm1d", "BatchNorm2d"]

from typing import ClassVar

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

    def _check(self, given: Tensor, x: Tensor) -> None:
        """`x` is what was given with a batch."""
        if given.ndim not in self.ranks or x.shape[1] != self.num_features:
            ranks = " or ".join(str(rank) for rank in self.ranks)
            raise ShapeError(
                f"{type(self).__name__}: expects {quantity(ranks, 'dimension')} with "
                f"{quantity(self.num_features, 'channel')} second, got shape {given.shape}"
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
        if counts and self.momentum is None:
            return self._averaging(input)
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
        counted = self.num_batches_tracked
        assert counted is not None
        return counted.copy_(counted + 1)

    def _averaging(self, input: Tensor) -> Tensor:
        """The running statistics go 1 / batches of the way to those of this batch."""
        statistics = [x for x in (self.running_mean, self.running_var) if x is not None]
        own = [zeros(self.num_features, dtype=x.dtype) for x in statistics]
        y = self._normalized(input, own[0], own[1], 1.0)
        with no_grad():
            rate = 1.0 / self._count_batch().to(own[0].dtype)
            for running, new in zip(statistics, own, strict=True):
                running.copy_(running + (new - running) * rate)
        return y


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 of each channel over the batch; of (N, C) or (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 of each channel over the batch; of (N, C, H, W)."""

    ranks = (4,)
