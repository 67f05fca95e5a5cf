"""Linear: a matrix and a bias; Bilinear: a matrix between two inputs for each output."""

from __future__ import annotations

__all__ = ["Linear", "Bilinear"]

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.steps import step_by_step
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.tensor import Tensor


class Linear(Module):
    """Input times weight transposed, plus bias: (..., in_features) to (..., out_features)."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: Whole,
        out_features: Whole,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype))
        self.register_parameter("bias", None)
        if bias:
            self.bias = Parameter(empty(out_features, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight and bias evenly spread within 1 / sqrt(in_features)."""
        init.weight_and_bias_(self.weight, self.bias)

    @step_by_step
    def forward(self, input: Tensor) -> Tensor:
        """The affine map input @ weight.T + bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """As torch shows it."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """input1 weight[k] input2 + bias[k] for each output k: (..., in1), (..., in2) to (..., out)."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: Count,
        in2_features: Whole,
        out_features: Whole,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, dtype=dtype))
        self.register_parameter("bias", None)
        if bias:
            self.bias = Parameter(empty(out_features, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight and bias evenly spread within 1 / sqrt(in1_features)."""
        bound = self.in1_features**-0.5
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    @step_by_step
    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """One number for each matrix."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """As torch shows it."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
