"""Writing through every kind of view, in every way: it reaches the base, or it is refused.

Which ops give views is what they declare; a base counts its elements, so that what a view shows
tells which of them it is.
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from variants import variants

from gradcli import engine
from gradcli.engine import Tensor, gradcheck, nn
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.sample import Sample
from gradcli.errors import AutogradError, CaptureError, ShapeError

Write = Callable[[Tensor, Any], object]


def assign(x: Tensor, index: Any, value: Any) -> None:
    x[index] = value


def operator(name: str) -> Write:
    return lambda v, y: getattr(v, name)(y)


# How a view is written to, with a number or a tensor of its shape, and what its elements become.
WRITES: dict[str, tuple[Write, Callable[[float, float], float]]] = {
    "x[...] = y": (lambda v, y: assign(v, ..., y), lambda a, b: b),
    "x[mask] = y": (lambda v, y: assign(v, v > -1, y.reshape(-1)), lambda a, b: b),
    "+=": (operator("__iadd__"), lambda a, b: a + b),
    "-=": (operator("__isub__"), lambda a, b: a - b),
    "*=": (operator("__imul__"), lambda a, b: a * b),
    "/=": (operator("__itruediv__"), lambda a, b: a / b),
    "add_": (lambda v, y: v.add_(y), lambda a, b: a + b),
    "sub_": (lambda v, y: v.sub_(y, alpha=2), lambda a, b: a - 2 * b),
    "mul_": (lambda v, y: v.mul_(y), lambda a, b: a * b),
    "copy_": (lambda v, y: v.copy_(y), lambda a, b: b),
    "lerp_": (lambda v, y: v.lerp_(y, 0.5), lambda a, b: (a + b) / 2),
    "masked_fill_": (lambda v, y: v.masked_fill_(v > -1, y.reshape(-1)[0]), lambda a, b: b),
}
ALONE: dict[str, tuple[Callable[[Tensor], object], Callable[[float], float]]] = {
    "zero_": (lambda v: v.zero_(), lambda a: 0.0),
    "fill_": (lambda v: v.fill_(3), lambda a: 3.0),
    "clamp_": (lambda v: v.clamp_(1, 2), lambda a: min(max(a, 1.0), 2.0)),
    "neg_": (lambda v: v.neg_(), lambda a: -a),
    "square_": (lambda v: v.square_(), lambda a: a * a),
}


def counted(sample: Sample) -> list[Tensor | None]:
    """The inputs of a sample; those of floats count their elements from 0 on."""
    made = gradcheck.make_inputs(sample, dtype=engine.float32)
    return [
        x if x is None or not x.is_floating_point() else engine.arange(0.0, x.numel()).view(x.shape)
        for x in made
    ]


def views_of(op: Row, sample: Sample, inputs: list[Tensor | None]) -> list[tuple[Tensor, Tensor]]:
    """The results that lie in an input's memory, each with that input, its base."""
    try:
        outputs = gradcheck.call(op, sample, inputs)
    except CaptureError:
        raise
    except Exception:
        assert sample not in op.samples
        return []  # a call near a sample may be a wrong one
    floats = [x for x in inputs if x is not None and x.is_floating_point()]
    return [
        (y, x)
        for y in outputs
        for x in floats
        if y.numel() and y.array.storage is x.array.storage and y is not x
    ]


VIEWING = [op for op in every_op() if op.shares in ("view", "repeats", "either")]
CASES = [
    pytest.param(op, sample, id=f"{op.name}{sample}")
    for op in VIEWING
    for sample in variants(op)
    if views_of(op, sample, counted(sample))
]


NO_VIEWS = {"alpha_dropout", "contiguous", "dropout1d", "dropout2d", "positive", "require_finite"}
NO_VIEWS |= {
    "bfloat16",
    "bool",
    "double",
    "float",
    "int",
    "long",
    "to",
    "type_as",
}  # the input itself


def pairs(op: Row, sample: Sample) -> list[tuple[Tensor, Tensor]]:
    """Fresh bases, and their views."""
    return views_of(op, sample, counted(sample))


