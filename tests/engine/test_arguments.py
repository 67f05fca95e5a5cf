"""Every argument of every op is refused where it does not fit its declaration, by name."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import pytest
from implied_refusals import fits, kinds

from gradcli import engine
from gradcli.engine.argument import check_arguments
from gradcli.engine.composite import Composite
from gradcli.engine.gradcheck import every_op, make_input
from gradcli.engine.kind import Count, Kind, Portion
from gradcli.engine.op import Op
from gradcli.errors import DTypeError, GradcliError, OptionError

FOREIGN = object()
SPOILT: list[Any] = [
    None,
    "x",
    2.5,
    float("nan"),
    True,
    7,
    -3,
    [],
    {},
    (1, None),
    [2.5],
    ["x"],
    FOREIGN,
    engine.ones(2, 2),
]


def calls(row: Op | Composite) -> tuple[list[Any], dict[str, Any]]:
    """The first sample of an op, its options under their names."""
    first = row.samples[0]
    inputs = [make_input(one, random.Random(1), engine.float32) for one in first.inputs]
    if isinstance(row, Op):
        return inputs, dict(first.options)
    return row.arrange(inputs, first.options)


def spoilt(row: Op | Composite, name: str, value: Any) -> None:
    """Call an op with one argument replaced."""
    args, named = calls(row)
    if isinstance(row, Op):
        row(*args, **{**named, name: value})
        return
    bound = inspect.signature(row.plain).bind(*args, **named)
    several = inspect.signature(row.plain).parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
    bound.arguments[name] = (value,) if several else value
    row.plain(*bound.args, **bound.kwargs)


ROWS = {row.name: row for row in every_op()}


@pytest.mark.parametrize("name", ROWS)
def test_an_argument_that_does_not_fit_is_refused_by_name(name: str) -> None:
    row = ROWS[name]
    for argument, kind in kinds(row).items():
        for value in SPOILT:
            if fits(kind, value):
                continue
            with pytest.raises(GradcliError) as refusal:
                spoilt(row, argument, value)
            said = refusal.value.message
            assert said.startswith(f"{name}: {argument}"), (value, said)
            assert said.partition(" must be ")[2].partition(", got ")[0] in kind.description, said
            assert len(said) < 300, said


@pytest.mark.parametrize("name", ROWS)
def test_a_number_beyond_64_bits_is_refused_by_name_where_bits_matter(name: str) -> None:
    row = ROWS[name]
    for argument, kind in kinds(row).items():
        if int not in kind.quick | kind.types:
            continue
        try:
            spoilt(row, argument, 10**400)
        except GradcliError as refusal:
            assert refusal.message.startswith(f"{name}: {argument}"), refusal.message
            assert len(refusal.message) < 200, refusal.message


@pytest.mark.parametrize(
    ("annotation", "good", "bad", "says"),
    [
        (int, [0, -1, 2**62], [True, 1.0, "1", None, [1]], "a whole number"),
        (float, [0, 1.5, float("nan")], [True, "1", None, [1.0], 1j], "a number"),
        (bool, [True, False], [0, 1, None, "True", engine.ones(())], "True or False"),
        (str, ["", "x"], [None, 1, b"x"], "a text"),
        (int | None, [None, 1], ["x", 1.5], "a whole number or None"),
        (Literal["a", "b"], ["a"], ["c", None, []], "'a' or 'b'"),
        (Literal["a", "b", 3], [3], ["c", 3.0], "one of 'a', 'b', 3"),
        (tuple[int, int], [(1, 2), [1, 2]], [(1,), (1, 2, 3), 1], "a tuple of 2"),
        (Count, [1, 5], [0, -1, 1.0], "a whole number >= 1"),
        (Portion, [0, 1, 0.5], [-0.1, 1.1, float("nan"), "x"], "a number from 0 to 1"),
        (Annotated[int, "no bound"], [1], ["x"], "a whole number"),
        (engine.DType, [engine.int32], ["int32", None], "an element type such as engine.float32"),
        (engine.Tensor, [engine.ones(2)], [None, 1.0], "a Tensor"),
        (engine.Generator, [engine.Generator(1)], [None, 1], "a Generator"),
        (Callable[[int], int], [len], [None, 1], "a function"),
    ],
)
def test_a_kind_takes_what_it_says(
    annotation: Any, good: list[Any], bad: list[Any], says: str
) -> None:
    kind = Kind.of(annotation)
    for value in good:
        assert kind.convert_argument("f", "a", value) is value
    for value in bad:
        with pytest.raises(GradcliError, match=r"^f: a must be ") as refusal:
            kind.convert_argument("f", "a", value)
        assert says in refusal.value.message


def test_a_list_names_the_element_that_does_not_fit() -> None:
    with pytest.raises(OptionError, match=r"^f: a\[1\] must be a whole number, got None$"):
        Kind.of(int | Sequence[int]).convert_argument("f", "a", [2, None])
    with pytest.raises(DTypeError, match=r"^cat: tensors\[1\] must be a Tensor, got 3$"):
        engine.cat([engine.ones(2), 3])


def test_numbers_of_numpy_and_tensors_of_one_become_pythons() -> None:
    np = pytest.importorskip("numpy")
    for annotation, value, result in (
        (int, np.int64(3), 3),
        (int, engine.tensor(3), 3),
        (float, np.float32(0.5), 0.5),
        (float, engine.tensor(0.5), 0.5),
        (bool, np.bool_(True), True),
    ):
        taken = Kind.of(annotation).convert(value)
        assert taken == result
        assert type(taken) is annotation
    x = engine.ones(2, 3)
    assert x.sum(np.int64(1), keepdim=np.bool_(True)).shape == (2, 1)
    assert x.permute(np.array([1, 0]).tolist()[0], np.int32(0)).shape == (3, 2)


def test_a_wrong_python_type_is_torchs_typeerror_and_a_wrong_value_its_valueerror() -> None:
    x = engine.ones(2, 3)
    with pytest.raises(TypeError, match=r"^sum: keepdim must be True or False, got 'False'$"):
        x.sum(keepdim="False")
    with pytest.raises(ValueError, match=r"^sum: keepdim must be"):
        x.sum(keepdim="False")
    with pytest.raises(ValueError, match=r"^f: a must be a whole number >= 1, got 0$") as refusal:
        Kind.of(Count).convert_argument("f", "a", 0)
    assert not isinstance(refusal.value, TypeError)


def test_a_refusal_prints_no_tensor_and_no_endless_number() -> None:
    large = engine.ones(100, 100)
    for value in (large, [large], 10**5000, "x" * 10**6, {1: large}):
        with pytest.raises(GradcliError) as refusal:
            engine.ones(3).sum(keepdim=value)
        assert len(refusal.value.message) < 150


def test_checked_functions_refuse_by_their_annotations() -> None:
    @check_arguments
    def scaled(x: engine.Tensor, *sizes: int, factor: float = 1.0, **others: Any) -> int:
        return len(sizes)

    assert scaled(engine.ones(1), 1, 2, factor=2) == 2
    with pytest.raises(OptionError, match=r"^scaled: sizes must be a whole number, got 'x'$"):
        scaled(engine.ones(1), 1, "x")
    with pytest.raises(OptionError, match=r"^scaled: factor must be a number, got None$"):
        scaled(engine.ones(1), factor=None)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: engine.empty(0, 2**63), "empty: a size cannot be beyond 64 bits"),
        (lambda: engine.zeros((2, 2.5)), "zeros: size must be made of whole numbers, got 2.5"),
        (lambda: engine.linspace(0, "x", 1), "linspace: end must be a number, got 'x'"),
        (lambda: engine.linspace(0, 1, -1), "linspace: steps must be a whole number >= 0"),
        (lambda: engine.full((2,), None), "full: fill_value must be a number"),
        (lambda: engine.tensor([1], dtype="float32"), "tensor: dtype must be an element type"),
        (lambda: engine.ones(2).requires_grad_("no"), "requires_grad_: requires_grad must be True"),
        (lambda: engine.ones(2).size("x"), "size: dim must be a whole number, got 'x'"),
        (lambda: engine.ones(2).size(5), "size: dim 5 is outside -1..0"),
        (lambda: engine.ones(2).copy_(3), "copy_: source must be a Tensor, got int"),
        (lambda: engine.grad(engine.ones(2), "x"), "grad: inputs must be a Tensor"),
        (lambda: engine.set_grad_enabled("no"), "set_grad_enabled: mode must be True or False"),
        (lambda: engine.decomposed(mode=1), "decomposed: mode must be True or False, got 1"),
        (lambda: engine.autocast(enabled="no"), "autocast: enabled must be True or False"),
        (lambda: engine.capture(3), "capture: step must be a function, got 3"),
        (lambda: engine.draw(3), "draw: outputs must be a Tensor, got 3"),
        (lambda: engine.Generator(0, purpose=3), "Generator: purpose must be a text, got int"),
        (lambda: engine.ones(2) + None, "add: other must be a Tensor or a number, got None"),
        (lambda: engine.ones(2) + 10**400, "add: other must be within 64 bits"),
        (lambda: engine.ones(2).atan2_(None), "atan2_: other must be a Tensor"),
        (lambda: engine.einsum("i,i", [engine.ones(2)], engine.ones(2)), "einsum: operands must"),
        (
            lambda: engine.ones(2).round(decimals=1000),
            "round: decimals must be a whole number from",
        ),
        (
            lambda: engine.ones(2).allclose(engine.ones(2), rtol=-1),
            "allclose: rtol must be a number",
        ),
        (lambda: engine.tensor([1]).bincount(minlength=-3), "bincount: minlength must be a whole"),
    ],
)
def test_functions_beside_the_table_refuse_by_name(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(GradcliError) as refusal:
        call()
    assert refusal.value.message.startswith(says)


@pytest.mark.parametrize(
    "call",
    [
        lambda: engine.linspace(0, 1, 2**62),
        lambda: engine.logspace(0, 1, 2**62),
        lambda: engine.ones(3).tensor_split(2**62),
        lambda: engine.tril_indices(2**40, 2**40),
        lambda: engine.triu_indices(2**62, 1),
    ],
)
def test_what_no_machine_holds_is_refused_before_it_is_counted_out(call: Callable[[], Any]) -> None:
    with pytest.raises(GradcliError):
        call()


def test_much_of_nothing_is_soon_done() -> None:
    assert engine.ones(3).diff(n=2**62).shape == (0,)
    assert engine.tril_indices(2**62, 0).shape == (2, 0)


def test_linspace_has_the_bits_of_its_formula_in_double() -> None:
    for start, end, steps in ((0, 1, 7), (-1.3, 9.7, 1000), (5, -5, 2), (0.1, 0.2, 1), (3, 4, 0)):
        gap = (end - start) / (steps - 1) if steps > 1 else 0.0
        half = (steps + 1) // 2
        numbers = [start + gap * i for i in range(half)]
        numbers += [end - gap * (steps - 1 - i) for i in range(half, steps)]
        made = engine.linspace(start, end, steps, dtype=engine.float64)
        assert made.tolist() == [float(number) for number in numbers]
