"""Elements of one tensor or another, as a condition says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine import table
from gradcli.engine.array import Array, empty, run, scalar, unbroadcast
from gradcli.engine.kind import Operand
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.elementwise.family import matched
from gradcli.engine.sample import sample, truth, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError


class _Where(Op[Tensor]):
    """Takes Python numbers too, and promotes element types; of one tensor it gives the places."""

    @cached_property
    def hints(self) -> dict[str, Any]:
        """What each argument may be, as an annotation."""
        return {"condition": Tensor, "input": Operand, "other": Operand}

    @overload
    def __call__(self, condition: Tensor, input: Operand, other: Operand) -> Tensor: ...
    @overload
    def __call__(self, condition: Tensor) -> tuple[Tensor, ...]: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Chosen elements, or places."""
        if len(args) + len(keywords) == 1:
            return table.nonzero(*args, *keywords.values(), as_tuple=True)
        return super().__call__(*args, **keywords)

    def _bind(
        self, args: Sequence[object], keywords: dict[str, object]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        arguments = dict(zip(("condition", "input", "other"), args, strict=False)) | keywords
        if set(arguments) != {"condition", "input", "other"} or len(args) + len(keywords) != 3:
            raise DTypeError(f"where: takes (condition, input, other), got {sorted(arguments)}")
        condition = self._input("condition", arguments["condition"])
        a, b = arguments["input"], arguments["other"]
        if not isinstance(a, Tensor) and not isinstance(b, Tensor) and isinstance(a, (int, float)):
            a = tensor(a)
        return [condition, *matched("where", a, b)], {}


def _where(condition: Array, input: Array, other: Array) -> Array:
    """`input` where the condition is true, otherwise `other`; all three broadcast."""
    if condition.dtype is not dtypes.bool_:
        raise DTypeError(f"where: condition must be bool, got {condition.dtype}")
    shape = shape_rules.broadcast(input.shape, other.shape, "where")
    shape = shape_rules.broadcast(condition.shape, shape, "where")
    out = empty(shape, dtypes.beside(input.dtype, other.dtype))
    run("where", condition.expand(shape), input.expand(shape), other.expand(shape), out)
    return out


where = _Where(
    _where,
    name="where",
    saves="condition",
    double_backward="linear",
    samples=[
        sample(truth((3, 5)), (3, 5), (3, 5)),
        sample(truth((3, 1)), (1, 4), ()),
        sample(truth((4,)), (2, 3, 4), (3, 1)),
        sample(truth((2, 3)), (), ()),
        sample(truth((0, 3)), (1, 3), (1,)),
    ],
    wrong=[wrong(sample(truth((3,)), (4,), (1,)), "shapes (3,) and (4,) do not broadcast")],
)
declare_op(where, method=False)


@where.gradient
def where_gradient(
    grad: Array, *, condition: Array, shapes: tuple[Shape, ...], needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """To the one that was taken; 0 to the other."""
    nothing = scalar(0.0, grad.dtype)
    to_input = unbroadcast(_where(condition, grad, nothing), shapes[1]) if needs[1] else None
    to_other = unbroadcast(_where(condition, nothing, grad), shapes[2]) if needs[2] else None
    return None, to_input, to_other