def test_every_op_that_is_said_to_give_views_is_tried() -> None:
    tried = {case.values[0].name for case in CASES}
    lacking = {op.name for op in VIEWING} - tried
    assert lacking == NO_VIEWS


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_a_write_reaches_the_base(op: Row, sample: Sample) -> None:
    for name, (write, formula) in WRITES.items():
        for i in range(len(pairs(op, sample))):
            view, base = pairs(op, sample)[i]
            places = [int(a) for a in view.reshape(-1).tolist()]
            before = base.reshape(-1).tolist()
            wanted = list(before)
            for place in places:
                wanted[place] = formula(float(place), 4.0)
            repeats = len(set(places)) < len(places)
            try:
                write(view, engine.full(view.shape, 4.0))
            except ShapeError as error:
                assert repeats and "all distinct" in str(error), name
                wanted = before
            if not repeats or op.name != "unfold":  # whose windows may be changed more than once
                assert base.reshape(-1).tolist() == wanted, name


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_a_function_in_place_reaches_the_base(op: Row, sample: Sample) -> None:
    for name, (write, formula) in ALONE.items():
        view, base = pairs(op, sample)[0]
        wanted = base.reshape(-1).tolist()
        places = {int(a) for a in view.reshape(-1).tolist()}
        if len(places) == view.numel():
            for place in places:
                wanted[place] = formula(float(place))
            write(view)
            assert base.reshape(-1).tolist() == wanted, name


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_a_recorded_write_is_refused(op: Row, sample: Sample) -> None:
    """For the base would not see it; and nothing is changed."""
    for name, (write, _) in WRITES.items():
        for view, base in pairs(op, sample):
            before, shown = base.tolist(), view.tolist()
            weight = engine.full(view.shape, 4.0, requires_grad=True)
            with pytest.raises(AutogradError, match="no gradient passes through writing in"):
                write(view, weight * 2)
            assert (base.tolist(), view.tolist()) == (before, shown), name


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_a_recorded_function_in_place_is_refused(op: Row, sample: Sample) -> None:
    inputs = counted(sample)
    for x in inputs:
        if x is not None and x.is_floating_point():
            x.requires_grad_()
    for name, (write, _) in ALONE.items():
        for view, base in views_of(op, sample, inputs):
            before = base.tolist()
            with pytest.raises(AutogradError, match="no gradient passes through writing in"):
                write(view)
            assert base.tolist() == before, name


