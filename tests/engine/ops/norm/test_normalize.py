"""What the decomposed normalisations and dropouts refuse, and sizes at the edge."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine.nn import functional as F
from gradcli.errors import DTypeError, OptionError, ShapeError

X = engine.ones(2, 6, 5)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: F.group_norm(X, 4), OptionError, "num_groups 4 must divide the 6 channels"),
        (lambda: F.group_norm(X, 0), OptionError, "num_groups 0 must divide"),
        (lambda: F.group_norm(engine.ones(3), 1), ShapeError, "at least 2 dimensions"),
        (lambda: F.group_norm(X, 2, engine.ones(5)), ShapeError, "weight has \\(5,\\)"),
        (lambda: F.group_norm(X.long(), 2), DTypeError, "group_norm: x must be float32"),
        (lambda: F.instance_norm(X, engine.ones(6)), OptionError, "both running_mean and"),
        (lambda: F.instance_norm(X[:, :, :1]), OptionError, "more than 1 value"),
        (lambda: F.instance_norm(X, bias=engine.ones(2)), ShapeError, "bias has \\(2,\\)"),
        (lambda: F.rms_norm(X, 4), ShapeError, "does not end in normalized_shape \\(4,\\)"),
        (lambda: F.rms_norm(X, ()), ShapeError, "does not end in"),
        (lambda: F.rms_norm(X, 5, engine.ones(4)), ShapeError, "weight \\(4,\\) is not of"),
        (lambda: F.local_response_norm(X[0], 3), ShapeError, "3 or more dimensions"),
        (lambda: F.local_response_norm(X, 0), OptionError, "size must be at least 1"),
        (lambda: F.normalize(X.long()), DTypeError, "normalize: input must be float32"),
        (lambda: F.dropout1d(X, 1.5), OptionError, "dropout1d: p must be from 0 to 1"),
        (lambda: F.dropout1d(X[0, 0]), ShapeError, "dropout1d: input must be"),
        (lambda: F.dropout2d(X[0]), ShapeError, "dropout2d: input must be"),
        (lambda: F.alpha_dropout(X, inplace=True), OptionError, "alpha_dropout: inplace"),
        (lambda: F.bilinear(X, X, engine.ones(2, 5, 4)), ShapeError, "bilinear: weight must be"),
        (lambda: F.bilinear(X, X[0], engine.ones(2, 5, 5)), ShapeError, "differ before the last"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_group_norm_takes_torchs_order_and_names():
    w, b = engine.rand(6), engine.rand(6)
    wanted = F.group_norm(X, num_groups=2, weight=w, bias=b, eps=0.1).tolist()
    assert F.group_norm(X, 2, w, b, 0.1).tolist() == wanted
    assert F.group_norm(input=X, num_groups=2, weight=w, bias=b, eps=0.1).tolist() == wanted
    with pytest.raises(OptionError, match="group_norm: argument 'weight' is given twice"):
        F.group_norm(X, 2, w, weight=w)


def test_planes_of_nothing_teach_group_norm_nothing():
    w = engine.ones(6).requires_grad_()
    F.group_norm(engine.ones(2, 6, 0), 3, w).sum().backward()
    assert w.grad.tolist() == [0.0] * 6


def test_group_norm_with_a_bias_alone():
    b = engine.rand(6).requires_grad_()
    y = F.group_norm(X, 2, None, b)
    assert y.tolist() == (F.group_norm(X, 2) + b.reshape(1, 6, 1)).tolist()
    y.sum().backward()
    assert b.grad.tolist() == [10.0] * 6


@pytest.mark.parametrize(
    ("shape", "groups"), [((150, 6), 2), ((130, 4, 3, 7), 4), ((3, 2, 9001), 1)]
)
def test_group_norm_over_many_samples_is_what_its_parts_give(shape, groups):
    engine.manual_seed(5)
    x, w, b = (engine.randn(*s, dtype=engine.float64) for s in (shape, shape[1:2], shape[1:2]))
    start = engine.randn(*shape, dtype=engine.float64)
    found = []
    for parts in (False, True):
        given = [t.clone().requires_grad_() for t in (x, w, b)]
        with engine.decomposed(parts):
            y = F.group_norm(given[0], groups, *given[1:])
        y.backward(start)
        found.append([y, *(t.grad for t in given)])
    for fused, simple in zip(*found, strict=True):
        assert engine.allclose(fused, simple, rtol=1e-11, atol=1e-11)


def test_group_norm_of_numbers_far_from_0_loses_nothing_but_what_they_had_lost():
    x = engine.randn(3, 4, 50, dtype=engine.float64)
    far = (x + 3e4).float()
    exact = F.group_norm(far.double(), 2)
    assert engine.allclose(F.group_norm(far, 2).double(), exact, rtol=1e-6, atol=1e-6)


def test_group_norm_keeps_what_is_no_number_within_its_group():
    x = engine.rand(2, 4, 5)
    x[0, 3, 2] = float("nan")
    x[1, 0, 0] = float("inf")
    broken = F.group_norm(x, 2).isnan().any(2).tolist()
    assert broken == [[False, False, True, True], [True, True, False, False]]


@pytest.mark.parametrize("shape", [(0, 6, 5), (2, 6, 0), (2, 0, 5)])
def test_nothing_in_gives_nothing_out(shape):
    x = engine.ones(*shape, requires_grad=True)
    groups = 1 if shape[1] == 0 else 3
    for y in (F.group_norm(x, groups), F.instance_norm(x), F.rms_norm(x, shape[2:])):
        assert y.shape == shape
        y.sum().backward()
    assert F.local_response_norm(x, 3).shape == shape
    assert F.normalize(x).shape == shape
    assert F.dropout1d(x).shape == shape
