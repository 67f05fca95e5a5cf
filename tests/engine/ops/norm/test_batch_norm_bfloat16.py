"""Batch norm reads and writes bfloat16 itself: the numbers of float32, rounded once."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.array import empty, run
from gradcli.engine.device import cpu
from gradcli.engine.dtype import DType
from gradcli.engine.nn import functional as F
from gradcli.errors import GradcliError

HALF = engine.bfloat16
SHAPES = [
    (2, 3),
    (65, 300),
    (1, 3, 2),
    (4, 1, 31),
    (3, 9, 33),
    (2, 5, 8, 8),
    (3, 2, 17, 31),
    (70, 8, 16),
    (2, 2, 300, 300),
    (0, 3, 4),
]


def drawn(*size: int, seed: int = 1) -> Tensor:
    return 3 * engine.randn(*size, generator=engine.Generator(seed)) + 1


def results(x: Tensor, of: DType, training: bool, grad: Tensor) -> list[Tensor]:
    """The result, the gradients and the running statistics, with parameters of a type."""
    channels, x = x.shape[1], x.detach().clone().requires_grad_()
    weight, bias = (drawn(channels, seed=s).to(HALF).to(of).requires_grad_() for s in (2, 3))
    running = engine.zeros(channels, dtype=of), engine.ones(channels, dtype=of)
    y = F.batch_norm(x, *running, weight, bias, training)
    y.backward(grad)
    gradients = [v.grad for v in (x, weight, bias)]
    return [y.detach(), *(v for v in gradients if v is not None), *running]


def bits(x: Tensor) -> bytes:
    return bytes(x.contiguous().memoryview())


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("of", [engine.float32, HALF], ids=str)
def test_it_is_float32_rounded_once(shape: tuple[int, ...], training: bool, of: DType) -> None:
    x, grad = (drawn(*shape, seed=s).to(HALF) for s in (1, 4))
    training = training and 0 not in shape
    made = results(x, of, training, grad)
    wanted = results(x.float(), engine.float32, training, grad.float())
    assert made[0].dtype is made[1].dtype is HALF
    for one, other in zip(made, wanted, strict=True):
        assert bits(one) == bits(other.to(one.dtype))


@pytest.mark.parametrize("place", [(1, 2, 7), (0, 0, 0)])
def test_what_is_not_finite_shows_in_its_channel(place: tuple[int, ...]) -> None:
    x = drawn(3, 4, 40)
    x[place] = float("nan")
    made = F.batch_norm(x.to(HALF), None, None, training=True).isfinite()
    assert made.tolist() == F.batch_norm(x, None, None, training=True).isfinite().tolist()
    assert not bool(made[:, place[1]].any())


def test_threads_do_not_show_in_the_bits() -> None:
    threads, found = cpu.threads(), []
    x, grad = drawn(9, 3, 70, 80).to(HALF), drawn(9, 3, 70, 80, seed=4).to(HALF)
    for number in (1, 2, 3):
        cpu.set_threads(number)
        found.append([bits(t) for t in results(x, engine.float32, True, grad)])
    cpu.set_threads(threads)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("other", [HALF, engine.float64], ids=str)
def test_other_tensors_are_float32(number: int, other: DType) -> None:
    """Those whose type the kernel does not take are refused at the door."""
    types: list[Any] = [engine.float32] * 8
    types[number] = other
    shapes = [(2, 3, 4), (3,), (3,), (2, 3, 4), (3,), (3,), (3,), (3,)]
    arrays = [empty(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
    call = [array._descriptor or array.descriptor for array in arrays]
    if other is HALF and number in (0, 3):
        cpu.run("batch_norm_train", call, (), (1e-5, 0.1))
        return
    with pytest.raises(GradcliError, match="element type"):
        cpu.run("batch_norm_train", call, (), (1e-5, 0.1))


def test_parameters_in_bfloat16_are_widened_before() -> None:
    x, out = drawn(2, 3, 4).to(HALF).array, empty((2, 3, 4), HALF)
    weight, none = drawn(3, seed=2).to(HALF).array, empty((0,), engine.float32)
    statistics = [empty((3,), engine.float32) for _ in range(2)]
    run("batch_norm_train", x, weight, none, out, *statistics, none, none, options=(1e-5, 0.1))
    wide, same = empty((2, 3, 4), engine.float32), [empty((3,), engine.float32) for _ in range(2)]
    run(
        "batch_norm_train",
        *(x.cast(engine.float32), weight.cast(engine.float32), none, wide, *same, none, none),
        options=(1e-5, 0.1),
    )
    assert bits(Tensor(out)) == bits(Tensor(wide).to(HALF))
