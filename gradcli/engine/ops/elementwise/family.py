"""Families: what elementwise ops share, so that one row of maths and one line declare an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import graph, observing, table
from gradcli.engine import shape as shapes
from gradcli.engine.argument import too_large
from gradcli.engine.array import Array, mapped, result, scalar, unbroadcast
from gradcli.engine.device.cpu import KERNELS
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.double_backward import sum_to
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Kind, Operand
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.elementwise.slopes import slope
from gradcli.engine.sample import SHAPES, Sample, Wrong, away_from, positive, sample, unit
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError

UNARY_SAMPLES = tuple(sample(shape) for shape in SHAPES)
POSITIVE_SAMPLES = tuple(sample(positive(shape)) for shape in SHAPES)
NONZERO_SAMPLES = tuple(sample(away_from(shape)) for shape in SHAPES)
UNIT_SAMPLES = tuple(sample(unit(shape)) for shape in SHAPES)
BINARY_SAMPLES = (
    sample((3, 5), (3, 5)),
    sample((3, 1), (1, 4)),
    sample((2, 3, 4), (4,)),
    sample((), (2, 3)),
    sample((2, 1, 3), (5, 1)),
    sample((0, 3), (1, 3)),
)
DIVISION_SAMPLES = (
    sample((3, 5), positive((3, 5))),
    sample((3, 1), positive((1, 4))),
    sample((2, 3, 4), positive((4,))),
    sample((0, 3), positive((1, 3))),
)
_OPERAND = Kind.of(Operand)
_EXACT = 1 << 53  # below it every whole number is a double
Slope = Callable[..., Array]
Derivative = Callable[..., Tensor]


def as_float(x: Array) -> Array:
    """Integers and bools become float32, as torch does in exp, sqrt and the like."""
    return x if x.dtype.is_floating_point else x.cast(dtypes.float32)


def map_unary(kernel: str, x: Array, options: Sequence[float] = ()) -> Array:
    """Run an elementwise kernel of one input."""
    return result(kernel, x.contiguous(), shape=x.shape, dtype=x.dtype, options=options)


def map_slope(kernel: str, options: Sequence[float], saved: Array, grad: Array) -> Array:
    """The gradient times the slope at the saved value."""
    return result(
        f"{kernel}_backward",
        saved.contiguous(),
        grad.contiguous(),
        shape=saved.shape,
        dtype=saved.dtype,
        options=options,
    )


def map_binary(
    kernel: str,
    a: Array,
    b: Array,
    dtype: DType | None = None,
    options: Sequence[float] = (),
) -> Array:
    """Run an elementwise kernel of two inputs, broadcast against each other."""
    shape = a.shape
    if shape != b.shape:
        shape = shapes.broadcast(shape, b.shape, kernel)
        a, b = a.expand(shape, kernel), b.expand(shape, kernel)
    dtype = dtype or dtypes.beside(a.dtype, b.dtype)
    return result(kernel, a, b, shape=shape, dtype=dtype, options=options)


def unary(
    name: str,
    doc: str,
    *,
    samples: Sequence[Sample] = UNARY_SAMPLES,
    whole: str = "",
) -> Op[Tensor]:
    """An op of one float input, from its row in scalar_ops.h.

    `whole` names the kernel that does the same to whole numbers and 0, where they stay whole.
    """
    facts = FACTS[name]

    def forward(x: Array) -> Array:
        if whole and not x.dtype.is_floating_point:
            return map_binary(whole, x, scalar(0, x.dtype))
        return map_unary(name, as_float(x))

    forward.__doc__ = doc
    op = UnaryOp(forward, name=name, saves=facts.saved, samples=samples, formula=facts.formula)
    op.slope = "; ".join(facts.slope)

    declare_slope(op, lambda: (name, ()))

    def from_x(grad: Array, *, x: Array) -> Array:
        return map_slope(name, (), x, grad)

    def from_y(grad: Array, *, y: Array) -> Array:
        return map_slope(name, (), y, grad)

    op.gradient(from_x if facts.saved == "x" else from_y)  # quicker than for any row
    return declare_op(op)


def declare_slope(op: Op[Tensor], row: Callable[..., tuple[str, Sequence[float]]]) -> None:
    """Declare the gradient of an op of one input: a row of scalar_ops.h, and ops of the row's text.

    `row` maps the op's options to the name of the row and its p and q.
    """
    (name,) = op.saves

    def gradient(grad: Array, **values: Any) -> Array:
        saved = values.pop(name)
        return map_slope(*row(**values), saved, grad)

    def with_ops(grad: Tensor, **values: Any) -> Tensor:
        saved = values.pop(name)
        kernel, options = row(**values)
        numbers = dict(zip("pq", options, strict=False))
        return times(grad, slope(FACTS[kernel].slope[0], {name: saved, **numbers}))

    op.gradient(gradient)
    op.double_backward(with_ops, (name, *op.options))


def declare_sign_slope(op: Op[Tensor]) -> None:
    """Declare the gradient with ops: the sign of the saved value, a constant, in one call."""
    (name,) = op.saves

    def with_ops(grad: Tensor, **values: Tensor) -> Tensor:
        return grad * values[name].detach().sign()

    op.double_backward(with_ops, (name,))


def times(grad: Tensor, factor: Tensor | float) -> Tensor:
    """A gradient times a slope, which is often 1 or -1."""
    if isinstance(factor, float) and abs(factor) == 1:
        return grad if factor == 1 else -grad
    return grad * factor


def declare_flat(op: Op[Tensor]) -> None:
    """Declare the gradient of an op that is flat almost everywhere: 0."""
    op.gradient(lambda grad: map_binary("mul", grad, scalar(0, grad.dtype)))
    op.double_backward(lambda grad: grad * 0.0)


def piecewise_constant(name: str, doc: str, *, samples: Sequence[Sample]) -> Op[Tensor]:
    """An op that is flat almost everywhere: its gradient is 0."""

    def forward(x: Array) -> Array:
        if x.dtype.is_floating_point:
            return map_unary(name, x)
        return map_unary(name, x.cast(dtypes.float64)).cast(x.dtype) if name == "sign" else x.copy()

    forward.__doc__ = doc
    op = UnaryOp(forward, name=name, samples=samples, formula=FACTS[name].formula)
    op.slope = "0"
    declare_flat(op)
    return declare_op(op)


def matched(op: str, a: object, b: object, *, floats: bool = False) -> tuple[Tensor, Tensor]:
    """Two operands as Tensors of one element type, by torch's promotion rules.

    A Python number, or a tensor without dimensions, only changes the other's type when it is of
    a higher kind (bool < int < float).
    """
    if type(a) not in _OPERAND.quick:
        a = _OPERAND.convert_argument(op, "input", a)
    if type(b) not in _OPERAND.quick:
        b = _OPERAND.convert_argument(op, "other", b)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise DTypeError(f"{op}: input or other must be a Tensor, got {a!r} and {b!r}")
    left, right = _dtype_of(a), _dtype_of(b)
    weak_left, weak_right = _is_weak(a, b), _is_weak(b, a)
    if weak_left and not weak_right:
        common = dtypes.promote_weak(right, left)
    elif weak_right and not weak_left:
        common = dtypes.promote_weak(left, right)
    else:
        common = dtypes.promote(left, right)
    if floats and not common.is_floating_point:
        common = dtypes.float32
    return _as(a, common), _as(b, common)


def _dtype_of(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else dtypes.of_scalar(value)


def _is_weak(value: object, other: object) -> bool:
    if not isinstance(value, Tensor):
        return True
    return value.ndim == 0 and isinstance(other, Tensor) and other.ndim > 0


def _as(value: Any, dtype: DType) -> Tensor:
    if isinstance(value, Tensor):
        return value if value.dtype is dtype else table.to(value, dtype)
    return Tensor(scalar(value, dtype))


def is_watched(asks: object) -> bool:
    """Whether an observer is told of a call, or backward needs it."""
    return observing.current() is not None or (asks is not None and graph.grad_enabled())


class UnaryOp(Op[Tensor]):
    """An op of one input that is one kernel on floats."""

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """The op on its input."""
        if len(args) == 1 and not keywords and isinstance(args[0], Tensor):
            x = args[0]
            if not is_watched(x.node or x.leaf):
                y = mapped(KERNELS[self.name], x.array)
                if y is not None:
                    return Tensor(y)
        return super().__call__(*args, **keywords)


class BinaryOp(Op[Tensor]):
    """An op of two inputs that takes Python numbers too and promotes element types.

    Attributes:
        floats: whether it gives floats, also of whole numbers, as true division does.
        maps: whether it is one kernel on floats of one shape and type ...
        truth: ... and the answer true or false.
    """

    input_type = Operand
    floats = False
    maps = False
    truth = False

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """The op on both inputs."""
        if self.maps and len(args) == 2 and not keywords and isinstance(args[0], Tensor):
            a, b = args
            array = a.array
            if isinstance(b, Tensor):
                asks, operand = a.node or a.leaf or b.node or b.leaf, b.array
            elif (type(b) is float or (type(b) is int and -_EXACT < b < _EXACT)) and (
                array.dtype.is_floating_point
            ):
                asks, operand = a.node or a.leaf, scalar(b, array.dtype)
            else:
                return super().__call__(*args)
            if not is_watched(asks):
                dtype = dtypes.bool_ if self.truth else None
                y = mapped(KERNELS[self.name], array, operand, dtype)
                if y is not None:
                    return Tensor(y)
        return super().__call__(*args, **keywords)

    def _bind(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        if len(args) == 2 and not keywords:
            a, b = args
            if isinstance(a, Tensor):
                dtype = a.array.dtype
                if isinstance(b, Tensor):  # neither changes its type: most calls, and soon told
                    if b.array.dtype is dtype and (dtype.is_floating_point or not self.floats):
                        return [a, b], {}
                elif (type(b) is float or type(b) is int) and dtype.is_floating_point:
                    try:
                        return [a, Tensor(scalar(b, dtype))], {}
                    except OverflowError:
                        raise too_large(self.name, {"other": b}) from None
        return self._bind_unlike(args, keywords)

    def _bind_unlike(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        arguments = dict(zip(("input", "other"), args, strict=False)) | keywords
        if set(arguments) != {"input", "other"} or len(args) + len(keywords) != 2:
            raise DTypeError(f"{self.name}: takes (input, other), got {sorted(arguments)}")
        return list(
            matched(self.name, arguments["input"], arguments["other"], floats=self.floats)
        ), {}


def binary(
    name: str,
    doc: str,
    slopes: tuple[Slope, Slope] | None = None,
    derivatives: tuple[Derivative, Derivative] | None = None,
    *,
    saves: Sequence[str] = (),
    samples: Sequence[Sample] = BINARY_SAMPLES,
    wrong: Sequence[Wrong] = (),
    floats: bool = False,
    text: str = "",
    kind: type[BinaryOp] = BinaryOp,
    forward: Callable[..., Array] | None = None,
) -> Op[Tensor]:
    """An op of two broadcast inputs, of which both gradients are declared.

    Each of `slopes` maps the incoming gradient and what `saves` names to one full gradient, which
    is then summed over what broadcasting had repeated; the rows of scalar_ops.h that have slopes
    need none. `derivatives` do the same with Tensors; without them a text is read, the row's own or
    `text`.
    Where `kind` takes options, and sees to them, `forward` declares them.
    """

    def plain(input: Array, other: Array) -> Array:
        return map_binary(name, input, other)

    forward = forward or plain
    forward.__doc__ = doc
    facts = FACTS[name]
    if slopes is None:
        slopes = (_row_slope(f"{name}_backward_a"), _row_slope(f"{name}_backward_b"))
        saves = ("input", "other", "y")
    about: dict[str, Any] = {"samples": samples, "wrong": wrong, "formula": facts.formula}
    op = kind(forward, name=name, saves=saves, **about)
    op.floats = floats
    op.maps = True
    texts = facts.slope or tuple(text.split("; "))
    op.slope = "; ".join(texts)

    def gradient(
        grad: Array, *, needs: tuple[bool, ...], shapes: tuple[shapes.Shape, ...], **values: Array
    ) -> tuple[Array | None, ...]:
        for option in op.options:
            del values[option]
        return tuple(
            unbroadcast(to_input(grad, **values), shape) if need else None
            for to_input, need, shape in zip(slopes, needs, shapes, strict=True)
        )

    op.gradient(gradient)
    _declare_derivatives(op, derivatives or (_derivative(texts[0]), _derivative(texts[1])))
    return declare_op(op)


def _derivative(text: str) -> Derivative:
    """The gradient times a slope in a, b and y."""
    return lambda grad, *values: times(grad, slope(text, dict(zip("aby", values, strict=False))))


def _declare_derivatives(op: Op[Tensor], derivatives: tuple[Derivative, Derivative]) -> None:
    def graph(
        grad: Tensor, *, needs: tuple[bool, ...], shapes: tuple[shapes.Shape, ...], **values: Tensor
    ) -> tuple[Tensor | None, ...]:
        return tuple(
            sum_to(derivative(grad, *values.values()), shape) if need else None
            for derivative, need, shape in zip(derivatives, needs, shapes, strict=True)
        )

    op.double_backward(graph, op.saves)


def _row_slope(kernel: str) -> Slope:
    """The slope of a BINARY_REAL row: a kernel of its own for each input."""

    def to_input(grad: Array, *, input: Array, other: Array, y: Array) -> Array:
        a, b = input.expand(y.shape), other.expand(y.shape)
        return result(kernel, a, b, y, grad, shape=y.shape, dtype=y.dtype)

    return to_input


def comparison(name: str, doc: str) -> Op[Tensor]:
    """Elementwise truth of two broadcast inputs, as a bool tensor."""

    def forward(input: Array, other: Array) -> Array:
        return map_binary(name, input, other, dtypes.bool_)

    forward.__doc__ = doc
    op = BinaryOp(
        forward,
        name=name,
        samples=BINARY_SAMPLES,
        formula=FACTS[name].formula,
        why="the answer is true or false",
    )
    op.maps = op.truth = True
    return declare_op(op)
