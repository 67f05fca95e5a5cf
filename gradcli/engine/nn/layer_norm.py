"""LayerNorm: each sample brought to mean 0 and variance 1."""

from __future__ import annotations

__all__ = ["LayerNorm"]

from collections.abc import Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import NotNegative, Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.steps import step_by_step, unless_last
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.shape import checked
from gradcli.engine.tensor import Tensor


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions (Ba et al. 2016)."""

    weight: Parameter | None
    bias: Parameter | None

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
        self.normalized_shape = checked(sizes, "LayerNorm")
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if elementwise_affine:
            self.weight = Parameter(empty(self.normalized_shape, dtype=dtype))
            if bias:
                self.bias = Parameter(empty(self.normalized_shape, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    @step_by_step(unless=lambda self: unless_last(self.normalized_shape))
    def forward(self, input: Tensor) -> Tensor:
        """The same shape, normalized."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """As torch shows it."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )
