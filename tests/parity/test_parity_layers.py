"""Layers: values, gradients, names, defaults and first weights are torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, copy_weights, ours, randn, theirs  # noqa: E402
from twins import same_layer, same_training  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn  # noqa: E402

pytestmark = pytest.mark.parity

# (layer, its arguments, the input's shape)
CASES = [
    ("Linear", (5, 3), {}, (4, 5)),
    ("Linear", (5, 3), {"bias": False}, (2, 3, 5)),
    ("Linear", (1, 7), {}, (1,)),
    ("Linear", (5, 3), {}, (0, 5)),
    ("Conv2d", (3, 4, 3), {}, (2, 3, 7, 5)),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 2), "groups": 2}, (2, 4, 8, 7)),
    ("Conv2d", (2, 2, 3), {"padding": "same", "bias": False}, (1, 2, 5, 6)),
    ("Conv2d", (3, 3, 3), {"padding": "valid", "dilation": 2, "groups": 3}, (1, 3, 9, 7)),
    ("Conv2d", (1, 5, 1), {}, (3, 1, 1, 1)),
    ("Conv2d", (2, 3, 5), {"padding": 2, "stride": 3}, (2, 2, 11, 5)),
    ("Conv2d", (2, 3, 3), {}, (2, 5, 4)),
    ("MaxPool2d", (2,), {}, (2, 3, 7, 5)),
    ("MaxPool2d", ((3, 2),), {"stride": (1, 2), "padding": 1}, (2, 3, 7, 6)),
    ("MaxPool2d", (2,), {"dilation": 2, "ceil_mode": True}, (1, 2, 8, 7)),
    ("AvgPool2d", (2,), {}, (2, 3, 7, 5)),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1}, (2, 3, 7, 6)),
    ("AvgPool2d", (3,), {"padding": 1, "count_include_pad": False}, (1, 2, 5, 4)),
    ("AvgPool2d", (3,), {"stride": 2, "ceil_mode": True}, (1, 2, 8, 6)),
    ("AvgPool2d", (2,), {"divisor_override": 3}, (1, 2, 4, 6)),
    ("Flatten", (), {}, (3, 2, 4)),
    ("Flatten", (0, 1), {}, (3, 2, 4)),
    ("BatchNorm1d", (3,), {}, (7, 3)),
    ("BatchNorm1d", (3,), {"momentum": 0.3, "eps": 1e-3}, (2, 3, 5)),
    ("BatchNorm1d", (3,), {"momentum": None}, (7, 3)),
    ("BatchNorm2d", (3,), {}, (2, 3, 5, 4)),
    ("BatchNorm2d", (3,), {"bias": False}, (2, 3, 5, 4)),
    ("BatchNorm2d", (3,), {"affine": False}, (2, 3, 1, 4)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (2, 3, 5, 4)),
    ("LayerNorm", (5,), {}, (3, 5)),
    ("LayerNorm", ((3, 4),), {"eps": 1e-2}, (2, 3, 4)),
    ("LayerNorm", (4,), {"elementwise_affine": False}, (2, 3, 4)),
    ("LayerNorm", ([4],), {"bias": False}, (2, 3, 4)),
    ("Dropout", (0.0,), {}, (3, 4)),
    ("ReLU", (), {}, (3, 4)),
    ("GELU", (), {}, (3, 4)),
    ("GELU", (), {"approximate": "tanh"}, (3, 4)),
    ("Tanh", (), {}, (3, 4)),
    ("Sigmoid", (), {}, (3, 4)),
    ("Softmax", (), {"dim": 1}, (3, 4, 2)),
    ("Softmax", (-1,), {}, (3, 1)),
]
TRAINED = ("Linear", "Conv2d", "BatchNorm1d", "BatchNorm2d", "LayerNorm")
# Functions of papers that torch does not have.
OWN = {"relu_squared", "rotary_embedding", "softcap", "swiglu"}
IDS = [f"{name}{args}{options}{shape}" for name, args, options, shape in CASES]


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "args", "options", "shape"), CASES, ids=IDS)
def test_values_gradients_and_buffers(agree, name, args, options, shape, dtype):
    same_layer(agree, name, args, options, shape, dtype)


@pytest.mark.parametrize(
    ("name", "args", "options", "shape"),
    [
        case
        for case in CASES
        if case[0] in TRAINED and 0 not in case[3] and "affine" not in str(case[2])
    ],
)
def test_20_steps_of_training(agree, name, args, options, shape):
    same_training(agree, name, args, options, shape)


@pytest.mark.parametrize(("name", "args", "options", "shape"), CASES, ids=IDS)
def test_repr_and_default_type(name, args, options, shape):
    layer, reference = (
        getattr(nn, name)(*args, **options),
        getattr(torch.nn, name)(*args, **options),
    )
    assert repr(layer) == repr(reference)
    assert all(p.dtype is engine.float32 for p in layer.parameters())


@pytest.mark.parametrize("padding_idx", [None, 2, -1])
def test_embedding(agree, padding_idx):
    reference = torch.nn.Embedding(5, 3, padding_idx=padding_idx)
    layer = nn.Embedding(5, 3, padding_idx=padding_idx)
    assert repr(layer) == repr(reference)
    if padding_idx is not None:
        assert layer.weight[padding_idx].tolist() == [0, 0, 0]
    copy_weights(layer, reference)
    index = torch.tensor([[0, 2, 2, 4], [1, 2, 0, 4]])
    y, our_y = reference(index), layer(ours(index))
    agree("nn.Embedding", our_y, y)
    grad = randn(*y.shape, dtype=torch.float32)
    y.backward(grad)
    our_y.backward(ours(grad))
    agree("nn.Embedding", layer.weight.grad, reference.weight.grad)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Linear", (64, 128)),
        ("Conv2d", (16, 32, 3)),
        ("Embedding", (200, 50)),
        ("BatchNorm2d", (8,)),
        ("LayerNorm", (8,)),
    ],
)
def test_first_weights_have_torchs_distribution(name, args):
    """Same limits for uniform weights; mean and deviation within 5 standard errors."""
    engine.manual_seed(0)
    torch.manual_seed(0)
    layer, reference = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    for key, q in reference.named_parameters():
        p = theirs(dict(layer.named_parameters())[key])
        deviation, count = q.std().item(), q.numel()
        error = 5 * deviation / count**0.5
        assert abs(p.mean().item() - q.mean().item()) <= 2 * error
        assert abs(p.std().item() - deviation) <= 2 * error
        if name in ("Linear", "Conv2d"):
            assert p.abs().max().item() <= 1 / reference.weight[0].numel() ** 0.5


def test_first_weights_depend_on_the_seed_only():
    engine.manual_seed(5)
    a = nn.Linear(3, 4)
    b = nn.Linear(3, 4)
    engine.manual_seed(5)
    c = nn.Linear(3, 4)
    assert a.weight.tolist() == c.weight.tolist()
    assert a.weight.tolist() != b.weight.tolist()


@pytest.mark.parametrize("p", [0.25, 0.5, 1.0])
def test_dropout_drops_the_share_and_scales_the_rest(p):
    """Which elements are dropped differs from torch; that about p are, and the scale, do not."""
    x = engine.ones(100_000, requires_grad=True)
    y = nn.Dropout(p)(x)
    kept = theirs(y) != 0
    error = 5 * (p * (1 - p) / 100_000) ** 0.5
    assert abs(kept.double().mean().item() - (1 - p)) <= error
    if p < 1:
        assert set(theirs(y)[kept].tolist()) == {torch.tensor(1 / (1 - p)).item()}
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert nn.Dropout(p).eval()(x).tolist() == x.tolist()


def test_batch_norm_refuses_one_value_a_channel_as_torch_does():
    for make in (nn.BatchNorm1d, torch.nn.BatchNorm1d):
        zeros = engine.zeros if make is nn.BatchNorm1d else torch.zeros
        with pytest.raises(ValueError, match="more than 1 value"):
            make(3)(zeros(1, 3))


@pytest.mark.parametrize("options", [{}, {"a": 0.3}, {"mode": "fan_out", "nonlinearity": "relu"}])
def test_kaiming_and_xavier_have_torchs_limits(options):
    engine.manual_seed(1)
    for shape in ((30, 40), (20, 10, 3, 3)):
        mine, reference = engine.empty(*shape), torch.empty(*shape)
        nn.init.kaiming_uniform_(mine, **options)
        torch.nn.init.kaiming_uniform_(reference, **options)
        assert theirs(mine).abs().max() == pytest.approx(reference.abs().max().item(), rel=0.05)
        nn.init.xavier_uniform_(mine, gain=2.0)
        torch.nn.init.xavier_uniform_(reference, gain=2.0)
        assert theirs(mine).abs().max() == pytest.approx(reference.abs().max().item(), rel=0.05)


def test_a_nested_model_prints_as_in_torch():
    def model(library):
        return library.Sequential(
            library.Conv2d(1, 8, 3, padding=1),
            library.Sequential(library.BatchNorm2d(8), library.ReLU()),
            library.MaxPool2d(2),
            library.Flatten(),
            library.Linear(32, 10, bias=False),
        )

    assert repr(model(nn)) == repr(model(torch.nn))
    assert list(model(nn).state_dict()) == list(model(torch.nn).state_dict())


def test_functional_has_torchs_names_and_positions(agree):
    functional, reference = nn.functional, torch.nn.functional
    x = randn(2, 3, 6, 5)
    w, b = randn(4, 3, 2, 2, seed=1), randn(4, seed=2)
    agree(
        "F.conv2d",
        functional.conv2d(ours(x), ours(w), ours(b), 2, 1),
        reference.conv2d(x, w, b, 2, 1),
    )
    agree("F.max_pool2d", functional.max_pool2d(ours(x), 2, 1), reference.max_pool2d(x, 2, 1))
    agree("F.avg_pool2d", functional.avg_pool2d(ours(x), 2, 1, 1), reference.avg_pool2d(x, 2, 1, 1))
    agree("F.layer_norm", functional.layer_norm(ours(x), (5,)), reference.layer_norm(x, (5,)))
    agree("F.softmax", functional.softmax(ours(x), 1), reference.softmax(x, 1))
    agree("F.log_softmax", functional.log_softmax(ours(x), -1), reference.log_softmax(x, -1))
    agree("F.leaky_relu", functional.leaky_relu(ours(x), 0.2), reference.leaky_relu(x, 0.2))
    agree("F.dropout", functional.dropout(ours(x), 0.5, False), reference.dropout(x, 0.5, False))
    mean, var = randn(3, seed=4), randn(3, seed=5).abs()
    agree(
        "F.batch_norm",
        functional.batch_norm(ours(x), ours(mean), ours(var)),
        reference.batch_norm(x, mean, var),
    )
    rows = randn(4, 3, seed=6)
    index = torch.tensor([1, 1, 3])
    agree(
        "F.embedding",
        functional.embedding(ours(index), ours(rows)),
        reference.embedding(index, rows),
    )
    agree("F.linear", functional.linear(ours(rows), ours(rows)), reference.linear(rows, rows))
    assert {name for name in dir(functional) if not hasattr(reference, name)} <= OWN
