"""Every op at infinities, NaN, zeros, subnormals, tiny and large values, against torch.

A result is right that equals torch's in float64, rounded, or torch's in the same type: element by
element NaN, infinite with the same sign, or within rounding. Rounding is a share of the largest
result, or what the result moves by where the inputs move by a few roundings. Where gradcli means to
differ is listed, by rows of docs/differences.md, and must still differ.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")
from both import FLOATS, ours, theirs  # noqa: E402
from special_differences import DIFFERENCES  # noqa: E402
from special_values import SUBNORMAL, cases, start  # noqa: E402
from test_parity_declared_ops import ALONE, CONSTANTS, in_torch, translated  # noqa: E402

from gradcli.engine import autograd, gradcheck, gradgradcheck  # noqa: E402
from gradcli.engine.op import Op  # noqa: E402
from gradcli.errors import GradcliError  # noqa: E402

pytestmark = pytest.mark.parity
ROUNDINGS = 128  # as in both.close
AGAIN = {"zero", "small", "17", "1e4"}  # where gradients of gradients are asked for, in float64
PARTS = ("value", "gradient", "recorded gradient", "second gradient")
SAMPLES = {torch.float32: 2, torch.float64: 1}
MOVES = 32  # as often as a rounding of an input may count
OPS = [op for op in gradcheck.every_op() if op.name not in ALONE]


def flowing(case):
    """Which inputs get a gradient, here and in torch."""
    names = gradcheck.input_names(case.op, case.sample)
    return [i for i in case.floats if (case.op.name, names[i]) not in CONSTANTS]


def ways_back(grad, outputs, inputs, weights, twice):
    """Gradients of the inputs, the same remembered, and those of their sum, if asked for."""
    ends = [y for y in outputs if y.requires_grad]
    if not ends or not inputs:
        return [], [], []
    begin = [weights(y) for y in ends]
    plain = grad(ends, inputs, begin, retain_graph=True, allow_unused=True)
    if not twice:
        return plain, [], []
    first = grad(ends, inputs, begin, create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    if not again:
        return plain, first, []
    second = grad(again, inputs, [weights(g) for g in again], allow_unused=True)
    return plain, first, second


def in_ours(case, twice):
    """Values, gradients and second gradients, as torch's tensors."""
    inputs = [None if x is None else x.detach() for x in case.inputs]
    chosen = [inputs[i] for i in flowing(case) if case.op.differentiable]
    for x in chosen:
        x.requires_grad_()
    outputs = gradcheck.call(case.op, case.sample, inputs)
    begin = lambda y: ours(weights_like(y))  # noqa: E731
    parts = outputs, *ways_back(autograd.grad, outputs, chosen, begin, twice)
    return [[None if y is None else theirs(y) for y in part] for part in parts]


def weights_like(y):
    """The same start for both."""
    name = str(y.dtype).partition(".")[2]
    made = torch.tensor(start(y.numel()), dtype=torch.float64)
    return made.reshape(tuple(y.shape)).to(getattr(torch, name))


def in_torch_at(case, inputs, twice, weights=weights_like):
    """The same in torch."""
    inputs = [None if x is None else x.clone() for x in inputs]
    chosen = [inputs[i].requires_grad_() for i in flowing(case) if case.op.differentiable]
    options = {name: translated(option) for name, option in case.sample.options.items()}
    op = case.op
    args, named = (inputs, options) if isinstance(op, Op) else op.arrange(inputs, options)
    made = in_torch(op.name)(*args, **named)
    made = made if isinstance(made, (tuple, list)) else (made,)
    outputs = [y for y in made if isinstance(y, torch.Tensor)]
    return outputs, *ways_back(torch.autograd.grad, outputs, chosen, weights, twice)


def moved(inputs, dtype):
    """The inputs, each by a few roundings up or down."""
    signs, made = torch.Generator().manual_seed(5), []
    for x in inputs:
        if x is not None and x.is_floating_point():
            sign = torch.randint(0, 2, x.shape, generator=signs).double() * 2 - 1
            tiny = SUBNORMAL[FLOATS[dtype]] * 2.0**-16 if dtype is torch.float32 else 5e-324
            far = x * (1 + 4 * torch.finfo(dtype).eps * sign) + 4 * tiny * sign
            x = torch.where(x.isfinite() & far.isfinite(), far, x)
        made.append(x)
    return made


