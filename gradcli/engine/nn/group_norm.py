"""GroupNorm, RMSNorm and LocalResponseNorm: samples normalised one by one."""

from __future__ import annotations

from gradcli.wording import quantity

__all__ = ["GroupNorm", "RMSNorm", "LocalResponseNorm"]

from collections.abc import Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, NotNegative, Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.norm import Norm
from gradcli.engine.nn.steps import step_by_step, unless_last
from gradcli.engine.shape import check_shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


class GroupNorm(Norm):
    """Normalises each group of channels to mean 0 and variance 1 (Wu and He 2018).

    Then each channel has a weight and a bias of its own.
    """

    _repr_format = (
        "{0.num_groups}, {0.num_channels}, eps={0.eps}, affine={0.affine}, bias={0._has_bias}"
    )

    def __init__(
        self,
        num_groups: Count,
        num_channels: Whole,
        eps: NotNegative = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise OptionError(
                f"GroupNorm: num_groups={num_groups} must divide the "
                f"{quantity(num_channels, 'channel')}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make(num_channels, affine, bias, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The same shape, normalized."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class RMSNorm(Norm):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions (Zhang and Sennrich 2019)."""

    _repr_format = "{0.normalized_shape}, eps={0.eps}, elementwise_affine={0.elementwise_affine}"

    def __init__(
        self,
        normalized_shape: Whole | Sequence[Whole],
        eps: NotNegative | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        sizes = [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = check_shape(sizes, "RMSNorm")
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, False, dtype)

    @step_by_step(unless=lambda self: unless_last(self.normalized_shape))
    def forward(self, input: Tensor) -> Tensor:
        """The same shape, with a mean square of 1."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class LocalResponseNorm(Module):
    """x / (k + alpha mean(x^2 of `size` channels around))^beta (Krizhevsky et al. 2012)."""

    _repr_format = "{0.size}, alpha={0.alpha}, beta={0.beta}, k={0.k}"

    def __init__(
        self, size: Count, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The same shape, normalized."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
