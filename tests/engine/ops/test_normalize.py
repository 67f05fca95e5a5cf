"""What the composed normalisations and dropouts refuse, and sizes at the edge."""

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
        (lambda: F.group_norm(X.long(), 2), DTypeError, "group_norm: input must be float32"),
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
