"""The first index behind the last one is refused, and the last one is not: by every kernel and op
that takes indices, found by what they declare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any

import pytest
from test_calls import KEEP, tensor

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.device import cpu
from gradcli.engine.device.kernels import FACTS, ffi, lib
from gradcli.engine.gradcheck import Row
from gradcli.engine.sample import Sample
from gradcli.engine.shape import numel
from gradcli.errors import GradcliError

FAR = 1 << 40  # behind the end of everything
TYPES = {"L": 3, "U": 4, "B": 5, "D": 1}
SIDE = 3  # of every dimension that a letter stands for


def declared_shape(word: str) -> list[int]:
    letters = re.sub(r"[~?A-Z-]", "", word)
    if letters in (".", "*"):
        return [1]
    return [int(letter) if letter.isdigit() else SIDE for letter in letters]


def declared_type(word: str) -> int:
    capital = re.search(r"[A-Z]", word)
    return TYPES.get(capital[0], 0) if capital else 0


def run_with(kernel: str, place: int, value: int) -> Any:
    """What comes of the kernel's call when all of one input is this index and the rest is 0."""
    call, facts = ffi.new("gc_call *"), FACTS[kernel]
    call.kernel, call.ntensors = facts.number, len(facts.shapes)
    call.sizes = [1, 1, 1, 1, 0, 0, 1, 1, 0]
    for i, word in enumerate(facts.shapes):
        shape, dtype = declared_shape(word), declared_type(word)
        count = prod(shape)
        storage = cpu.allocate(count * 8)
        numbers = ffi.cast("int64_t *", storage.data)
        for k in range(count):
            numbers[k] = value if i == place else 0
        call.tensors[i] = tensor(shape, dtype=dtype, storage=storage, nbytes=count * 8)[0]
        KEEP.append(storage)
    error = ffi.new("gc_error *")
    lib.gc_run(call, 1, error)
    return error


def index_inputs() -> Iterator[tuple[str, int]]:
    """Kernels and their inputs of int64 that they follow."""
    for name, facts in FACTS.items():
        for i, word in enumerate(facts.shapes[: facts.inputs]):
            if declared_type(word) == TYPES["L"] and not facts.draws:
                error = run_with(name, i, FAR)
                if error.status == lib.GC_BAD_INDEX:
                    yield name, i


INDEXED = list(index_inputs())


def test_the_kernels_that_follow_indices_are_all_here() -> None:
    assert sorted(name for name, _ in INDEXED) == [
        "cross_entropy", "cross_entropy_backward", "embedding", "flat_index", "gather",
        "index_add", "index_copy", "index_select", "index_select_backward", "max_pool2d_backward",
        "scatter", "select_backward",
    ]  # fmt: skip


@pytest.mark.parametrize(("kernel", "place"), INDEXED)
def test_a_kernel_refuses_the_first_index_behind_the_last(kernel: str, place: int) -> None:
    limit = run_with(kernel, place, FAR).limit
    assert limit in (SIDE, SIDE * SIDE, 1)
    behind = run_with(kernel, place, limit)
    assert (behind.status, behind.value, behind.tensor) == (lib.GC_BAD_INDEX, limit, place)
    assert run_with(kernel, place, limit - 1).status == lib.GC_OK


@pytest.mark.parametrize(("kernel", "place"), INDEXED)
def test_a_kernel_refuses_the_first_index_before_0(kernel: str, place: int) -> None:
    limit = run_with(kernel, place, FAR).limit
    first = -limit if FACTS[kernel].from_end else 0
    first -= kernel == "max_pool2d_backward"  # there -1 is that of a window without a pixel
    before = run_with(kernel, place, first - 1)
    assert (before.status, before.value) == (lib.GC_BAD_INDEX, first - 1)
    assert run_with(kernel, place, first).status == lib.GC_OK


SAYS = re.compile(r" -?\d+ at position \d+ is outside (-?\d+)\.\.(\d+)$")
ENDS_A_ROW = {"multilabel_margin_loss": -1}  # no index, as in torch


def answer(op: Row, sample: Sample, place: int, value: int) -> str:
    """What a call says whose last index is this value; nothing where it takes it."""
    inputs = gradcheck.make_inputs(sample, dtype=engine.float32)
    x = inputs[place]
    assert x is not None
    x.reshape(-1)[-1] = value
    try:
        gradcheck.call(op, sample, inputs)
    except GradcliError as error:
        return str(error)
    return ""


def limits() -> Iterator[tuple[Row, Sample, int]]:
    """Calls, and which of their inputs holds indices into something."""
    for op in gradcheck.every_op():
        for sample in op.samples:
            for i, one in enumerate(sample.inputs):
                if one.kind == "index" and numel(one.shape):
                    yield op, sample, i


@pytest.mark.parametrize(
    ("op", "sample", "place"), [pytest.param(*c, id=f"{c[0].name}{c[1]}-{c[2]}") for c in limits()]
)
def test_an_op_takes_the_last_index_and_refuses_the_next(
    op: Row, sample: Sample, place: int
) -> None:
    far = SAYS.search(answer(op, sample, place, FAR))
    if far is None:
        return  # its whole numbers are no indices, which test_bad_indices.py holds
    low, high = int(far[1]), int(far[2])
    for value in {low - 1, high + 1} - {ENDS_A_ROW.get(op.name)}:
        near = answer(op, sample, place, value)
        assert f" {value} at position " in near, (value, near)
        assert near.endswith(f"is outside {low}..{high}")
    for value in (low, high):
        assert not SAYS.search(answer(op, sample, place, value)), value
