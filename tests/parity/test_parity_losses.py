"""Losses: values and gradients are torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, close, ours, randn  # noqa: E402

from gradcli.engine import nn  # noqa: E402

pytestmark = pytest.mark.parity


def compare(loss, reference, x, target):
    x = x.clone().requires_grad_()
    y = reference(x, target)
    our_x = ours(x, requires_grad=True)
    our_y = loss(our_x, ours(target))
    close(our_y, y)
    grad = randn(*y.shape, dtype=x.dtype, seed=7)
    y.backward(grad)
    our_y.backward(ours(grad))
    close(our_x.grad, x.grad)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"ignore_index": 2}], ids=str)
@pytest.mark.parametrize("shape", [(7, 5), (2, 5, 3), (1, 5, 2, 3), (5,)])
def test_cross_entropy(shape, options, weighted, reduction, dtype):
    weight = torch.tensor([0.5, 1.0, 2.0, 0.0, 1.5], dtype=dtype) if weighted else None
    reference = torch.nn.CrossEntropyLoss(weight, reduction=reduction, **options)
    loss = nn.CrossEntropyLoss(
        None if weight is None else ours(weight), reduction=reduction, **options
    )
    places = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    target = torch.randint(0, 5, places, generator=torch.Generator().manual_seed(1))
    compare(loss, reference, 5 * randn(*shape, dtype=dtype), target)
    assert list(loss.state_dict()) == list(reference.state_dict())


def test_cross_entropy_of_huge_scores_stays_finite():
    x = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 3e38]], dtype=torch.float32)
    compare(nn.CrossEntropyLoss(), torch.nn.CrossEntropyLoss(), x[:, :2], torch.tensor([0, 1]))
    compare(nn.CrossEntropyLoss(), torch.nn.CrossEntropyLoss(), x, torch.tensor([0, 2]))


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(4, 3), (1,), (2, 1, 3), ()])
def test_mse(shape, reduction, dtype):
    x, target = randn(*shape, dtype=dtype), randn(*shape, dtype=dtype, seed=1)
    compare(nn.MSELoss(reduction=reduction), torch.nn.MSELoss(reduction=reduction), x, target)
