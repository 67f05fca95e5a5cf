"""What norms share: a weight that begins as 1 and a bias that begins as 0."""

from __future__ import annotations

from gradcli.engine.dtype import DType
from gradcli.engine.nn import init
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.shape import Shape


class Norm(Module):
    """A norm whose result is multiplied by a weight and has a bias added, if it has them."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(self, size: int | Shape, weight: bool, bias: bool, dtype: DType) -> None:
        for name, present in (("weight", weight), ("bias", weight and bias)):
            self.register_parameter(name, Parameter(empty(size, dtype=dtype)) if present else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    @property
    def _has_bias(self) -> bool:
        return self.bias is not None
