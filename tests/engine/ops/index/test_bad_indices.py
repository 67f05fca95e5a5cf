"""Indices and classes outside of their range, in every op that declares some."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.gradcheck import Row
from gradcli.engine.sample import Sample
from gradcli.engine.shape import numel
from gradcli.errors import GradcliError

BAD = (-1000, 1000, 2**62)


def places(op: Row) -> Iterator[tuple[Sample, int]]:
    """The declared inputs that hold indices, and have some."""
    for sample in op.samples:
        for i, one in enumerate(sample.inputs):
            if one.kind == "index" and numel(one.shape):
                yield sample, i


OPS = [op for op in gradcheck.every_op() if any(places(op))]
# Whole numbers there are numbers like others, or fill what has no elements.
NUMBERS = """
add all allclose any argsort argwhere bernoulli_ bfloat16 bincount bitwise_and bitwise_and_
bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_xor bitwise_xor_ bool bucketize clamp_
clip clip_ count_nonzero div div_ double flat_index float index_add index_add_ index_copy
index_copy_ int isclose isfinite isin isinf isnan logical_not logical_not_ long
multilabel_soft_margin_loss nan_to_num nan_to_num_ new_empty new_ones new_tensor new_zeros
nonzero one_hot prod rand_at repeat_interleave sub tensor_split to type_as unique
unique_consecutive
"""
SAYS = r": (index|target) -?\d+ at position \d+ is outside -?\d+\.\.\d+"
# The size of the answer, which no memory holds.
SIZES = {"bincount", "one_hot", "repeat_interleave"}


def refusals(op: Row) -> Iterator[str]:
    """What it says to each bad index in each sample; nothing where it takes one."""
    for sample, i in places(op):
        for bad in BAD:
            inputs = gradcheck.make_inputs(sample, dtype=engine.float32)
            x = inputs[i]
            assert x is not None
            x.reshape(-1)[-1] = bad
            try:
                gradcheck.call(op, sample, inputs)
            except GradcliError as error:
                yield str(error)
            else:
                yield ""


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_bad_index_is_refused_in_the_name_of_the_op(op: Row) -> None:
    said = set(refusals(op))
    if op.name in SIZES:
        said = {text for text in said if not text.startswith("no memory for ")}
    assert ("" in said) == (op.name in NUMBERS.split())
    assert [text for text in said if text and not text.startswith(f"{op.name}: ")] == []
    if op.name not in SIZES:
        assert [text for text in said if text and not re.search(SAYS, text)] == []
