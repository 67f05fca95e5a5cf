"""Losses of pairs, margins and angles: values and gradients are torch's, at kinks and ends too."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, ours, randn  # noqa: E402

from gradcli.engine.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.parity
TF = torch.nn.functional
SHAPES = [(7, 5), (2, 1, 3), (1,), (), (3, 0, 2)]


@pytest.fixture
def compare(agree):
    """Values, and gradients of every input that wants one, of the functions of one name."""

    def check(name, *inputs, **options):
        reference = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
        mine = [ours(x, requires_grad=x.is_floating_point()) for x in inputs]
        tensors = {k: v for k, v in options.items() if isinstance(v, torch.Tensor)}
        plain = {k: v for k, v in options.items() if k not in tensors}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kl_div's mean
            expected = getattr(TF, name)(*reference, **plain, **tensors)
        found = getattr(F, name)(*mine, **plain, **{k: ours(v) for k, v in tensors.items()})
        agree(f"F.{name}", found, expected)
        grad = randn(*expected.shape, dtype=expected.dtype, seed=7)
        expected.backward(grad)
        found.backward(ours(grad))
        for a, b in zip(mine, reference, strict=True):
            # Some gradients that are 0 everywhere are left out: not all by both.
            if a.grad is None or b.grad is None:
                assert a.grad is None or not a.grad.any()
                assert b.grad is None or not b.grad.any()
            else:
                agree(f"F.{name}", a.grad, b.grad)

    return check


def signs(*shape, dtype=torch.float64):
    return torch.sign(randn(*shape, dtype=dtype, seed=5))


every_dtype = pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
every_reduction = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@every_dtype
@every_reduction
@every_shape
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("l1_loss", {}),
        ("smooth_l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.25}),
        ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {}),
        ("huber_loss", {"delta": 0.25}),
    ],
    ids=str,
)
def test_distances(name, options, shape, reduction, dtype, compare):
    x, t = randn(*shape, dtype=dtype), randn(*shape, dtype=dtype, seed=1)
    compare(name, x, t, reduction=reduction, **options)
    whole = (2 * t).round() / 4  # differences of exactly 0, delta and beta
    compare(name, whole + (3 * x).round() / 4, whole, reduction=reduction, **options)


@every_dtype
@every_reduction
@every_shape
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy(shape, reduction, weighted, dtype, compare):
    x, t = torch.sigmoid(3 * randn(*shape, dtype=dtype)), torch.rand(shape, dtype=dtype)
    weight = {"weight": torch.rand(shape[-1:], dtype=dtype)} if weighted else {}
    compare("binary_cross_entropy", x, t, reduction=reduction, **weight)


@every_dtype
def test_binary_cross_entropy_at_the_ends(dtype, compare, agree):
    x = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.5], dtype=dtype)
    t = torch.tensor([0.0, 1.0, 0.0, 1.0, 1.0], dtype=dtype)
    compare("binary_cross_entropy", x, t.round().long().to(dtype), reduction="none")


@every_dtype
@every_reduction
@every_shape
@pytest.mark.parametrize("options", [(), ("weight",), ("pos_weight",), ("weight", "pos_weight")])
def test_binary_cross_entropy_with_logits(shape, reduction, options, dtype, compare):
    x, t = 3 * randn(*shape, dtype=dtype), torch.rand(shape, dtype=dtype)
    weights = {name: 3 * torch.rand(shape[-1:], dtype=dtype) for name in options}
    name = "binary_cross_entropy_with_logits"
    compare(name, x, t, reduction=reduction, **weights)
    compare(name, (50 * x).round(), t.round(), reduction=reduction, **weights)
    compare(name, 0 * x, t, reduction=reduction, **weights)


@every_dtype
@every_shape
@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(shape, reduction, log_target, dtype, compare):
    x = randn(*shape, dtype=dtype)
    t = randn(*shape, dtype=dtype, seed=1) if log_target else torch.rand(shape, dtype=dtype) + 0.01
    compare("kl_div", x, t, reduction=reduction, log_target=log_target)


@every_dtype
@every_reduction
@pytest.mark.parametrize("margin", [0.0, 0.3, -0.5])
def test_margins(reduction, margin, dtype, compare):
    for shape in ((6, 3), (5,), ()):
        x, y = randn(*shape, dtype=dtype), randn(*shape, dtype=dtype, seed=1)
        t = signs(*shape, dtype=dtype)
        options = {"reduction": reduction, "margin": margin}
        compare("margin_ranking_loss", x, y, t, **options)
        compare("margin_ranking_loss", (2 * x).round() / 2, (2 * y).round() / 2, t, **options)
        compare("hinge_embedding_loss", x, t, **options)
        compare("soft_margin_loss", 20 * x, t.long(), reduction=reduction)
    x, y = randn(6, 4, dtype=dtype), randn(6, 4, dtype=dtype, seed=1)
    t = signs(6, dtype=dtype)
    compare("cosine_embedding_loss", x, y, t, reduction=reduction, margin=margin)
    compare("cosine_embedding_loss", x, y, t.long(), reduction=reduction, margin=margin)
    compare("cosine_embedding_loss", x[0], y[0], t[0], reduction=reduction, margin=margin)


@every_dtype
def test_angles_and_distances(dtype, compare):
    x, y = randn(3, 4, 5, dtype=dtype), randn(3, 4, 5, dtype=dtype, seed=1)
    for dim in (0, 1, -1):
        compare("cosine_similarity", x, y, dim=dim)
        compare("cosine_similarity", x, y[:1, :, :], dim=dim)
    compare("cosine_similarity", x, y[0], dim=1)
    compare("cosine_similarity", 0 * x, y)
    for p in (2.0, 1.0, 3.5, 0.0, float("inf")):
        compare("pairwise_distance", x, y, p=p)
        compare("pairwise_distance", x, y[0], p=p, keepdim=True, eps=1e-3)
        compare("pairwise_distance", x[:0], y[:0], p=p)
        compare("pairwise_distance", x[0, 0], y[0, 0], p=p)
    compare("pairwise_distance", x, x, eps=0.0)
    compare("cosine_similarity", x[:0], y[:0])
    compare("cosine_similarity", x[0, 0], y[0, 0], dim=0)


@every_dtype
@every_reduction
@pytest.mark.parametrize(
    "options", [{}, {"margin": 0.3, "p": 1.0}, {"swap": True, "eps": 1e-3}], ids=str
)
def test_triplets(options, reduction, dtype, compare):
    for shape in ((6, 4), (5,)):
        three = [randn(*shape, dtype=dtype, seed=i) for i in range(3)]
        compare("triplet_margin_loss", *three, reduction=reduction, **options)


@every_dtype
@every_reduction
@pytest.mark.parametrize("full", [False, True])
def test_likelihoods(full, reduction, dtype, compare):
    x, t = randn(4, 3, dtype=dtype), randn(4, 3, dtype=dtype, seed=1)
    var = torch.rand(4, 3, dtype=dtype)
    var[1] = 0
    for spread in (var, var[:, :1], var[:, 0], var[:1]):
        compare("gaussian_nll_loss", x, t, spread, full=full, reduction=reduction)
    counts = (3 * torch.rand(4, 3, dtype=dtype)).round() + 0.5
    compare("poisson_nll_loss", x, counts, full=full, reduction=reduction)
    options = {"log_input": False, "eps": 1e-3}
    compare("poisson_nll_loss", var, counts, full=full, reduction=reduction, **options)


@every_dtype
@every_reduction
@pytest.mark.parametrize("smooth", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3), (2, 5, 3, 2), (5,)])
def test_cross_entropy_against_probabilities(shape, smooth, reduction, dtype, compare):
    x = randn(*shape, dtype=dtype)
    t = torch.softmax(randn(*shape, dtype=dtype, seed=1), 0 if len(shape) == 1 else 1)
    options = {"reduction": reduction, "label_smoothing": smooth}
    compare("cross_entropy", x, t, **options)
    weight = torch.tensor([0.5, 1.0, 2.0, 0.0, 1.5], dtype=dtype)
    compare("cross_entropy", x, t, weight=weight, **options)


@every_dtype
@every_reduction
@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3), (2, 5, 3, 2), (5,)])
def test_nll(shape, reduction, dtype, compare):
    logs = torch.log_softmax(randn(*shape, dtype=dtype), 0 if len(shape) == 1 else 1)
    labels = torch.randint(0, 5, (shape[0], *shape[2:]) if len(shape) > 1 else ())
    weight = torch.tensor([0.5, 1.0, 2.0, 0.1, 1.5], dtype=dtype)
    compare("nll_loss", logs, labels, reduction=reduction, ignore_index=2)
    compare("nll_loss", logs, labels, reduction=reduction, weight=weight)


@every_dtype
@every_reduction
@pytest.mark.parametrize("weighted", [False, True])
def test_margins_of_several_classes(weighted, reduction, dtype, compare):
    weight = {"weight": torch.tensor([0.5, 1.0, 2.0, 0.0], dtype=dtype)} if weighted else {}
    for shape in ((5, 4), (4,)):
        x = randn(*shape, dtype=dtype)
        labels = torch.randint(0, 4, shape[:-1], generator=torch.Generator().manual_seed(2))
        for scores in (x, (2 * x).round() / 2):
            compare("multi_margin_loss", scores, labels, reduction=reduction, **weight)
        options = {"p": 2, "margin": 0.3, "reduction": reduction, **weight}
        compare("multi_margin_loss", x, labels, **options)
        truths = (randn(*shape, dtype=dtype, seed=4) > 0).to(dtype)
        for scores in (x, 50 * x):
            compare("multilabel_soft_margin_loss", scores, truths, reduction=reduction, **weight)


@every_dtype
@every_reduction
def test_margins_of_several_labels(reduction, dtype, compare):
    labels = torch.tensor(
        [[3, 0, -1, 1], [1, -1, 2, 2], [-1, 0, 1, 2], [2, 0, 3, 1], [0, 0, -1, 0]]
    )
    x = randn(5, 4, dtype=dtype)
    for scores in (x, (2 * x).round() / 2):
        compare("multilabel_margin_loss", scores, labels, reduction=reduction)
    compare("multilabel_margin_loss", x[0], labels[0], reduction=reduction)


@every_dtype
@every_reduction
@pytest.mark.parametrize("swap", [False, True])
def test_triplets_with_a_distance_of_ones_own(swap, reduction, dtype, compare):
    three = [randn(6, 4, dtype=dtype, seed=i) for i in range(3)]
    options = {"swap": swap, "reduction": reduction}
    name = "triplet_margin_with_distance_loss"
    compare(name, *three, distance_function=lambda a, b: (a - b).abs().sum(1), **options)
    compare(name, *three, margin=0.3, **options)
