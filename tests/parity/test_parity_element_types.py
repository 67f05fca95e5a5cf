"""Every op on element types mixed in its first two inputs: torch's result, or a clear refusal."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import theirs  # noqa: E402
from special_values import samples  # noqa: E402
from test_parity_declared_ops import ALONE, in_torch, translated  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import gradcheck  # noqa: E402
from gradcli.engine.op import Op  # noqa: E402
from gradcli.errors import GradcliError  # noqa: E402

pytestmark = pytest.mark.parity
NUMBERS = {
    engine.bool: (True, False, True),
    engine.uint8: (1, 0, 3, 200, 2, 7, 255, 1),
    engine.int32: (1, 0, 3, -2, 300, 7),
    engine.int64: (1, 0, 3, -2, 300, 7),
    engine.float32: (0.5, 2.25, 0.75, 1.5, 0.0, 3.0),
    engine.float64: (0.5, 2.25, 0.75, 1.5, 0.0, 3.0),
}
FILLED = {"normal", "positive", "away", "distinct", "unit"}
# Rows of docs/differences.md, the types of the first two inputs that differ, and the ops.
DIFFERENCES = [
    ("`hardtanh`, `relu6`, `threshold` of", "int32 int64", "hardtanh relu6 threshold"),
    ("`hardtanh`, `relu6`, `threshold` of", "uint8", "relu6 threshold"),
    ("`softsign`, `multilabel_soft_margin_loss` of uint8", "uint8", "softsign hardsigmoid"),
    (
        "`softsign`, `multilabel_soft_margin_loss` of uint8",
        "float32+uint8 float64+uint8",
        "multilabel_soft_margin_loss",
    ),
    ("`einsum` of small", "uint8+uint8 int32+int32", "einsum"),
    ("`rms_norm` of float32", "float32+float64", "rms_norm multilabel_soft_margin_loss"),
    ("Ties in `topk`", "uint8", "kthvalue"),
]


def slots(sample):
    """The first inputs whose numbers have no meaning of their own."""
    return [i for i, one in enumerate(sample.inputs) if one.kind in FILLED][:2]


OPS = [op for op in gradcheck.every_op() if any(slots(sample) for sample in samples(op, 1))]


def calls(op):
    """The first sample with every choice of element types."""
    for sample in samples(op, 1):
        chosen = slots(sample)
        for dtypes in itertools.product(NUMBERS, repeat=len(chosen)):
            inputs = gradcheck.make_inputs(sample, dtype=engine.float32)
            for k, (i, dtype) in enumerate(zip(chosen, dtypes, strict=True)):
                row, shape = NUMBERS[dtype], sample.inputs[i].shape
                numbers = [row[(j * (k + 1) + k) % len(row)] for j in range(math.prod(shape))]
                inputs[i] = engine.tensor(numbers, dtype=dtype).reshape(shape)
            yield "+".join(dtype.name for dtype in dtypes), sample, inputs


def expected(op, sample, inputs):
    """What torch gives; None where it refuses, or has no such function."""
    if op.name in ALONE:
        return None
    options = {name: translated(option) for name, option in sample.options.items()}
    args, named = (inputs, options) if isinstance(op, Op) else op.arrange(inputs, options)
    try:
        made = in_torch(op.name)(*args, **named)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    made = made if isinstance(made, (tuple, list)) else (made,)
    return [y for y in made if isinstance(y, torch.Tensor)]


def same(found, want):
    """Of one type, and equal up to float32's rounding."""
    found = theirs(found)
    return found.dtype == want.dtype and torch.allclose(
        found.double(), want.double(), rtol=1e-4, atol=1e-5, equal_nan=True
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_mixed_types_give_torchs_result_or_a_refusal_by_name(op):
    differing = set()
    for types, sample, inputs in calls(op):
        partners = [None if x is None else theirs(x).clone() for x in inputs]
        try:
            found = gradcheck.call(op, sample, inputs)
        except GradcliError as error:
            assert str(error).startswith(f"{op.name}: "), types
            assert "kernel" not in str(error), types
            continue
        wanted = expected(op, sample, partners)
        if wanted is not None and not all(map(same, found, wanted)):
            differing.add(types)
    listed = {t for _, types, ops in DIFFERENCES if op.name in ops.split() for t in types.split()}
    assert differing == listed


def test_every_difference_has_a_row_in_the_docs():
    text = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    assert [row for row, _, _ in DIFFERENCES if f"\n| {row}" not in text] == []
