"""What Python sees of values while a step is recorded: nothing, or a replay would not see it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.errors import CaptureError

Look = Callable[[Any], Any]


def numpy() -> Any:
    return importlib.import_module("numpy")


WITH_PYTHON_ALONE: dict[str, Look] = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "tolist of nothing": lambda x: x[:0].tolist(),
    "memoryview": lambda x: x.memoryview(),
    "buffer protocol": lambda x: x.__buffer__(0),
    "bool": lambda x: bool(x.sum() > 0),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "complex": lambda x: complex(x.sum()),
    "index": lambda x: range(9)[x.long()[0]],
    "in": lambda x: 7.0 in x,
    "repr": repr,
    "format": lambda x: f"{x.sum():.2f}",
    "iteration": lambda x: [float(value) for value in x],
    "largest by Python": max,
    "a tensor of a list": lambda x: engine.tensor([x[0], x[1]]),
    "a mask as an index": lambda x: x[x > 0],
    "array interface": lambda x: x.__array_interface__,
    "dlpack": lambda x: x.__dlpack__(),
    "dlpack, copied": lambda x: x.__dlpack__(copy=True),
    "dlpack to ourselves": engine.from_dlpack,
}
WITH_NUMPY: dict[str, Look] = {
    "numpy": lambda x: x.numpy(),
    "numpy, forced": lambda x: x.numpy(force=True),
    "array": lambda x: x.__array__(),
    "asarray": lambda x: numpy().asarray(x),
    "a copy": lambda x: numpy().array(x),
    "from_dlpack": lambda x: numpy().from_dlpack(x),
    "arithmetic": lambda x: numpy().ones(3) + x,
}


def refused(look: Look) -> None:
    """The recorded step ends where it looks; the same step without a recorder does not."""
    caught: list[CaptureError] = []

    def step(x: Any) -> Any:
        try:
            look(x)
        except CaptureError as error:
            caught.append(error)
            raise
        return x * 2

    told: list[str] = []
    captured = engine.capture(step, on_fallback=told.append)
    for number in (1.0, 2.0, 3.0):
        assert captured(engine.full((3,), number)).tolist() == [2 * number] * 3
    assert len(caught) == len(told) == 1
    assert "reads the values of a tensor" in told[0]
    assert not captured.programs


@pytest.mark.parametrize("way", WITH_PYTHON_ALONE)
def test_looking_at_values_ends_the_recording(way: str) -> None:
    refused(WITH_PYTHON_ALONE[way])


@pytest.mark.parametrize("way", WITH_NUMPY)
def test_looking_at_values_through_numpy_ends_the_recording(way: str) -> None:
    pytest.importorskip("numpy", reason="needs the extra: pip install '.[parity]'")
    refused(WITH_NUMPY[way])


def test_a_number_read_through_numpy_is_not_frozen() -> None:
    pytest.importorskip("numpy", reason="needs the extra: pip install '.[parity]'")
    captured = engine.capture(lambda x: x * float(x.numpy()[0]), on_fallback=lambda why: None)
    for number in (1.0, 1.0, 3.0):  # two calls alike, which is when a step is believed
        assert captured(engine.full((3,), number)).tolist() == [number * number] * 3


def test_what_reads_no_values_is_captured() -> None:
    def step(x: Any) -> Any:
        first, *_ = x
        return first * float(len(x)) + x.detach().clone()

    captured = engine.capture(step)
    for number in (1.0, 2.0, 3.0):
        assert captured(engine.full((3,), number)).tolist() == [4 * number] * 3
    assert len(captured.programs) == 1
