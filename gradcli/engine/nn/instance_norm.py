"""InstanceNorm1d and InstanceNorm2d: each channel of each sample brought to mean 0, variance 1."""

from __future__ import annotations

__all__ = ["InstanceNorm1d", "InstanceNorm2d"]

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import NotNegative, Portion, Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.batch_norm import RunningNorm, is_collecting
from gradcli.engine.recompute import repeating
from gradcli.engine.tensor import Tensor


class _InstanceNorm(RunningNorm):
    """(x - mean) / sqrt(var + eps) for each channel of each sample (Ulyanov et al. 2016).

    Without running statistics, as by default, evaluation does what training does.
    """

    def __init__(
        self,
        num_features: Whole,
        eps: NotNegative = 1e-5,
        momentum: Portion | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, bias=bias, dtype=dtype
        )

    def forward(self, input: Tensor) -> Tensor:
        """The same shape, normalized; a sample alone, without a batch, is one of a batch."""
        alone = input.ndim == self.ranks[0]
        x = input.unsqueeze(0) if alone else input
        self._check(input, x)
        if self.training and self.running_mean is not None and is_collecting() and not repeating():
            own = self._fresh()
            y = self._normalized(x, *own, 1.0)
            self._note(own)
        else:
            y = self._normalized(x, self.running_mean, self.running_var, self.momentum or 0.0)
        return y.squeeze(0) if alone else y

    def _normalized(
        self, x: Tensor, mean: Tensor | None, var: Tensor | None, rate: float
    ) -> Tensor:
        own = self.training or not self.track_running_stats
        return F.instance_norm(x, mean, var, self.weight, self.bias, own, rate, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample to mean 0, variance 1: (N, C, L) or (C, L)."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample to mean 0, variance 1: (N, C, H, W) or (C, H, W)."""

    ranks = (3, 4)
