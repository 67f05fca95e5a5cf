"""Indexing and assignment of every kind, drawn at random, compared with torch."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import close, ours, randn  # noqa: E402
from hypothesis import assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gradcli.engine.shape import MAX_DIMS  # noqa: E402
from gradcli.errors import RangeError  # noqa: E402

pytestmark = pytest.mark.parity

TORCH_ERRORS = (IndexError, RuntimeError, ValueError, TypeError)
Draw = Any


def mine(part: Any) -> Any:
    """A part of an index for our own tensors."""
    return ours(part) if isinstance(part, torch.Tensor) else part


@st.composite
def shapes(draw: Draw) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(0, 4), max_size=4)))


@st.composite
def numbers(draw: Draw, size: int, common: tuple[int, ...]) -> Any:
    """A tensor of places in a dimension; its shape broadcasts to the common one."""
    kept = draw(st.integers(0, len(common)))
    shape = tuple(draw(st.sampled_from((1, n))) for n in common[len(common) - kept :])
    count = math.prod(shape)
    flat = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
    dtype = draw(st.sampled_from((torch.int64, torch.int64, torch.int32)))
    return torch.tensor(flat, dtype=dtype).reshape(shape)


@st.composite
def masks(draw: Draw, shape: tuple[int, ...], trues: int | None) -> Any:
    count = math.prod(shape)
    if trues is None:
        flat = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    else:
        order = draw(st.permutations(range(count)))
        flat = [i in order[:trues] for i in range(count)]
    return torch.tensor(flat, dtype=torch.bool).reshape(shape)


@st.composite
def slices(draw: Draw) -> slice:
    ends = st.none() | st.integers(-5, 5)
    return slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3)))


def new_dimension(draw: Draw, dims: tuple[int, ...], common: tuple[int, ...]) -> tuple[Any, int]:
    """None, or one truth value."""
    del dims, common
    return draw(st.sampled_from((None, None, True, torch.tensor(True)))), 0


def whole_number(draw: Draw, dims: tuple[int, ...], common: tuple[int, ...]) -> tuple[Any, int]:
    del common
    number = draw(st.integers(-dims[0], dims[0] - 1))
    return draw(st.sampled_from((number, torch.tensor(number)))), 1


def part_of_one(draw: Draw, dims: tuple[int, ...], common: tuple[int, ...]) -> tuple[Any, int]:
    del dims, common
    return draw(slices()), 1


def index_tensor(draw: Draw, dims: tuple[int, ...], common: tuple[int, ...]) -> tuple[Any, int]:
    places = draw(numbers(dims[0], common))
    as_list = places.ndim == 1 and places.dtype == torch.int64 and draw(st.booleans())
    return places.tolist() if as_list else places, 1


def mask_of_some(draw: Draw, dims: tuple[int, ...], common: tuple[int, ...]) -> tuple[Any, int]:
    """A mask of one or several dimensions, with as many trues as the others pick, where it can."""
    rank = draw(st.integers(1, len(dims)))
    fits = common and common[-1] <= math.prod(dims[:rank])
    return draw(masks(dims[:rank], common[-1] if fits else None)), rank


ANY = (new_dimension, part_of_one, mask_of_some)
KINDS = (*ANY, whole_number, index_tensor, index_tensor, index_tensor)


def parts_of(draw: Draw, dims: tuple[int, ...], common: tuple[int, ...]) -> list[Any]:
    """Parts of an index that take these dimensions, or the first of them."""
    parts = []
    for _ in range(draw(st.integers(0, len(dims) + 1))):
        kinds = KINDS if dims and dims[0] else ANY if dims else ANY[:1]
        part, used = draw(st.sampled_from(kinds))(draw, dims, common)
        parts.append(part)
        dims = dims[used:]
    return parts


def adds_a_dimension(part: Any) -> bool:
    """None, or a truth value by itself."""
    truth = isinstance(part, torch.Tensor) and part.dtype == torch.bool and part.ndim == 0
    return part is None or part is True or truth


@st.composite
def indices(draw: Draw, shape: tuple[int, ...]) -> Any:
    """An index of a tensor of this shape that torch takes, mostly."""
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    cut = draw(st.integers(0, len(shape)))
    parts = parts_of(draw, shape[:cut], common)
    if draw(st.booleans()):  # what stands behind may take too few of the dimensions, or none
        parts += [Ellipsis, *parts_of(draw, shape[cut:], common)]
    assume(len(shape) + sum(map(adds_a_dimension, parts)) <= MAX_DIMS)  # all at once, here
    return tuple(parts) if len(parts) != 1 or draw(st.booleans()) else parts[0]


def converted(index: Any) -> Any:
    return tuple(mine(part) for part in index) if isinstance(index, tuple) else mine(index)


def checked_for_nothing(own: Any, index: Any) -> bool:
    """Torch does not look at indices where there is no element to read; we refuse them."""
    if own.numel():
        return False
    try:
        own[converted(index)]
    except RangeError:
        return True
    return False


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_reading_and_its_gradient_are_those_of_torch(data: Any) -> None:
    shape = data.draw(shapes())
    index = data.draw(indices(shape))
    x = randn(*shape).requires_grad_()
    own = ours(x, requires_grad=True)
    try:
        expected = x[index]
    except TORCH_ERRORS:
        with pytest.raises(TORCH_ERRORS):
            own[converted(index)]
        return
    if checked_for_nothing(own, index):
        return
    found = own[converted(index)]
    close(found, expected)
    weights = randn(*expected.shape, seed=2)
    (expected * weights).sum().backward()
    (found * ours(weights)).sum().backward()
    close(own.grad, x.grad)


@st.composite
def values(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    kept = draw(st.integers(0, len(shape)))
    broadcast = tuple(draw(st.sampled_from((n, n, 1))) for n in shape[len(shape) - kept :])
    return (1,) * draw(st.integers(0, 1)) * (kept == len(shape)) + broadcast


def repeats(index: Any) -> bool:
    """Whether one place may be named twice: torch does not say which value stays."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(part, list) or (isinstance(part, torch.Tensor) and part.dtype != torch.bool)
        for part in parts
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_assignment_and_its_gradient_are_those_of_torch(data: Any) -> None:
    shape = data.draw(shapes())
    index = data.draw(indices(shape))
    try:
        place = torch.arange(math.prod(shape)).reshape(shape)[index]
    except TORCH_ERRORS:
        return
    if repeats(index) and place.unique().numel() != place.numel():
        return
    x = randn(*shape).requires_grad_()
    value = randn(*data.draw(values(tuple(place.shape))), seed=1).requires_grad_()
    own, own_value = ours(x, requires_grad=True), ours(value, requires_grad=True)
    plain = ours(x)
    y, z = x * 1, own * 1
    try:
        y[index] = value
    except TORCH_ERRORS:
        for target in (z, plain):
            with pytest.raises(TORCH_ERRORS):
                target[converted(index)] = own_value.detach()
        return
    if checked_for_nothing(plain, index):
        return
    z[converted(index)] = own_value
    plain[converted(index)] = own_value.detach()
    close(z, y)
    close(plain, y)
    weights = randn(*shape, seed=2)
    (y * weights).sum().backward()
    (z * ours(weights)).sum().backward()
    for found, expected in ((own, x), (own_value, value)):
        zero = torch.zeros_like(expected)
        got = zero if found.grad is None else torch.from_dlpack(found.grad)
        close(ours(got), zero if expected.grad is None else expected.grad)


