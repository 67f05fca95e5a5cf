"""Normalisations, dropout and the small layers beside torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, copy_weights, ours, randn, theirs  # noqa: E402
from twins import same_layer, same_training, twins  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn  # noqa: E402

pytestmark = pytest.mark.parity

TRACKED = {"affine": True, "track_running_stats": True}
# (layer, its arguments, the input's shape)
CASES = [
    ("GroupNorm", (2, 6), {}, (3, 6, 5, 4)),
    ("GroupNorm", (6, 6), {"eps": 1e-2}, (2, 6, 7)),
    ("GroupNorm", (1, 3), {"bias": False}, (4, 3)),
    ("GroupNorm", (3, 6), {"affine": False}, (2, 6, 1, 9)),
    ("GroupNorm", (1, 1), {}, (1, 1, 2)),
    ("GroupNorm", (2, 4), {}, (0, 4, 3)),
    ("InstanceNorm1d", (3,), {}, (4, 3, 7)),
    ("InstanceNorm1d", (3,), {"affine": True, "eps": 1e-3}, (3, 5)),
    ("InstanceNorm1d", (3,), {**TRACKED, "momentum": 0.3}, (4, 3, 7)),
    ("InstanceNorm2d", (3,), {}, (2, 3, 5, 4)),
    ("InstanceNorm2d", (3,), {"affine": True}, (3, 5, 4)),
    ("InstanceNorm2d", (3,), TRACKED, (2, 3, 5, 4)),
    ("InstanceNorm2d", (3,), {**TRACKED, "momentum": None}, (2, 3, 1, 4)),
    ("BatchNorm1d", (3,), {"momentum": 0.3, "eps": 1e-3}, (2, 3, 5)),
    ("BatchNorm1d", (3,), {"momentum": None}, (7, 3)),
    ("BatchNorm2d", (3,), {"momentum": None, "affine": False}, (2, 3, 5, 4)),
    ("BatchNorm2d", (3,), {"bias": False}, (2, 3, 5, 4)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (2, 3, 5, 4)),
    ("LayerNorm", (5,), {}, (3, 5)),
    ("LayerNorm", ((3, 4),), {"eps": 1e-2, "bias": False}, (2, 3, 4)),
    ("LayerNorm", (4,), {"elementwise_affine": False}, (2, 3, 4)),
    ("RMSNorm", (5,), {}, (3, 5)),
    ("RMSNorm", ((3, 4),), {"eps": 1e-3}, (2, 3, 4)),
    ("RMSNorm", ([4],), {"elementwise_affine": False}, (2, 1, 4)),
    ("LocalResponseNorm", (3,), {}, (2, 7, 5)),
    ("LocalResponseNorm", (4,), {"alpha": 0.5, "beta": 0.6, "k": 2.0}, (2, 5, 3, 4)),
    ("LocalResponseNorm", (1,), {"alpha": 0.1}, (1, 1, 2)),
    ("Identity", (), {}, (3, 4)),
    ("Identity", (5,), {"anything": True}, (0,)),
    ("Unflatten", (1, (2, 3)), {}, (4, 6, 5)),
    ("Unflatten", (-1, (5, -1)), {}, (2, 10)),
    ("Flatten", (0, 1), {}, (3, 2, 4)),
    ("Linear", (5, 3), {"bias": False}, (2, 3, 5)),
    ("Linear", (5, 3), {}, (0, 5)),
    ("Dropout", (0.0,), {}, (3, 4)),
    ("Dropout1d", (0.0,), {}, (3, 4)),
    ("Dropout1d", (1.0,), {}, (3, 4, 2)),
    ("Dropout2d", (0.0,), {}, (2, 3, 4, 5)),
    ("Dropout2d", (1.0,), {}, (2, 3, 4, 5)),
    ("AlphaDropout", (0.0,), {}, (3, 4)),
    ("AlphaDropout", (1.0,), {}, (3, 4)),
]
IDS = [f"{name}{args}{options}{shape}" for name, args, options, shape in CASES]
TRAINED = [
    case
    for case in CASES
    if ("Norm" in case[0] or case[0] == "Linear")
    and 0 not in case[3]
    and not case[0].startswith("Local")
    and case[2].get("affine", case[2].get("elementwise_affine", "Inst" not in case[0]))
]


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "args", "options", "shape"), CASES, ids=IDS)
def test_layers_give_torchs_values_gradients_and_buffers(agree, name, args, options, shape, dtype):
    same_layer(agree, name, args, options, shape, dtype)


@pytest.mark.parametrize(("name", "args", "options", "shape"), TRAINED)
def test_layers_train_as_in_torch(agree, name, args, options, shape):
    same_training(agree, name, args, options, shape)


@pytest.mark.parametrize("shape", [(4,), (2, 3), ()])
@pytest.mark.parametrize("bias", [True, False])
def test_bilinear(agree, shape, bias):
    layer, reference = twins("Bilinear", (5, 3, 4), {"bias": bias}, torch.float64)
    a, b = randn(*shape, 5).requires_grad_(), randn(*shape, 3, seed=1).requires_grad_()
    mine = [ours(x, requires_grad=True) for x in (a, b)]
    y, our_y = reference(a, b), layer(*mine)
    agree("nn.Bilinear", our_y, y)
    grad = randn(*y.shape, seed=2)
    y.backward(grad)
    our_y.backward(ours(grad))
    for p, q in zip([*mine, *layer.parameters()], [a, b, *reference.parameters()], strict=True):
        agree("nn.Bilinear", p.grad, q.grad)


@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, 0.5, float("inf")])
@pytest.mark.parametrize("dim", [1, -1, 0])
def test_normalize(agree, p, dim):
    x = randn(4, 3, 5).requires_grad_()
    mine = ours(x, requires_grad=True)
    y, our_y = torch.nn.functional.normalize(x, p, dim), nn.functional.normalize(mine, p, dim)
    agree("F.normalize", our_y, y)
    grad = randn(4, 3, 5, seed=1)
    y.backward(grad)
    our_y.backward(ours(grad))
    agree("F.normalize", mine.grad, x.grad)


def test_normalize_of_zeros_is_zero_with_torchs_slope(agree):
    x = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    mine = ours(x, requires_grad=True)
    y, our_y = torch.nn.functional.normalize(x), nn.functional.normalize(mine)
    agree("F.normalize", our_y, y)
    y.sum().backward()
    our_y.sum().backward()
    agree("F.normalize", mine.grad, x.grad)


def test_functions_take_torchs_positions(agree):
    functional, reference = nn.functional, torch.nn.functional
    x, w, b = randn(3, 4, 5), randn(4, seed=1), randn(4, seed=2)
    mean, var = randn(4, seed=3), randn(4, seed=4).abs()
    for name, options in (
        ("group_norm", (2, w, b, 1e-3)),
        ("instance_norm", (mean, var, w, b, False, 0.1, 1e-3)),
        ("instance_norm", (None, None, w)),
        ("rms_norm", ((4, 5),)),
        ("rms_norm", ((5,), randn(5, seed=5), 1e-2)),
        ("local_response_norm", (2, 0.1, 0.5, 2.0)),
    ):
        given = [ours(o) if isinstance(o, torch.Tensor) else o for o in options]
        found = getattr(functional, name)(ours(x), *given)
        agree(f"F.{name}", found, getattr(reference, name)(x, *options))


@pytest.mark.parametrize("padding_idx", [None, 2, -1])
def test_embedding(agree, padding_idx):
    reference = torch.nn.Embedding(5, 3, padding_idx=padding_idx)
    layer = copy_weights(nn.Embedding(5, 3, padding_idx=padding_idx), reference)
    for index in (
        torch.tensor([[0, 2, 2, 4], [1, 2, 0, 4]]),
        torch.tensor(3),
        torch.zeros(0, 2).long(),
    ):
        y, our_y = reference(index), layer(ours(index))
        agree("nn.Embedding", our_y, y)
        grad = randn(*y.shape, dtype=torch.float32)
        y.backward(grad)
        our_y.backward(ours(grad))
        agree("nn.Embedding", layer.weight.grad, reference.weight.grad)


@pytest.mark.parametrize(
    ("name", "shape"), [("Dropout1d", (40, 50, 3)), ("Dropout2d", (40, 50, 3, 2))]
)
def test_channels_are_dropped_whole_and_in_their_share(name, shape):
    engine.manual_seed(3)
    x = engine.ones(*shape, requires_grad=True)
    y = getattr(nn, name)(0.25)(x)
    kept = theirs(y).reshape(2000, -1)
    assert set(kept.flatten().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert (kept == kept[:, :1]).all()
    assert abs((kept[:, 0] != 0).double().mean().item() - 0.75) <= 5 * (0.25 * 0.75 / 2000) ** 0.5
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


@pytest.mark.parametrize(
    ("name", "args", "shape"),
    [("GroupNorm", (2, 2), (1, 2)), ("InstanceNorm1d", (3,), (2, 3, 1))],
)
def test_one_value_has_no_variance_as_in_torch(name, args, shape):
    for library, zeros in ((nn, engine.zeros), (torch.nn, torch.zeros)):
        with pytest.raises(ValueError, match="more than 1"):
            getattr(library, name)(*args)(zeros(*shape))


def test_alpha_dropout_keeps_mean_and_variance():
    engine.manual_seed(4)
    x = engine.randn(100_000)
    y = theirs(nn.AlphaDropout(0.3)(x))
    assert abs(y.mean().item()) < 0.02
    assert abs(y.std().item() - 1) < 0.02
    assert nn.AlphaDropout(0.3).eval()(x).tolist() == x.tolist()
