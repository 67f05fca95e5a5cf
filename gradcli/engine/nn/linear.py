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
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor


class Affine(Module):
    """What layers share that multiply by a weight, and add a bias if they have one."""

    weight: Parameter
    bias: Parameter | None

    def _make(self, weight: Shape, outputs: int, bias: bool, dtype: DType) -> None:
        self.weight = Parameter(empty(weight, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(outputs, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight and bias evenly spread within 1 / sqrt(inputs of one output)."""
        init.weight_and_bias_(self.weight, self.bias)

    @property
    def _has_bias(self) -> bool:
        return self.bias is not None


class Linear(Affine):
    """Input times weight transposed, plus bias: (..., in_features) to (..., out_features)."""

    _repr_format = "in_features={0.in_features}, out_features={0.out_features}, bias={0._has_bias}"

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
        self._make((out_features, in_features), out_features, bias, dtype)

    @staticmethod
    def of(weight: Parameter, bias: Parameter | None = None) -> Linear:
        """The layer of these parameters, (out_features, in_features) and (out_features,)."""
        layer = Linear.__new__(Linear)
        Module.__init__(layer)
        layer._take(weight, bias)
        return layer

    def _take(self, weight: Parameter, bias: Parameter | None) -> None:
        self.out_features, self.in_features = weight.shape
        self.weight = weight
        self.register_parameter("bias", bias)

    @step_by_step
    def forward(self, input: Tensor) -> Tensor:
        """The affine map input @ weight.T + bias."""
        return F.linear(input, self.weight, self.bias)


class Bilinear(Affine):
    """input1 weight[k] input2 + bias[k] for each output k: (..., in1), (..., in2) to (..., out)."""

    _repr_format = (
        "in1_features={0.in1_features}, in2_features={0.in2_features}, "
        "out_features={0.out_features}, bias={0._has_bias}"
    )

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
        self._make((out_features, in1_features, in2_features), out_features, bias, dtype)

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