READ: list[tuple[str, Any]] = [
    ("rows", torch.tensor([1, 0, -1, 1])),
    ("columns", (slice(None), torch.tensor([2, 2, 0]))),
    ("apart", (torch.tensor([0, 1, 1]), slice(None), torch.tensor([2, -1, 2]))),
    ("broadcast", (torch.tensor([[0], [1]]), torch.tensor([2, 2, 0]))),
    ("mask", torch.arange(24).reshape(2, 3, 4) % 3 == 0),
    ("mask and rows", (torch.tensor([1, 1]), torch.tensor([True, False, True]))),
    ("number between", (torch.tensor([0, 1]), 0, torch.tensor([1, 1]))),
    ("new dimension between", (torch.tensor([0, 1]), None, torch.tensor([1, 1]))),
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("kind", "index"), READ)
def test_gradients_of_repeated_places_add_up(agree: Any, kind: str, index: Any, dtype: Any) -> None:
    del kind
    x = randn(2, 3, 4).to(dtype).requires_grad_()
    own = ours(x, requires_grad=True)
    expected, found = x[index], own[converted(index)]
    agree("Tensor.__getitem__", found, expected)
    weights = randn(*expected.shape, seed=2).to(dtype)
    (expected * weights).sum().backward()
    (found * ours(weights)).sum().backward()
    agree("Tensor.__getitem__", own.grad, x.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool], ids=str)
@pytest.mark.parametrize(("kind", "index"), READ)
def test_every_element_type_is_read_and_assigned(
    agree: Any, kind: str, index: Any, dtype: Any
) -> None:
    del kind
    x = (torch.arange(24).reshape(2, 3, 4) % 5).to(dtype)
    own = ours(x)
    agree("Tensor.__getitem__", own[converted(index)], x[index])
    own[converted(index)] = 1
    x[index] = 1
    agree("Tensor.__setitem__", own, x)


def test_an_index_out_of_range_is_refused_where_there_is_nothing_to_read() -> None:
    x = torch.zeros(0, 2)
    assert x[:, torch.tensor([2])].shape == (0, 1)
    with pytest.raises(IndexError, match="dimension 1, which has size 2"):
        ours(x)[:, ours(torch.tensor([2]))]


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_is_that_of_torch(agree: Any, accumulate: bool) -> None:
    x, v = randn(4, 5).requires_grad_(), randn(3, seed=1).requires_grad_()
    own, own_v = ours(x, requires_grad=True), ours(v, requires_grad=True)
    index = (torch.tensor([0, 3, 1 - accumulate]), torch.tensor([-1, 2, 4]))
    expected = x.index_put(index, v, accumulate)
    found = own.index_put(converted(index), own_v, accumulate)
    agree("index_put", found, expected)
    (expected * expected).sum().backward()
    (found * found).sum().backward()
    agree("index_put", own.grad, x.grad)
    agree("index_put", own_v.grad, v.grad)
