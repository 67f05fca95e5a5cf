"""First values of weights. Each function overwrites a tensor and returns it."""

from __future__ import annotations

from math import ceil, erf, isfinite, sqrt

from gradcli.devices import META
from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.argument import check_arguments
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import Count, NotNegative, Portion, format_value
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.ops.creation.like import empty_like
from gradcli.engine.ops.random.random import randperm
from gradcli.engine.random import Generator
from gradcli.engine.shape import numel
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity

_GAINS = {
    "linear": 1.0,
    **dict.fromkeys((f"conv{n}d" for n in (1, 2, 3)), 1.0),
    **dict.fromkeys((f"conv_transpose{n}d" for n in (1, 2, 3)), 1.0),
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": sqrt(2.0),
    "selu": 3 / 4,
}


@check_arguments
@no_grad()
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniformly distributed over a..b."""
    if tensor.device != META:  # which a size that no kernel draws at once must not stop
        tensor.uniform_(a, b, generator=generator)
    return tensor


@check_arguments
@no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: NotNegative = 1.0, generator: Generator | None = None
) -> Tensor:
    """Normally distributed numbers."""
    if tensor.device != META:
        tensor.normal_(mean, std, generator=generator)
    return tensor


@check_arguments
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    tensor.fill_(val)
    return tensor


@check_arguments
def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0)


@check_arguments
def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1)


@check_arguments
@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """1 on the diagonal of a matrix, 0 elsewhere."""
    _dimensions("eye_", tensor, (2,))
    zeros_(tensor)
    for i in range(min(tensor.shape)):
        tensor[i, i] = 1
    return tensor


@check_arguments
@no_grad()
def dirac_(tensor: Tensor, groups: Count = 1) -> Tensor:
    """1 in the middle of the window from each input channel to its own output, 0 elsewhere.

    Such a convolution (out, in, ...) passes on as many channels as it can; each group its own.
    """
    _dimensions("dirac_", tensor, (3, 4, 5))
    if tensor.shape[0] % groups:
        raise OptionError(
            f"dirac_: groups must divide the first size {tensor.shape[0]}, got {groups}"
        )
    zeros_(tensor)
    each = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            tensor[(group * each + channel, channel, *middle)] = 1
    return tensor


@check_arguments
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """How much wider weights must be for outputs of unit variance after an activation."""
    if nonlinearity == "leaky_relu":
        return sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise OptionError(
            f"calculate_gain: nonlinearity must be one of leaky_relu, {', '.join(_GAINS)}, "
            f"got {format_value(nonlinearity)}"
        )
    return _GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Inputs to and outputs of one unit: (fan_in, fan_out) of a weight (out, in, ...)."""
    if tensor.ndim < 2:
        raise ShapeError(f"init: fan in and out need 2 or more dimensions, got {tensor.shape}")
    window = numel(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _dimensions(name: str, tensor: Tensor, fitting: tuple[int, ...]) -> None:
    if tensor.ndim not in fitting:
        counts = " or ".join(map(str, fitting))
        raise ShapeError(
            f"{name}: the tensor must have {quantity(counts, 'dimension')}, got {tensor.shape}"
        )


def _fan(name: str, tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise OptionError(f"{name}: mode must be 'fan_in' or 'fan_out', got {format_value(mode)}")
    return fans(tensor)[mode.lower() == "fan_out"]


@check_arguments
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform with variance gain^2 / fan (He et al. 2015); `a` is the slope of leaky_relu."""
    if tensor.numel() == 0:
        return tensor
    bound = calculate_gain(nonlinearity, a) * sqrt(3 / _fan("kaiming_uniform_", tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


@check_arguments
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normally distributed with variance gain^2 / fan (He et al. 2015)."""
    if tensor.numel() == 0:
        return tensor
    std = calculate_gain(nonlinearity, a) / sqrt(_fan("kaiming_normal_", tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@check_arguments
def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    if tensor.numel() == 0:
        return tensor
    bound = gain * sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@check_arguments
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normally distributed with variance 2 gain^2 / (fan_in + fan_out)."""
    if tensor.numel() == 0:
        return tensor
    return normal_(tensor, 0.0, gain * sqrt(2 / sum(fans(tensor))), generator)


@check_arguments
@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: NotNegative = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normally distributed within a..b: numbers outside are drawn again."""
    if not (a < b and std > 0 and isfinite(mean)):
        raise OptionError(
            f"trunc_normal_: a must be below b and std above 0, got a={a}, b={b}, std={std}"
        )
    if tensor.device == META:
        return tensor  # no number that could fall outside
    inside = _below((b - mean) / std) - _below((a - mean) / std)
    if inside > 0.3:
        return _redraw_normal(tensor, mean, std, a, b, generator)
    # Few normal numbers would fall in there: even ones, each kept as often as its density says.
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    tensor.uniform_(a, b, generator=generator)
    luck = empty_like(tensor)
    pending = _too_seldom(tensor, luck, mean, std, peak, generator)
    while table.any(pending).item():
        redraw = empty_like(tensor)
        redraw.uniform_(a, b, generator=generator)
        tensor.copy_(table.where(pending, redraw, tensor))
        pending = table.logical_and(pending, _too_seldom(redraw, luck, mean, std, peak, generator))
    return tensor


def _below(x: float) -> float:
    """The share of normal numbers below x."""
    return (1 + erf(x / sqrt(2))) / 2


def _redraw_normal(
    tensor: Tensor, mean: float, std: NotNegative, a: float, b: float, generator: Generator | None
) -> Tensor:
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = table.logical_or(tensor < a, tensor > b)
        if not table.any(outside).item():
            return tensor
        redraw = empty_like(tensor)
        redraw.normal_(mean, std, generator=generator)
        tensor.copy_(table.where(outside, redraw, tensor))


def _too_seldom(
    x: Tensor, luck: Tensor, mean: float, std: NotNegative, peak: float, generator: Generator | None
) -> Tensor:
    """Where an even number between 0 and 1 is above the density, as a share of its peak."""
    luck.uniform_(0.0, 1.0, generator=generator)
    scaled = (x - mean) / std
    return table.log(luck) > scaled * scaled * -0.5 - peak


@check_arguments
@no_grad()
def sparse_(
    tensor: Tensor, sparsity: Portion, std: NotNegative = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal numbers, but 0 in a share `sparsity` of each column (Martens 2010)."""
    _dimensions("sparse_", tensor, (2,))
    rows, columns = tensor.shape
    count = ceil(sparsity * rows)
    tensor.normal_(0.0, std, generator=generator)
    if tensor.device == META:
        return tensor
    for column in range(columns):
        for row in randperm(rows, generator=generator)[:count].tolist():
            tensor[row, column] = 0
    return tensor


@check_arguments
@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Gain times a matrix with orthonormal rows, or orthonormal columns if there are more rows.

    All such matrices are equally likely (Saxe et al. 2014); the dimensions after the second count
    as columns.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: needs 2 or more dimensions, got {tensor.shape}")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    matrix = empty_like(tensor).reshape(rows, -1)
    matrix.normal_(0.0, 1.0, generator=generator)
    tall = rows >= matrix.shape[1]
    basis = _orthonormal((matrix.t() if tall else matrix).to(dtypes.float64))
    result = basis.t() if tall else basis
    tensor.copy_((gain * result).to(tensor.dtype).reshape(tensor.shape))
    return tensor


def _orthonormal(matrix: Tensor) -> Tensor:
    """Each row without its share in those above, at length 1 (Gram and Schmidt, done twice)."""
    basis = zeros(matrix.shape, dtype=matrix.dtype)
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for _ in range(2 if i else 0):
            row = row - (basis[:i] @ row) @ basis[:i]
        basis[i] = row / table.sqrt((row * row).sum())
    return basis


def weight_and_bias_(weight: Tensor, bias: Tensor | None) -> None:
    """Both evenly spread within 1 / sqrt(fan_in), as torch begins linear and conv layers."""
    kaiming_uniform_(weight, a=sqrt(5))
    if bias is not None:
        fan_in, _ = fans(weight)
        bound = 1 / sqrt(fan_in) if fan_in else 0.0
        uniform_(bias, -bound, bound)