def moved_weights(dtype):
    """The start of a way back, moved so too."""
    return lambda y: moved([weights_like(y)], dtype)[0]


def equal(found, expected, slack=0.0):
    """Where two agree, up to rounding and some slack."""
    finfo = torch.finfo(found.dtype)
    rounded = expected.to(found.dtype).double()
    found = found.double()
    finite = rounded[rounded.isfinite()].abs()
    largest = finite.max() if finite.numel() else 0.0
    near = (found - rounded).abs() <= ROUNDINGS * finfo.eps * largest + finfo.tiny + slack
    # What moves by more than it is has no digit that is certain, and its order of size has.
    lost = found.isfinite() & rounded.isfinite() & (torch.as_tensor(slack) > rounded.abs())
    return (found == rounded) | (found.isnan() & rounded.isnan()) | near | lost


def tried_in_torch(case, inputs, twice, weights=weights_like):
    """The same, or None where torch refuses; what it cannot differentiate again, once."""
    try:
        return in_torch_at(case, inputs, twice, weights)
    except (RuntimeError, ValueError) as error:
        again = twice and "not implemented" in str(error)
        return in_torch_at(case, inputs, False, weights) if again else None


def tried_in_ours(case, twice):
    """The same here."""
    try:
        return in_ours(case, twice)
    except GradcliError:
        return None


def wrong_parts(case, dtype):
    """Which of PARTS agree with torch in neither type."""
    twice = dtype is torch.float64 and case.kind in AGAIN and case.op.differentiable
    twice = twice and gradgradcheck.has_double_backward(case.op, case.sample)
    numbers = [None if x is None else theirs(x).clone() for x in case.inputs]
    wide = [x.double() if x is not None and x.is_floating_point() else x for x in numbers]
    found, exact = tried_in_ours(case, twice), tried_in_torch(case, wide, twice)
    if found is None or exact is None:
        return {"refusal"} if found is not exact else set()
    wrong = {}
    for n, part in enumerate(PARTS):
        for i, (y, want) in enumerate(zip(found[n], exact[n], strict=False)):
            if y is not None and want is not None and not agrees(y, want.detach()):
                wrong[n, i] = part
    if wrong:
        narrow = in_torch_at(case, numbers, twice and bool(exact[2]))
        shaken = tried_in_torch(case, moved(wide, dtype), twice, moved_weights(dtype)) or exact
        for n, i in list(wrong):
            y, want = found[n][i], exact[n][i].detach()
            slack = (shaken[n][i].detach() - want).abs().nan_to_num(0.0, 0.0, 0.0).max()
            if agrees(y, want, narrow[n][i].detach(), MOVES * slack):
                del wrong[n, i]
    return set(wrong.values())


def agrees(y, want, narrow=None, slack=0.0):
    """Whether each element is that of one of the two."""
    if not y.is_floating_point():
        return torch.equal(y, want)
    right = equal(y, want, slack)
    return bool((right if narrow is None else right | equal(y, narrow, slack)).all())


def differing(op):
    """In which parts an op differs from torch, at which kinds of values."""
    found = defaultdict(set)
    for dtype, most in SAMPLES.items():
        for case in cases(op, FLOATS[dtype], most):
            for part in wrong_parts(case, dtype):
                found[part].add(case.kind)
    return dict(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_special_values(op):
    listed = [one for one in DIFFERENCES if op.name in one.ops.split()]
    expected = defaultdict(set)
    for one in listed:
        expected[one.part].update(one.kinds.split())
    found = differing(op)
    stale = {one.part for one in listed if one.always} - set(found)
    assert not stale
    more = {part: kinds - expected[part] for part, kinds in found.items()}
    assert not any(more.values()), more


def test_every_difference_has_a_row_in_the_docs():
    text = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    lacking = [one.row for one in DIFFERENCES if f"\n| {one.row}" not in text]
    assert lacking == []
