"""First values of a layer's weights by name: typed constructors, each the schema of its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from gradcli.config.merge import without
from gradcli.config.node import Node, Report
from gradcli.config.sections import Chosen, choose
from gradcli.config.signal import Fitted
from gradcli.engine.kind import Count, Finite, NotNegative, Portion, Positive
from gradcli.errors import OptionError

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn

Fill = Callable[["Tensor"], None]

Fan = Literal["fan_in", "fan_out"]
Activation = Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]


def _filler(name: str, **options: Any) -> Fill:
    """A function that fills a weight."""

    def fill(weight: Tensor) -> None:
        from gradcli.engine.nn import init

        getattr(init, name)(weight, **options)

    return fill


def uniform(*, a: Finite = 0.0, b: Finite = 1.0) -> Fill:
    """Evenly spread over a..b."""
    return _filler("uniform_", a=a, b=b)


def normal(*, mean: Finite = 0.0, std: NotNegative = 1.0) -> Fill:
    """Normally distributed."""
    return _filler("normal_", mean=mean, std=std)


def trunc_normal(
    *, mean: Finite = 0.0, std: Positive = 1.0, a: Finite = -2.0, b: Finite = 2.0
) -> Fill:
    """Normally distributed within a..b."""
    if not a < b:
        raise OptionError(f"a must be below b, got {a} and {b}")
    return _filler("trunc_normal_", mean=mean, std=std, a=a, b=b)


def constant(val: Finite) -> Fill:
    """One number everywhere."""
    return _filler("constant_", val=val)


def zeros() -> Fill:
    """0 everywhere."""
    return _filler("zeros_")


def ones() -> Fill:
    """1 everywhere."""
    return _filler("ones_")


def eye() -> Fill:
    """1 on the diagonal of a matrix."""
    return _filler("eye_")


def dirac(*, groups: Count = 1) -> Fill:
    """A convolution that hands on its channels."""
    return _filler("dirac_", groups=groups)


def xavier_uniform(*, gain: Finite = 1.0) -> Fill:
    """Evenly spread with variance 2 gain^2 / (fan_in + fan_out)."""
    return _filler("xavier_uniform_", gain=gain)


def xavier_normal(*, gain: Finite = 1.0) -> Fill:
    """Normally distributed with variance 2 gain^2 / (fan_in + fan_out)."""
    return _filler("xavier_normal_", gain=gain)


def kaiming_uniform(
    *, a: Finite = 0.0, mode: Fan = "fan_in", nonlinearity: Activation = "leaky_relu"
) -> Fill:
    """Evenly spread with variance gain^2 / fan."""
    return _filler("kaiming_uniform_", a=a, mode=mode, nonlinearity=nonlinearity)


def kaiming_normal(
    *, a: Finite = 0.0, mode: Fan = "fan_in", nonlinearity: Activation = "leaky_relu"
) -> Fill:
    """Normally distributed with variance gain^2 / fan."""
    return _filler("kaiming_normal_", a=a, mode=mode, nonlinearity=nonlinearity)


def sparse(sparsity: Portion, *, std: NotNegative = 0.01) -> Fill:
    """Normally distributed, with 0 in a share of each column."""
    return _filler("sparse_", sparsity=sparsity, std=std)


def orthogonal(*, gain: Finite = 1.0) -> Fill:
    """Orthonormal rows or columns, times gain."""
    return _filler("orthogonal_", gain=gain)


INITS: dict[str, Callable[..., Fill]] = {
    "uniform": uniform,
    "normal": normal,
    "trunc_normal": trunc_normal,
    "constant": constant,
    "zeros": zeros,
    "ones": ones,
    "eye": eye,
    "dirac": dirac,
    "xavier_uniform": xavier_uniform,
    "xavier_normal": xavier_normal,
    "kaiming_uniform": kaiming_uniform,
    "kaiming_normal": kaiming_normal,
    "sparse": sparse,
    "orthogonal": orthogonal,
}


def filled(fitted: Fitted, fill: Fill) -> Fitted:
    """The layer with its weights filled: all parameters of two or more dimensions."""

    def made() -> nn.Module:
        module = fitted.make()
        for parameter in module.parameters():
            if parameter.ndim >= 2:
                fill(parameter)
        return module

    return fitted._replace(make=made)


def chosen_init(fields: Node, title: str, report: Report) -> tuple[Chosen | None, Node]:
    """What a layer's `init:` names, and the layer's fields without it."""
    given = fields.map().get("init")
    if given is None:
        return None, fields
    return choose(f"{title}: init", given, INITS, report), without(fields, "init")
