"""Activations as modules: each calls the function of its name with what it was given."""

from __future__ import annotations

__all__ = [
    "ReLU",
    "ReLU6",
    "ReLUSquared",
    "LeakyReLU",
    "PReLU",
    "ELU",
    "SELU",
    "CELU",
    "GELU",
    "SiLU",
    "Mish",
    "Softplus",
    "Softsign",
    "Hardswish",
    "Hardsigmoid",
    "Hardtanh",
    "Threshold",
    "SoftCap",
    "Tanh",
    "Tanhshrink",
    "Sigmoid",
    "LogSigmoid",
    "Softmax",
    "LogSoftmax",
    "Softmin",
    "GLU",
    "SwiGLU",
]

from inspect import signature
from typing import ClassVar, Literal

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.constructor import in_library
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.steps import step_by_step, unless_features
from gradcli.engine.ops.creation.creation import full
from gradcli.engine.ops.elementwise.activation import Cap
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


class _Activation(Module):
    """An op of the table, with the arguments of the constructor.

    Attributes:
        function: its name: that of the class in small letters, where the class has no other.
        options: the arguments, which are attributes; all but `inplace`.
    """

    function: ClassVar[str]
    options: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        if in_library(cls):  # a class of a user's own is what it is derived from
            cls.function = vars(cls).get("function", cls.__name__.lower())
            arguments = list(signature(cls.__init__).parameters)[1:]
            cls.options = tuple(name for name in arguments if name != "inplace")

    @step_by_step
    def forward(self, input: Tensor) -> Tensor:
        """What the function makes of the input."""
        options = (getattr(self, name) for name in self.options)
        return getattr(table, self.function)(input, *options)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """As torch shows it."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)


class _InPlace(_Activation):
    """An activation that torch can also write over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        if inplace:
            name = type(self).__name__
            raise OptionError(f"{name}: inplace must be False; the result is the same")


class _AlongDim(_Activation):
    """An activation of all numbers along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    @step_by_step(unless=lambda self: unless_features(self.dim))
    def forward(self, input: Tensor) -> Tensor:
        """What the function makes of the input."""
        if self.dim is None:
            name = type(self).__name__
            raise OptionError(f"{name}: say along which dimension: {name}(dim=-1)")
        return super().forward(input)


class ReLU(_InPlace):
    """max(x, 0)."""


class ReLU6(_InPlace):
    """x clamped to 0..6 (Krizhevsky 2010)."""


class ReLUSquared(_Activation):
    """max(x, 0)^2 (So et al. 2021)."""

    function = "relu_squared"


class LeakyReLU(_InPlace):
    """x where it is positive, otherwise negative_slope * x."""

    function = "leaky_relu"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope


class PReLU(Module):
    """x where it is positive, otherwise weight * x: one learnt weight, or one a channel."""

    weight: Parameter
    _repr_format = "num_parameters={0.num_parameters}"

    def __init__(
        self, num_parameters: Count = 1, init: float = 0.25, *, dtype: DType = dtypes.float32
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype))

    @step_by_step(unless=lambda self: "" if self.num_parameters == 1 else "has a weight a step")
    def forward(self, input: Tensor) -> Tensor:
        """Elementwise; channels are the second dimension."""
        return table.prelu(input, self.weight)


class ELU(_InPlace):
    """x where it is positive, otherwise alpha * (exp(x) - 1) (Clevert et al. 2015)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha


class SELU(_InPlace):
    """ELU with the two constants that keep mean 0 and variance 1 (Klambauer et al. 2017)."""


class CELU(ELU):
    """x where it is positive, otherwise alpha * (exp(x / alpha) - 1) (Barron 2017)."""


class GELU(_Activation):
    """x times the normal cumulative distribution function at x."""

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        self.approximate = approximate


class SiLU(_InPlace):
    """x * sigmoid(x)."""


class Mish(_InPlace):
    """x * tanh(log(1 + exp(x))) (Misra 2019)."""


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold


class Softsign(_Activation):
    """x / (1 + |x|)."""


class Hardswish(_InPlace):
    """x * hardsigmoid(x) (Howard et al. 2019)."""


class Hardsigmoid(_InPlace):
    """(x + 3) / 6, clamped to 0..1."""


class Hardtanh(_InPlace):
    """x clamped to min_val..max_val."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        if not min_val < max_val:
            raise OptionError(
                f"Hardtanh: min_val must be below max_val, got {min_val} and {max_val}"
            )
        self.min_val = min_val
        self.max_val = max_val


class Threshold(_InPlace):
    """x where it is above the threshold, otherwise the value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value


class SoftCap(_Activation):
    """cap * tanh(x / cap), which limits logits to -cap..cap (Gemma 2, 2024)."""

    def __init__(self, cap: Cap) -> None:
        super().__init__()
        self.cap = cap


class Tanh(_Activation):
    """Hyperbolic tangent."""


class Tanhshrink(_Activation):
    """x - tanh(x)."""


class Sigmoid(_Activation):
    """1 / (1 + exp(-x))."""


class LogSigmoid(_Activation):
    """log(sigmoid(x))."""


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along `dim`."""


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along `dim`."""

    function = "log_softmax"


class Softmin(_AlongDim):
    """softmax(-x) along `dim`."""


class GLU(_AlongDim):
    """The first half along `dim` times the sigmoid of the second (Dauphin et al. 2016)."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)


class SwiGLU(GLU):
    """silu of the first half along `dim` times the second (Shazeer 2020)."""
