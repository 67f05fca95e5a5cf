"""Borders, windows as columns, one-hot rows and forms in place, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import both_ways, ours, randn  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine.nn import functional as F  # noqa: E402
from gradcli.engine.ops.inplace import OF_ONE, OF_TWO, SAME_SHAPE  # noqa: E402
from gradcli.errors import AutogradError, OptionError, ShapeError  # noqa: E402

pytestmark = pytest.mark.parity


def functional(lib: Any) -> Any:
    return torch.nn.functional if lib is torch else F


PADS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((3, 4), (1, 2), {}),
    ((3, 4), (1, 2, 0, 3), {"value": -2.5}),
    ((3, 4), (-1, 2, 1, -2), {"value": 1.0}),
    ((2, 3, 4, 5), (0, 1, 2, 0, 1, 1, 0, 2), {}),
    ((0, 3), (1, 1, 2, 0), {"value": 3.0}),
    ((5,), (), {}),
    *[
        (shape, pad, {"mode": mode})
        for mode in ("reflect", "replicate", "circular")
        for shape, pad in (
            ((2, 5), (2, 3)),
            ((2, 3, 5), (1, 4)),
            ((2, 4, 5), (1, 2, 3, 0)),
            ((1, 2, 4, 3), (2, 0, 1, 1)),
            ((2, 3, 4, 3), (1, 1, 2, 0, 0, 1)),
            ((1, 2, 4, 5), (-1, 2, 1, -2)),
        )
    ],
    ((2, 3), (7, 9), {"mode": "replicate"}),
]


@pytest.mark.parametrize(("shape", "pad", "options"), PADS)
def test_borders_are_those_of_torch(
    agree: Any, shape: tuple[int, ...], pad: tuple[int, ...], options: dict[str, Any]
) -> None:
    both_ways(
        agree, "F.pad", lambda lib, x: functional(lib).pad(x[0], pad, **options), [randn(*shape)]
    )


def test_whole_numbers_get_borders_too(agree: Any) -> None:
    x = torch.arange(6).reshape(2, 3)
    for mode in ("constant", "circular"):
        agree("F.pad", F.pad(ours(x), (1, 2), mode), torch.nn.functional.pad(x, (1, 2), mode))


@pytest.mark.parametrize(
    ("shape", "pad", "options", "error", "text"),
    [
        ((3, 4), (1,), {}, OptionError, "two whole numbers for each of at most 2 dimensions"),
        ((3,), (1, 1, 1, 1), {}, OptionError, "at most 1 dimension"),
        ((3, 4), (-3, -2), {}, ShapeError, "leave nothing of dimension 1"),
        ((3, 4), (4, 0), {"mode": "reflect"}, ShapeError, "can have 3 elements, got 4 and 0"),
        ((3, 4), (5, 0), {"mode": "circular"}, ShapeError, "can have 4 elements"),
        ((3, 4), (1, 1), {"mode": "mirror"}, OptionError, "got 'mirror'"),
        ((3, 4), (1, 1), {"mode": "reflect", "value": 1.0}, OptionError, "has no meaning"),
        ((2, 3, 4, 5), (1, 1), {"mode": "reflect"}, ShapeError, "all dimensions but the first"),
    ],
)
def test_borders_that_cannot_be_are_refused(
    shape: tuple[int, ...], pad: Any, options: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        F.pad(engine.zeros(*shape), pad, **options)


WINDOWS: list[dict[str, Any]] = [
    {"kernel_size": 2},
    {"kernel_size": (2, 3), "stride": (2, 1), "padding": 1},
    {"kernel_size": 2, "dilation": (2, 1), "padding": (0, 2)},
    {"kernel_size": (1, 3), "stride": 2, "dilation": 2, "padding": 2},
]


@pytest.mark.parametrize("options", WINDOWS)
@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (2, 5, 6)])
def test_windows_become_columns_and_images_again_as_in_torch(
    agree: Any, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    x = randn(*shape)
    both_ways(agree, "F.unfold", lambda lib, x: functional(lib).unfold(x[0], **options), [x])
    columns = randn(*torch.nn.functional.unfold(x, **options).shape, seed=1)
    both_ways(
        agree, "F.fold", lambda lib, x: functional(lib).fold(x[0], (5, 6), **options), [columns]
    )


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="a window of 4 does not fit"):
        F.unfold(engine.zeros(1, 1, 3, 5), 4)
    with pytest.raises(ShapeError, match="a multiple of 4, 12"):
        F.fold(engine.zeros(1, 4, 11), (4, 5), 2)
    with pytest.raises(OptionError, match="kernel_size must be"):
        F.unfold(engine.zeros(1, 1, 3, 5), 0)


def test_classes_become_rows_with_a_1_as_in_torch(agree: Any) -> None:
    x = torch.tensor([[0, 2], [1, 1]])
    for many in (-1, 5):
        agree("F.one_hot", F.one_hot(ours(x), many), torch.nn.functional.one_hot(x, many))
    with pytest.raises(IndexError, match=r"outside 0\.\.1"):
        F.one_hot(ours(x), 2)


# -- forms in place --------------------------------------------------------------------------------

Write = Callable[[Any, Any], Any]  # the library and its tensor
SPECIAL: dict[str, Write] = {
    "addcdiv": lambda lib, x: x.addcdiv_(x.clone(), x.clone() + 1, value=2),
    "addcmul": lambda lib, x: x.addcmul_(x.clone(), x.clone() + 1, value=2),
    "addmm": lambda lib, x: x.addmm_(x.clone(), x.clone(), beta=0.5),
    "baddbmm": lambda lib, x: x[None].baddbmm_(x.clone()[None], x.clone()[None])[0],
    "clamp_max": lambda lib, x: x.clamp_max_(0.6),
    "clamp_min": lambda lib, x: x.clamp_min_(0.3),
    "clip": lambda lib, x: x.clip_(0.3, 0.6),
    "cumprod": lambda lib, x: x.cumprod_(1),
    "cumsum": lambda lib, x: x.cumsum_(0),
    "index_add": lambda lib, x: x.index_add_(0, lib.tensor([2, 0]), x[:2].clone(), alpha=2),
    "index_copy": lambda lib, x: x.index_copy_(1, lib.tensor([2, 0]), x[:, :2].clone()),
    "index_fill": lambda lib, x: x.index_fill_(1, lib.tensor([2, 0]), 0.25),
    "lerp": lambda lib, x: x.lerp_(x.clone() + 1, 0.25),
    "masked_fill": lambda lib, x: x.masked_fill_(x > 0.5, 0.0),
    "masked_scatter": lambda lib, x: x.masked_scatter_(x > 0.5, x.clone() + 1),
    "round": lambda lib, x: x.round_(decimals=1),
    "scatter": lambda lib, x: x.scatter_(0, lib.tensor([[2, 0, 1]]), x[1:].clone()),
    "scatter_add": lambda lib, x: x.scatter_add_(0, lib.tensor([[2, 0, 1]]), x[1:].clone()),
    "scatter_reduce": lambda lib, x: x.scatter_reduce_(
        0, lib.tensor([[2, 0, 1]]), x[1:].clone(), "amax"
    ),
}
FUNCTIONAL = {"celu", "elu", "hardtanh", "leaky_relu", "selu", "threshold"}
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}


def written(lib: Any, name: str, x: Any) -> Any:
    """The form in place of this name, called with what it needs."""
    if name in SPECIAL:
        return SPECIAL[name](lib, x)
    if name in FUNCTIONAL and lib is torch:
        form = getattr(torch.nn.functional, name)
        return form(x, *((0.5, 2.0) if name == "threshold" else ()), inplace=True)
    second = (x.flip(0).clone(),) if name in OF_TWO else ()
    return getattr(x, f"{name}_")(*((0.5, 2.0) if name == "threshold" else second))


@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO, *SAME_SHAPE])
def test_forms_in_place_write_what_torch_writes(agree: Any, name: str) -> None:
    x = randn(3, 3).sigmoid()
    if name in BITS:
        x = (x * 9).long()
    own = ours(x)
    before = own.array.storage.version
    found = written(engine, name, own)
    agree(f"Tensor.{name}_", found, written(torch, name, x))
    agree(f"Tensor.{name}_", own, x)
    assert own.array.storage.version > before
    assert name == "baddbmm" or found is own


@pytest.mark.parametrize("name", [n for n in (*OF_ONE, *OF_TWO, *SAME_SHAPE) if n not in BITS])
def test_forms_in_place_are_refused_where_gradients_are_recorded(name: str) -> None:
    x = ours(randn(3, 3).sigmoid(), requires_grad=True) * 1
    with pytest.raises(AutogradError, match="no gradient passes through writing in place"):
        written(engine, name, x)