class Whole(engine.autograd.Function):
    """Gives its argument as a view."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view(x.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def with_grad(x: Tensor) -> Tensor:
    leaf = engine.zeros(x.shape, requires_grad=True)
    leaf.grad = x
    found = leaf.grad
    assert found is not None
    return found


def with_data(x: Tensor) -> Tensor:
    made = engine.ones(x.shape)
    made.data = x
    return made


def hooked(x: Tensor) -> Tensor:
    module = nn.Identity()
    module.register_full_backward_hook(lambda *_: None)
    result: Tensor = module(x.requires_grad_())
    return result


OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "data =": with_data,
    "grad": with_grad,
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "[:]": lambda x: x[:],
    "[...]": lambda x: x[...],
    "copy.copy": copy.copy,
    "Parameter": lambda x: nn.Parameter(x, requires_grad=False),
    "Flatten": lambda x: nn.Flatten(0)(x),
    "Dropout": lambda x: nn.Dropout().eval()(x),
    "iter": lambda x: next(iter(x.view(1, -1))),
    "from_dlpack": lambda x: engine.from_dlpack(x),
    "Function": lambda x: Whole.apply(x.detach()),
    "view of a view": lambda x: x.view(4).detach().view(2, 2),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("way", WRITES)
def test_views_that_no_op_declares_are_not_lost(name: str, way: str) -> None:
    base = engine.arange(0.0, 4.0).view(2, 2).clone()
    view = OTHERS[name](base)
    with pytest.raises(AutogradError, match="no gradient passes through writing in"):
        WRITES[way][0](view, engine.full(view.shape, 4.0, requires_grad=True) * 2)
    assert base.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    with engine.no_grad():
        WRITES[way][0](view, engine.full(view.shape, 4.0))
    wanted = [WRITES[way][1](float(a), 4.0) for a in range(4)]
    assert base.reshape(-1).tolist() == wanted


def test_memory_of_others_takes_no_recorded_write() -> None:
    numbers = array("f", [0.0, 1.0])
    x = engine.frombuffer(numbers, dtype=engine.float32)
    with pytest.raises(AutogradError, match="view of another tensor's memory"):
        x[0] = engine.ones((), requires_grad=True)
    assert numbers.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "make", [lambda x: x, *(OTHERS[n] for n in ("detach", "T", "[:]", "data"))]
)
def test_a_view_whose_base_nobody_sees_takes_recorded_writes(make: Any) -> None:
    weight = engine.ones(2, requires_grad=True)
    x = make(engine.zeros(4).reshape(2, 2))
    x[0] = weight * 2
    x.sum().backward()
    assert x.tolist() == [[2.0, 2.0], [0.0, 0.0]]
    assert weight.grad is not None and weight.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("op", [op for op in every_op() if not op.shares], ids=lambda op: op.name)
def test_results_of_their_own_take_recorded_writes(op: Row) -> None:
    """Nothing that is no view is taken for one."""
    for sample in op.samples:
        outputs = gradcheck.call(op, sample, gradcheck.make_inputs(sample, dtype=engine.float32))
        for y in outputs:
            if y.numel() and y.is_floating_point():
                weight = engine.ones((), requires_grad=True)
                y[(0,) * y.ndim] = weight * 2
                assert y.requires_grad and y.reshape(-1)[0].item() == 2.0


@pytest.mark.parametrize("way", ["x[...] = y", "+=", "add_", "copy_", "lerp_"])
@pytest.mark.parametrize("op", VIEWING, ids=lambda op: op.name)
def test_a_captured_step_writes_through_views_as_an_eager_one(op: Row, way: str) -> None:
    for sample in op.samples:
        for i in range(len(pairs(op, sample))):
            both = []
            for fast in (False, True):
                inputs = counted(sample)
                view, base = views_of(op, sample, inputs)[i]
                given = engine.full(view.shape, 0.5)
                step = writer(op, sample, inputs, i, WRITES[way][0])
                captured = engine.capture(step, on_fallback=lambda why: None)
                run: Any = captured if fast else step
                try:
                    results = [run(given).tolist() for _ in range(4)]
                except ShapeError as error:  # an element stands in several places
                    results = [str(error)]
                else:
                    reads = any(one.kind == "index" for one in sample.inputs)
                    assert bool(captured.programs) is (fast and not reads)
                both.append((results, base.tolist()))
            assert both[0] == both[1]


def writer(op: Row, sample: Sample, inputs: Any, i: int, write: Write) -> Callable[..., Tensor]:
    """A step that makes a view and writes to it, and gives what the base holds then."""

    def step(y: Tensor) -> Tensor:
        view, base = views_of(op, sample, inputs)[i]
        write(view, y)
        return base * 1

    return step


def test_a_captured_step_refuses_a_recorded_write_through_a_view() -> None:
    base, weight = engine.zeros(4), engine.ones(4, requires_grad=True)

    def step() -> Tensor:
        base.view(2, 2)[0] = weight[:2] * 2
        return base * 1

    fast = engine.capture(step)
    for run in (step, fast, fast, fast):
        with pytest.raises(AutogradError, match="view of another tensor's memory"):
            run()
    assert base.tolist() == [0.0] * 4


def test_a_step_that_records_a_write_to_its_argument_stays_eager() -> None:
    weight = engine.ones(2, requires_grad=True)

    def step(x: Tensor) -> Tensor:
        x[0] = weight * 3
        return x.sum().detach()

    with pytest.warns(UserWarning, match="overwrites one of its arguments"):
        fast = engine.capture(step)
        for _ in range(4):
            x = engine.zeros(2, 2)
            assert fast(x).item() == 6.0
            assert x.tolist() == [[3.0, 3.0], [0.0, 0.0]]
