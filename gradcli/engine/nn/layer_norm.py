"""LayerNorm: each sample brought to mean 0 and variance 1."""

from __future__ import annotations

__all__ = ["LayerNorm"]

from collections.abc import Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import NotNegative, Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.norm import Norm
from gradcli.engine.nn.steps import step_by_step, unless_last
from gradcli.engine.shape import check_shape
from gradcli.engine.tensor import Tensor


class LayerNorm(Norm):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions (Ba et al. 2016)."""

    _repr_format = (
        "{0.normalized_shape}, eps={0.eps}, elementwise_affine={0.elementwise_affine}, "
        "bias={0._has_bias}"
    )

    def __init__(
        self,
        normalized_shape: Whole | Sequence[Whole],
        eps: NotNegative = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        sizes = [normalized_shape] if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = check_shape(sizes, "LayerNorm")
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, bias, dtype)

    @step_by_step(unless=lambda self: unless_last(self.normalized_shape))
    def forward(self, input: Tensor) -> Tensor:
        """The same shape, normalized."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
