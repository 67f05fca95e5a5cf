"""Slopes: derivatives as scalar_ops.h writes them, read from its text and computed with ops.

So an elementwise derivative is written once: compiled it gives gradients, and read it gives
gradients that have gradients themselves. The text is an expression of C in what is kept (x or y;
a, b and y of two inputs) and the options p and q: + - * /, comparisons, && and ||, `c ? t : f`,
R(0.5) for 0.5, and functions, of which `m_exp` is the op `exp`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gradcli.engine import table
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor

Value = Any  # a Tensor, or a number or truth value of Python
# A number or a name; ("call", function, arguments ...), ("?", condition, then, otherwise), or an
# operator and its operands.
Node = float | str | tuple[Any, ...]

_TOKEN = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\w+|[<>=!]=|&&|\|\||[-+*/<>?:(),])")
_BINDING = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/"))
_LEVELS = {token: level for level, tokens in enumerate(_BINDING, 1) for token in tokens}
_OPERATORS: dict[str, Callable[..., Value]] = {
    "||": lambda a, b: table.logical_or(a, b),
    "&&": lambda a, b: table.logical_and(a, b),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "negative": operator.neg,
}


class _FormulaParser:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            token = _TOKEN.match(text, at)
            assert token, f"'{text}' has something at {at} that no slope has"
            self._tokens.append(token[1])
            at = token.end()
        self._at = 0

    def read(self) -> Node:
        """The whole text."""
        node = self._expression()
        assert self._next() == "", f"'{self._text}' goes on behind its end: {self._next()}"
        return node

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self._next()
        assert token and expected in ("", token), f"'{self._text}' lacks a '{expected}'"
        self._at += 1
        return token

    def _expression(self, level: int = 0) -> Node:
        """Operators that bind more than this level."""
        first = self._operand()
        while (own := _LEVELS.get(self._next(), 0)) > level:
            first = (self._take(), first, self._expression(own))
        if level or self._next() != "?":
            return first
        self._take("?")
        then = self._expression()
        self._take(":")
        return "?", first, then, self._expression()

    def _operand(self) -> Node:
        token = self._take()
        if token == "-":
            return "negative", self._operand()
        if token == "(":
            inner = self._expression()
            self._take(")")
            return inner
        if token[0].isdigit():
            return float(token)
        assert token.isidentifier(), f"'{self._text}' has '{token}' in the place of a value"
        return self._call(token) if self._next() == "(" else token

    def _call(self, function: str) -> Node:
        arguments = []
        while self._take() != ")":
            arguments.append(self._expression())
            assert self._next() in (",", ")"), f"'{self._text}' lacks a ')'"
        return arguments[0] if function == "R" else ("call", function, *arguments)


@cache
def parsed(text: str) -> Node:
    """The expression that a text is."""
    return _FormulaParser(text).read()


def slope(text: str, values: Mapping[str, Value]) -> Value:
    """What a slope is where its names have these values."""
    return _value(parsed(text), values)


def _value(node: Node, values: Mapping[str, Value]) -> Value:
    if isinstance(node, float):
        return node
    if isinstance(node, str):
        return values[node]
    if node[0] == "?":
        return _conditional(node, values)
    if node[0] == "call":
        return _function(node[1])(*(_value(argument, values) for argument in node[2:]))
    return _OPERATORS[node[0]](*(_value(operand, values) for operand in node[1:]))


def _conditional(node: tuple[Any, ...], values: Mapping[str, Value]) -> Value:
    """`condition ? then : otherwise`, each with gradients only where it is taken."""
    if node == ("?", ("<", node[3], 0.0), ("negative", node[3]), node[3]):
        return _value(node[3], values).abs()  # whose slope at 0 is 0, and not that of one side
    condition = _value(node[1], values)
    if not isinstance(condition, Tensor):
        return _value(node[2 if condition else 3], values)
    then = _value(node[2], _where_taken(node[2], values, condition, when_true=True))
    if node[3] in values and node[1] == ("==", node[3], node[3]):
        otherwise = values[node[3]].detach()  # NaN, which has no slope
    else:
        otherwise = _value(node[3], _where_taken(node[3], values, condition, when_true=False))
    if not isinstance(then, Tensor) and not isinstance(otherwise, Tensor):
        like = next(value for value in values.values() if isinstance(value, Tensor))
        then = tensor(float(then), dtype=like.dtype)
    return table.where(condition, then, otherwise)


def _where_taken(
    node: Node, values: Mapping[str, Value], condition: Tensor, *, when_true: bool
) -> Mapping[str, Value]:
    """The values, without history where this branch is not taken.

    What would flow back from there is 0 times a slope that may be infinite: NaN.
    """
    if not _may_overflow(node):
        return values

    def cut(value: Value) -> Value:
        if not isinstance(value, Tensor) or not value.requires_grad:
            return value
        pair = (value, value.detach()) if when_true else (value.detach(), value)
        return table.where(condition, *pair)

    return {name: cut(value) for name, value in values.items()}


def _may_overflow(node: Node) -> bool:
    """Whether there is a function in it, or a division."""
    if not isinstance(node, tuple):
        return False
    return node[0] in ("call", "/") or any(_may_overflow(operand) for operand in node[1:])


# -- functions that are no ops: as maths_shared.h and maths_loss.h have them -----------------------


def _function(name: str) -> Callable[..., Value]:
    own = name.removeprefix("m_")
    return _OWN.get(own) or OPS[own]


def _silu_slope(x: Tensor) -> Tensor:
    share = x.sigmoid()
    return share * (1 + x * (1 - share))


def _mish_slope(x: Tensor) -> Tensor:
    low = table.clamp(x, max=30.0)  # where the share is 1
    share = table.softplus(low).tanh()
    return share + low * (1 - share * share) * low.sigmoid()


def _gelu_tanh_slope(x: Tensor) -> Tensor:
    c, k = 0.7978845608028654, 0.044715  # sqrt(2 / pi)
    t = (c * (x + k * x * x * x)).tanh()
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (c * (1 + 3 * k * x * x))


def _atan2_slope(b: Tensor, a: Tensor) -> Tensor:
    """The slope b / (a^2 + b^2), and 0 at the origin."""
    origin = table.logical_and(a == 0, b == 0)
    size = table.hypot(table.where(origin, 1.0, a), table.where(origin, 1.0, b))
    return table.where(origin, 0.0, b / size / size)


def _pow_slope(a: Tensor, b: Tensor, y: Tensor) -> Tensor:
    """The slope y log a; where a is 0 the limit is 0 for b > 0."""
    return y * table.where(table.logical_and(a == 0, b >= 0), 1.0, a).log()


def _bce_slope(a: Tensor, b: Tensor) -> Tensor:
    return (a - b) / table.clamp((1 - a) * a, min=TINY)


TINY = 9.999999960041972e-13  # 1e-12 as a float32, as torch has it in every type
_OWN: dict[str, Callable[..., Value]] = {
    "silu_slope": _silu_slope,
    "mish_slope": _mish_slope,
    "gelu_tanh_slope": _gelu_tanh_slope,
    "normal_cdf": lambda x: 0.5 * table.erfc(x * -0.7071067811865476),
    "exp_negative": lambda x: table.exp(x),
    "atan2_slope": _atan2_slope,
    "pow_slope": _pow_slope,
    "bce_slope": _bce_slope,
    "log_1_plus": lambda x: table.log1p(x),
    "floor": lambda x: table.floor(x.detach()),  # flat
    "trunc": lambda x: table.trunc(x.detach()),
}
