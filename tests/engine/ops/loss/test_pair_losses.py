"""Losses of pairs: ends and kinks, weights, gradients of gradients, captured steps."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine.nn import functional as F
from gradcli.errors import GradcliError

PAIRS = [
    ("l1_loss", {}),
    ("smooth_l1_loss", {"beta": 0.4}),
    ("huber_loss", {"delta": 0.4, "reduction": "sum"}),
    ("kl_div", {"log_target": True, "reduction": "batchmean"}),
    ("binary_cross_entropy", {"weight": engine.tensor([0.5, 2.0, 1.0])}),
    ("binary_cross_entropy_with_logits", {"pos_weight": engine.tensor([0.5, 2.0, 1.0])}),
]
over_pairs = pytest.mark.parametrize(("name", "options"), PAIRS, ids=[name for name, _ in PAIRS])


def gradients(loss: engine.Tensor, x: engine.Tensor) -> list[Any]:
    (grad,) = engine.grad(loss, x)
    return grad.tolist()


def test_logits_of_1000_give_a_finite_binary_loss_and_gradient() -> None:
    x = engine.tensor([1000.0, -1000.0, 1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, engine.tensor([1.0, 1, 0, 0]), reduction="none")
    assert loss.tolist() == [0, 1000, 1000, 0]
    assert gradients(loss.sum(), x) == [0, -1, 1, 0]


def test_small_losses_keep_their_digits() -> None:
    x = engine.tensor([-30.0, 30.0])
    loss = F.binary_cross_entropy_with_logits(x, engine.tensor([0.0, 1.0]), reduction="none")
    assert loss.tolist() == pytest.approx([math.exp(-30.0)] * 2, rel=1e-6)


def test_a_probability_of_0_costs_100_where_1_was_right() -> None:
    p = engine.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(p, engine.tensor([1.0, 0.0, 0.0, 1.0]), reduction="none")
    assert loss.tolist() == [100, 100, 0, 0]
    assert gradients(loss.sum(), p) == pytest.approx([-1e12, 1e12, 0, 0])


def test_targets_of_1_count_pos_weight_times() -> None:
    x, ones = engine.tensor([0.3, -2.0]), engine.ones((2,))
    for target, factor in ((ones, 3), (0 * ones, 1)):
        once = F.binary_cross_entropy_with_logits(x, target)
        more = F.binary_cross_entropy_with_logits(x, target, pos_weight=3 * ones)
        assert more.item() == pytest.approx(factor * once.item(), rel=1e-6)


def test_the_slope_of_the_distance_is_0_where_there_is_none() -> None:
    x = engine.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = F.l1_loss(x, engine.full((3,), 2.0), reduction="sum")
    assert gradients(loss, x) == [-1, 0, 1]


def test_nan_goes_through_every_loss() -> None:
    x = engine.tensor([[math.nan, 0.5, 0.5]])
    for name, options in PAIRS:
        loss = getattr(F, name)
        assert math.isnan(loss(x, engine.full((1, 3), 0.5), **options).item())
        assert math.isnan(loss(engine.full((1, 3), 0.5), x, **options).item())


@over_pairs
def test_the_gradient_has_a_gradient(name: str, options: dict[str, Any]) -> None:
    generator = engine.Generator().manual_seed(3)
    x = engine.rand(4, 3, generator=generator, dtype=engine.float64).requires_grad_()
    target = engine.rand(4, 3, generator=generator, dtype=engine.float64).requires_grad_()
    given = {
        key: value.to(engine.float64) if isinstance(value, engine.Tensor) else value
        for key, value in options.items()
    }

    def slopes(x: engine.Tensor, target: engine.Tensor, **how: Any) -> tuple[engine.Tensor, ...]:
        return engine.grad(getattr(F, name)(x, target, **given), (x, target), **how)

    once = slopes(x, target, create_graph=True)
    for first, plain in zip(once, slopes(x, target), strict=True):
        assert (first - plain).abs().max().item() < 1e-14
    way = engine.randn(4, 3, generator=generator, dtype=engine.float64)
    flat = 0 * x.sum()  # the slope of a distance depends on nothing
    found = engine.grad((once[0] * way).sum() + (once[1] * way).sum() + flat, x)[0]
    step = 1e-6
    after, before = (
        slopes((x + s * step * way).detach().requires_grad_(), target) for s in (1, -1)
    )
    wanted = sum(((a - b) * way).sum().item() for a, b in zip(after, before, strict=True))
    assert (found * way).sum().item() == pytest.approx(wanted / (2 * step), rel=1e-6, abs=1e-8)


@over_pairs
def test_a_captured_step_gives_the_same_bits(name: str, options: dict[str, Any]) -> None:
    inputs = engine.rand(5, 4, 3, generator=engine.Generator().manual_seed(3))

    def step(x: engine.Tensor) -> tuple[engine.Tensor, engine.Tensor]:
        leaf = x.detach().requires_grad_()
        loss = getattr(F, name)(leaf, engine.full((4, 3), 0.25), **options)
        return loss.detach(), engine.grad(loss, leaf)[0]

    fast = engine.capture(step)
    for i in range(5):
        for found, wanted in zip(fast(inputs[i]), step(inputs[i]), strict=True):
            assert found.tolist() == wanted.tolist()
    assert fast.fallback_reason == ""


ROWS = engine.tensor([[2, 0, -1], [1, -1, 0], [-1, 0, 0], [0, 1, 2]])
LABELS, SIGNS = engine.tensor([2, 0, 1, 1]), engine.tensor([1.0, -1.0, -1.0, 1.0])
MARGINS = {
    "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(x, 1 - x, SIGNS, 0.2),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x * x).sum(),
    "gaussian_nll_loss": lambda x: F.gaussian_nll_loss(x, 1 - x, x * x),
    "hinge_embedding_loss": lambda x: F.hinge_embedding_loss(x[:, 0], SIGNS),
    "margin_ranking_loss": lambda x: F.margin_ranking_loss(x[:, 0], x[:, 1], SIGNS, 0.1),
    "multi_margin_loss": lambda x: F.multi_margin_loss(x, LABELS, weight=engine.ones((3,))),
    "multilabel_soft_margin_loss": lambda x: F.multilabel_soft_margin_loss(x, x.detach().round()),
    "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x, ROWS),
    "pairwise_distance": lambda x: F.pairwise_distance(x, 1 - x, p=3.0).sum(),
    "poisson_nll_loss": lambda x: F.poisson_nll_loss(x, 3 - x, full=True),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x[:, 0], SIGNS),
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(x, 1 - x, x * x, swap=True),
}


@pytest.mark.parametrize("name", MARGINS)
def test_a_captured_step_under_a_composed_loss_gives_the_same_bits(name: str) -> None:
    inputs = engine.rand(5, 4, 3, generator=engine.Generator().manual_seed(3))

    def step(x: engine.Tensor) -> tuple[engine.Tensor, engine.Tensor]:
        leaf = x.detach().requires_grad_()
        loss = MARGINS[name](leaf)
        return loss.detach(), engine.grad(loss, leaf)[0]

    fast = engine.capture(step)
    for i in range(4):
        for found, wanted in zip(fast(inputs[i]), step(inputs[i]), strict=True):
            assert found.tolist() == wanted.tolist()
    assert fast.fallback_reason == ""


def test_margins_refuse_what_does_not_fit() -> None:
    x = engine.zeros(2, 3)
    for call, message in (
        (lambda: F.multi_margin_loss(x, LABELS[:2], p=3), "p must be 1 or 2, got 3"),
        (lambda: F.multi_margin_loss(x, LABELS), r"got \(2, 3\) and \(4,\)"),
        (lambda: F.cosine_embedding_loss(x, x, x), "two matrices and a vector"),
        (lambda: F.triplet_margin_loss(x, x, x, margin=0.0), "margin must be above 0"),
        (lambda: F.gaussian_nll_loss(x, x, engine.ones(3)), r"var \(3,\) does not fit input"),
        (lambda: F.soft_margin_loss(x, x, "avg"), "must be none, mean or sum, got 'avg'"),
    ):
        with pytest.raises(GradcliError, match=message):
            call()
