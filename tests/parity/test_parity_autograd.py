"""Autograd's own words: hooks, retained gradients, checkpoints, gradients of gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from both import FLOATS, copy_weights, ours, randn  # noqa: E402
from torch.utils import checkpoint as their_checkpoint  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn  # noqa: E402

pytestmark = pytest.mark.parity
DTYPES = pytest.mark.parametrize("dtype", list(FLOATS), ids=str)


def pair(*shape, dtype, seed=0):
    """One leaf in both."""
    theirs = randn(*shape, dtype=dtype, seed=seed).requires_grad_()
    return ours(theirs, requires_grad=True), theirs


@DTYPES
@pytest.mark.parametrize("shape", [(3, 5), (1,), (), (0, 4), (2, 1, 3)])
def test_a_hook_of_a_leaf_and_one_in_between(agree, shape, dtype):
    found = []
    for x in pair(*shape, dtype=dtype):
        seen = []
        x.register_hook(lambda grad: grad * 3)
        y = x * x
        y.register_hook(lambda grad, seen=seen: seen.append(grad))
        y.register_hook(lambda grad: grad + 1)
        (y * y + y.exp() * 0.1).sum().backward()
        found.append((x.grad, *seen))
    for mine, reference in zip(*found, strict=True):
        agree("Tensor.register_hook", mine, reference)


@DTYPES
def test_hooks_under_two_ways_back(agree, dtype):
    found = []
    for x, module in zip(pair(4, 3, dtype=dtype), (engine, torch), strict=True):
        y = x * x
        y.register_hook(lambda grad: grad * 3)
        (first,) = module.autograd.grad((y * y).sum(), x, create_graph=True)
        (second,) = module.autograd.grad(first.sum(), x)
        found.append((first, second))
    for mine, reference in zip(*found, strict=True):
        agree("Tensor.register_hook", mine, reference)


@DTYPES
def test_retained_gradients_add_up_and_come_after_hooks(agree, dtype):
    found = []
    for x in pair(3, 5, dtype=dtype):
        y = x.tanh()
        y.retain_grad()
        y.register_hook(lambda grad: grad * 2)
        loss = (y * x).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        assert (x.is_leaf, y.is_leaf, x.retains_grad, y.retains_grad) == (True, False, False, True)
        found.append((y.grad, x.grad))
    for mine, reference in zip(*found, strict=True):
        agree("Tensor.retain_grad", mine, reference)


@DTYPES
def test_hooks_and_retained_gradients_in_grad(agree, dtype):
    found = []
    for x, module in zip(pair(3, 5, dtype=dtype), (engine, torch), strict=True):
        y = x.sin()
        y.register_hook(lambda grad: grad * 2)
        loss = (y * y).sum()
        found.append([*module.autograd.grad(loss, y, retain_graph=True)])
        found[-1] += module.autograd.grad(loss, x)
    for mine, reference in zip(*found, strict=True):
        agree("Tensor.register_hook", mine, reference)


@DTYPES
def test_steps_taken_as_soon_as_a_gradient_has_arrived(agree, dtype):
    found = []
    for x, module in zip(pair(3, 2, dtype=dtype), (engine, torch), strict=True):

        def step(leaf, module=module):
            with module.no_grad():
                leaf -= 0.1 * leaf.grad
            leaf.grad = None

        x.register_post_accumulate_grad_hook(step)
        for _ in range(20):
            (x * x * x + x).sum().backward()
        assert x.grad is None
        found.append(x)
    agree("Tensor.register_post_accumulate_grad_hook", found[0], found[1])


def perceptrons(dtype):
    """The same network twice."""
    reference = torch.nn.Sequential(
        torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7), torch.nn.Tanh(), torch.nn.Linear(7, 3)
    ).to(dtype)
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Linear(7, 3))
    return copy_weights(model.to(FLOATS[dtype]), reference), reference


@DTYPES
def test_backward_hooks_of_modules(agree, dtype):
    found = []
    models, inputs = perceptrons(dtype), pair(6, 5, dtype=dtype)
    for model, x in zip(models, inputs, strict=True):
        seen = []

        def look(module, grad_input, grad_output, seen=seen):
            seen += [*grad_input, *grad_output]
            return tuple(g * 2 for g in grad_input)

        for layer in (model[0], model[2], model[3]):
            layer.register_full_backward_hook(look)
        model[1].register_full_backward_pre_hook(lambda module, grads: (grads[0] * 3,))
        (model(x) ** 2).sum().backward()
        found.append([*seen, x.grad, *(p.grad for p in model.parameters())])
    for mine, reference in zip(*found, strict=True):
        agree("nn.Module.register_full_backward_hook", mine, reference, terms=512)


@DTYPES
@pytest.mark.parametrize("segments", [1, 2, 4])
def test_checkpoints_give_the_gradients_that_torch_gives(agree, segments, dtype):
    model, reference = perceptrons(dtype)
    x, their_x = pair(6, 5, dtype=dtype)
    y = engine.checkpoint_sequential(list(model), segments, x)
    their_y = their_checkpoint.checkpoint_sequential(
        reference, segments, their_x, use_reentrant=False
    )
    agree("checkpoint_sequential", y, their_y)
    (y * y).sum().backward()
    (their_y * their_y).sum().backward()
    agree("checkpoint_sequential", x.grad, their_x.grad, terms=512)
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        agree("checkpoint_sequential", p.grad, q.grad, terms=512)


@DTYPES
def test_gradients_of_gradients_through_a_checkpoint(agree, dtype):
    found = []
    checkpoints = engine.checkpoint, their_checkpoint.checkpoint
    modules = engine, torch
    for x, run, module in zip(pair(4, 3, dtype=dtype), checkpoints, modules, strict=True):
        y = run(lambda x: (x * x).tanh() * x, x, use_reentrant=False)
        (first,) = module.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = module.autograd.grad((first * first).sum(), x)
        found.append((y, first, second))
    for mine, reference in zip(*found, strict=True):
        agree("checkpoint", mine, reference)


@DTYPES
@pytest.mark.parametrize("cuts", [(8,), (1,) * 8, (4, 4), (5, 3)], ids=str)
def test_gradients_of_a_batch_add_up_from_its_parts(agree, cuts, dtype):
    """The whole batch by torch; by us in parts, each weighed by its share of the batch."""
    reference = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.GELU(), torch.nn.Linear(7, 3))
    reference = reference.to(dtype)
    model = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.Linear(7, 3)).to(FLOATS[dtype])
    copy_weights(model, reference)
    x, y = randn(8, 5, dtype=dtype, seed=1), torch.arange(8) % 3
    torch.nn.functional.cross_entropy(reference(x), y).backward()
    first = 0
    for size in cuts:
        part = slice(first, first + size)
        loss = nn.functional.cross_entropy(model(ours(x[part])), ours(y[part].clone()))
        (loss * (size / 8)).backward()
        first += size
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        agree("Tensor.backward", p.grad, q.grad)


SECOND = {
    "gelu": lambda x, F: F.gelu(x),
    "silu": lambda x, F: F.silu(x),
    "mish": lambda x, F: F.mish(x),
    "elu": lambda x, F: F.elu(x, 1.3),
    "selu": lambda x, F: F.selu(x),
    "celu": lambda x, F: F.celu(x, 0.5),
    "softplus": lambda x, F: F.softplus(x, 2.0, 3.0),
    "logsigmoid": lambda x, F: F.logsigmoid(x),
    "softsign": lambda x, F: F.softsign(x),
    "hardswish": lambda x, F: F.hardswish(x),
    "softmax": lambda x, F: F.softmax(x, -1),
    "log_softmax": lambda x, F: F.log_softmax(x, 0),
    "layer_norm": lambda x, F: F.layer_norm(x, (5,)),
    "cross_entropy": lambda x, F: F.cross_entropy(x, x.detach().softmax(-1), label_smoothing=0.1),
    "tan": lambda x, F: (x * 0.3).tan(),
    "erf": lambda x, F: x.erf(),
    "atan2": lambda x, F: x.atan2(x * x + 1),
    "hypot": lambda x, F: x.hypot(x * x + 1),
    "pow": lambda x, F: (x * x + 1) ** 1.5,
    "matmul": lambda x, F: x @ x.t(),
    "std": lambda x, F: x.std(0),
    "prod": lambda x, F: x.prod(1),
    "cumprod": lambda x, F: x.cumprod(0),
    "logsumexp": lambda x, F: x.logsumexp(1),
    "norm": lambda x, F: x.norm(3.0),
    "max": lambda x, F: x.max(0)[0],
    "avg_pool1d": lambda x, F: F.avg_pool1d(x[None], 2),
    "max_pool1d": lambda x, F: F.max_pool1d(x[None], 2),
}


@DTYPES
@pytest.mark.parametrize("name", SECOND)
def test_gradients_of_gradients(agree, name, dtype):
    found = []
    sides = (engine, nn.functional), (torch, torch.nn.functional)
    for x, (module, F) in zip(pair(4, 5, dtype=dtype, seed=3), sides, strict=True):
        y = SECOND[name](x, F)
        weights = (
            ours(randn(*y.shape, dtype=dtype, seed=8))
            if module is engine
            else randn(*y.shape, dtype=dtype, seed=8)
        )
        (first,) = module.autograd.grad(y * y, x, weights, create_graph=True)
        (second,) = module.autograd.grad((first * first).sum(), x)
        found.append((first, second))
    for mine, reference in zip(*found, strict=True):
        agree(f"{name}, twice", mine, reference, terms=512)
