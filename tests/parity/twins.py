"""The same layer in torch and here, through two batches, evaluation and 20 steps of SGD."""

from __future__ import annotations

import torch
from both import FLOATS, copy_weights, ours, randn

from gradcli import engine
from gradcli.engine import nn, optim

STEPS = 20


def twins(name, args, options, dtype):
    """A layer of torch.nn with weights of its own, and ours with the same."""
    reference = getattr(torch.nn, name)(*args, **options).to(dtype)
    with torch.no_grad():
        for i, p in enumerate(reference.parameters()):
            p.copy_(randn(*p.shape, dtype=dtype, seed=10 + i))
    layer = getattr(nn, name)(*args, **options).to(FLOATS[dtype])
    assert repr(layer) == repr(reference)
    return copy_weights(layer, reference), reference


def stepped(x):
    """Our numbers with gaps between them in memory."""
    whole = engine.full([2 * size + 1 for size in x.shape], 7, dtype=x.dtype)
    return whole[tuple(slice(1, None, 2) for _ in x.shape)].copy_(x)


def same_layer(agree, name, args, options, shape, dtype):
    """Values, gradients and buffers, twice: statistics move on, and the second input has gaps."""
    layer, reference = twins(name, args, options, dtype)
    for seed in (1, 2):
        x = randn(*shape, dtype=dtype, seed=seed).requires_grad_()
        y = reference(x)
        grad = randn(*y.shape, dtype=dtype, seed=3)
        y.backward(grad)
        our_x = (ours(x) if seed == 1 else stepped(ours(x))).requires_grad_()
        our_y = layer(our_x)
        agree(f"nn.{name}", our_y, y)
        our_y.backward(ours(grad))
        agree(f"nn.{name}", our_x.grad, x.grad)
    for p, q in zip(layer.parameters(), reference.parameters(), strict=True):
        agree(f"nn.{name}", p.grad, q.grad, terms=1024)
    for key, value in reference.state_dict().items():
        agree(f"nn.{name}", layer.state_dict()[key], value)
    agree(f"nn.{name}", layer.eval()(our_x), reference.eval()(x))


def same_training(agree, name, args, options, shape, *, lr=0.01):
    """20 steps of SGD towards small outputs, in float64."""
    layer, reference = twins(name, args, options, torch.float64)
    ours_step = optim.SGD(layer.parameters(), lr=lr, momentum=0.5)
    theirs_step = torch.optim.SGD(reference.parameters(), lr=lr, momentum=0.5)
    for step in range(STEPS):
        x = randn(*shape, seed=100 + step)
        for model, optimizer, batch in (
            (layer, ours_step, ours(x)),
            (reference, theirs_step, x),
        ):
            optimizer.zero_grad()
            y = model(batch)
            (y * y).mean().backward()
            optimizer.step()
    for p, q in zip(layer.parameters(), reference.parameters(), strict=True):
        # Roundings grow from step to step; the parameters stay of order 1.
        agree(f"nn.{name}", p, q, terms=1 << 14)
