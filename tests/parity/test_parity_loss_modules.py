"""Losses as modules: torch's arguments and values, and 20 steps of SGD under each."""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, copy_weights, ours, randn  # noqa: E402
from twins import STEPS  # noqa: E402

from gradcli.engine import nn, optim  # noqa: E402

pytestmark = pytest.mark.parity


def uniform(*shape, seed):
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


LABELS = torch.tensor([2, 0, 1, 1, 0, 2])
SIGNS = torch.tensor([1, -1, -1, 1, -1, 1])
VALUES, OTHERS = randn(6, 3, seed=1), randn(6, 3, seed=2)
TRUTHS = uniform(6, 3, seed=3)
WEIGHT = torch.tensor([2.0, 0.5, 1.0], dtype=torch.float64)
SHARES = torch.softmax(VALUES, 1)


def plain(y):
    return (y,)


def logs(y):
    return (y.log_softmax(1),)


# The options of each, what it takes of the outputs y of a layer, and the targets behind that.
MODULES = {
    "BCELoss": ({"weight": WEIGHT}, lambda y: (y.sigmoid(),), (TRUTHS,)),
    "BCEWithLogitsLoss": ({"pos_weight": WEIGHT, "weight": WEIGHT}, plain, (TRUTHS,)),
    "CosineEmbeddingLoss": ({"margin": 0.2}, plain, (VALUES, SIGNS)),
    "CosineSimilarity": ({"dim": 0, "eps": 1e-4}, plain, (VALUES,)),
    "CrossEntropyLoss": ({"weight": WEIGHT, "label_smoothing": 0.1}, plain, (LABELS,)),
    "GaussianNLLLoss": ({"full": True, "eps": 0.1}, plain, (VALUES, TRUTHS)),
    "HingeEmbeddingLoss": ({"margin": 0.5}, plain, (torch.sign(VALUES),)),
    "HuberLoss": ({"reduction": "sum", "delta": 0.3}, plain, (VALUES,)),
    "KLDivLoss": ({"reduction": "batchmean"}, logs, (SHARES,)),
    "L1Loss": ({"reduction": "sum"}, plain, (VALUES,)),
    "MSELoss": ({}, plain, (VALUES,)),
    "MarginRankingLoss": ({"margin": 0.5}, lambda y: (y[:, 0], y[:, 1]), (SIGNS,)),
    "MultiLabelSoftMarginLoss": ({"weight": WEIGHT}, plain, (TRUTHS.round(),)),
    "MultiMarginLoss": ({"p": 2, "margin": 0.5, "weight": WEIGHT}, plain, (LABELS,)),
    "MultiLabelMarginLoss": ({}, plain, (torch.tensor([[2, 0, -1]] * 5 + [[1, -1, 0]]),)),
    "NLLLoss": ({"weight": WEIGHT, "ignore_index": 1}, logs, (LABELS,)),
    "PairwiseDistance": ({"p": 1.0, "keepdim": True}, plain, (VALUES,)),
    "PoissonNLLLoss": ({"log_input": False, "eps": 0.1}, lambda y: (y.exp(),), (3 * TRUTHS,)),
    "SmoothL1Loss": ({"beta": 0.2, "reduction": "none"}, plain, (VALUES,)),
    "SoftMarginLoss": ({}, plain, (torch.sign(VALUES),)),
    "TripletMarginWithDistanceLoss": ({"margin": 0.5, "swap": True}, plain, (VALUES, OTHERS)),
    "TripletMarginLoss": ({"margin": 0.5, "swap": True}, plain, (VALUES, OTHERS)),
}
every_module = pytest.mark.parametrize("name", sorted(MODULES))


def of_type(dtype, x):
    return x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def pair(name, dtype):
    """The loss of torch and ours, each as a function of the outputs of a layer."""
    options, chosen, targets = MODULES[name]
    options = {key: of_type(dtype, value) for key, value in options.items()}
    targets = [of_type(dtype, x) for x in targets]
    reference = getattr(torch.nn, name)(**options)
    mine = {k: ours(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    module = getattr(nn, name)(**mine)
    assert list(module.state_dict()) == list(reference.state_dict())
    assert repr(module) == repr(reference)
    our_targets = [ours(x) for x in targets]
    return (
        lambda y: reference(*chosen(y), *targets),
        lambda y: module(*chosen(y), *our_targets),
    )


@every_module
@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
def test_modules_hand_on_what_they_are_given(name, dtype, agree):
    reference, loss = pair(name, dtype)
    x = randn(6, 3, dtype=dtype, seed=5).requires_grad_()
    our_x = ours(x, requires_grad=True)
    expected, found = reference(x), loss(our_x)
    agree(f"nn.{name}", found, expected)
    expected.sum().backward()
    found.sum().backward()
    agree(f"nn.{name}", our_x.grad, x.grad)


@every_module
def test_training_under_each_loss(name, agree):
    reference, loss = pair(name, torch.float64)
    theirs = torch.nn.Linear(5, 3).double()
    with torch.no_grad():
        for i, p in enumerate(theirs.parameters()):
            p.copy_(randn(*p.shape, seed=10 + i) / 3)
    mine = copy_weights(nn.Linear(5, 3).double(), theirs)
    their_sgd = torch.optim.SGD(theirs.parameters(), lr=0.02, momentum=0.5)
    our_sgd = optim.SGD(mine.parameters(), lr=0.02, momentum=0.5)
    for step in range(STEPS):
        x = randn(6, 5, seed=100 + step)
        for layer, value, sgd, batch in (
            (theirs, reference, their_sgd, x),
            (mine, loss, our_sgd, ours(x)),
        ):
            sgd.zero_grad()
            value(layer(batch)).mean().backward()
            sgd.step()
    for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
        # Roundings grow from step to step; the parameters stay of order 1.
        agree(f"nn.{name}", p, q, terms=1 << 14)


def test_the_table_has_every_loss_of_this_page():
    table = {**nn.LOSSES, **nn.MARGIN_LOSSES}
    assert set(table) == set(MODULES)
    old = {"size_average", "reduce"}
    for name, kind in table.items():
        theirs = inspect.signature(getattr(torch.nn, name)).parameters
        mine = inspect.signature(kind).parameters
        assert set(theirs) - old == set(mine)
        assert all(mine[key].default == theirs[key].default for key in mine)
