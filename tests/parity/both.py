"""The same numbers in torch and in gradcli, and how near two results must be."""

from __future__ import annotations

import torch

from gradcli import engine

FLOATS = {torch.float32: engine.float32, torch.float64: engine.float64}


def ours(tensor, *, requires_grad=False):
    """A torch tensor's numbers in memory of our own."""
    made = engine.from_dlpack(tensor.detach()).clone()
    return made.requires_grad_() if requires_grad else made


def theirs(tensor):
    """Our numbers as a torch tensor."""
    return torch.from_dlpack(tensor.detach())


def close(found, expected, *, terms=128):
    """Equal up to rounding; gives the error as a share of the largest result or 1.

    No number here is a sum of more than `terms` products, each rounded once and no larger than the
    largest result or 1: the results differ by at most terms * eps * max(1, largest).
    """
    found = theirs(found)
    expected = expected.detach()
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.numel() == 0:
        return 0.0
    if not expected.is_floating_point():
        assert torch.equal(found, expected)
        return 0.0
    scale = max(1.0, expected.nan_to_num(0.0, 0.0, 0.0).abs().max().item())
    limit = terms * torch.finfo(expected.dtype).eps * scale
    special = ~expected.isfinite()
    assert torch.allclose(found[special], expected[special], equal_nan=True)
    worst = (found - expected)[~special].abs().amax().item() if not special.all() else 0.0
    assert worst <= limit, f"off by {worst:.3g}, allowed {limit:.3g}"
    return worst / scale


def randn(*shape, dtype=torch.float64, seed=0):
    """Normal numbers from a seed, in torch."""
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def copy_weights(model, reference):
    """Our model gets the weights and buffers of torch's; the names must agree."""
    state = {name: ours(value) for name, value in reference.state_dict().items()}
    assert list(model.state_dict()) == list(state)
    model.load_state_dict(state)
    return model


def as_list(result):
    """One result, or several, as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def both_ways(agree, name, call, inputs):
    """The same call in both libraries, on floats of both sizes: values and gradients agree.

    `call` takes the library and its tensors, and gives a tensor or several.
    """
    for dtype in (torch.float64, torch.float32):
        reference = [x.to(dtype).clone().requires_grad_() for x in inputs]
        mine = [ours(x, requires_grad=True) for x in reference]
        expected, found = as_list(call(torch, reference)), as_list(call(engine, mine))
        assert len(expected) == len(found)
        weights = [randn(*y.shape, seed=7).to(dtype) for y in expected]
        sum((y * w).sum() for y, w in zip(expected, weights, strict=True)).backward()
        total = sum((y * ours(w)).sum() for y, w in zip(found, weights, strict=True))
        total.backward()
        for y, want in zip(found, expected, strict=True):
            agree(name, y, want)
        for x, want in zip(mine, reference, strict=True):
            agree(name, x.grad, want.grad)
