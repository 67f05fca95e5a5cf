"""RNN, LSTM, GRU and their cells: values, gradients, names and first weights are torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, copy_weights, ours, randn, theirs  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn  # noqa: E402

pytestmark = pytest.mark.parity

KINDS = ["RNN", "LSTM", "GRU"]
# (arguments after input_size and hidden_size, input's shape for input_size 5)
CASES = [
    ({}, (4, 3, 5)),
    ({"batch_first": True}, (3, 4, 5)),
    ({"bias": False}, (4, 3, 5)),
    ({"bidirectional": True}, (4, 3, 5)),
    ({"bidirectional": True, "batch_first": True}, (3, 4, 5)),
    ({"num_layers": 2, "batch_first": True}, (9, 3, 5)),
    ({"num_layers": 3, "bidirectional": True, "bias": False}, (2, 3, 5)),
    ({}, (4, 5)),
    ({"batch_first": True, "num_layers": 2, "bidirectional": True}, (4, 5)),
    ({}, (1, 1, 5)),
    ({"batch_first": True}, (33, 17, 5)),
]
IDS = [f"{options}{shape}" for options, shape in CASES]


def pair(kind, options, dtype, sizes=(5, 7)):
    reference = getattr(torch.nn, kind)(*sizes, **options).to(dtype)
    with torch.no_grad():
        for i, p in enumerate(reference.parameters()):
            p.copy_(randn(*p.shape, dtype=dtype, seed=10 + i) / 2)
    layer = getattr(nn, kind)(*sizes, **options).to(FLOATS[dtype])
    return copy_weights(layer, reference), reference


def first_states(kind, reference, shape, dtype):
    """hx for torch and for us, as leaves."""
    directions = 2 if reference.bidirectional else 1
    batch = (shape[0 if reference.batch_first else 1],) if len(shape) == 3 else ()
    size = (reference.num_layers * directions, *batch, reference.hidden_size)
    made = [randn(*size, dtype=dtype, seed=s).requires_grad_() for s in (7, 8)]
    made = made[: 2 if kind == "LSTM" else 1]
    mine = [ours(s, requires_grad=True) for s in made]
    return (tuple(made), tuple(mine)) if kind == "LSTM" else (made[0], mine[0])


def flat(result):
    """Every tensor of (output, h_n) or (output, (h_n, c_n)) or of a cell."""
    if not isinstance(result, tuple):
        return [result]
    return [one for part in result for one in flat(part)]


def assert_same_gradients(agree, layer, reference, results, our_results, leaves):
    name = f"nn.{type(reference).__name__}"
    for i, (y, our_y) in enumerate(zip(results, our_results, strict=True)):
        agree(name, our_y, y)
        grad = randn(*y.shape, dtype=y.dtype, seed=20 + i)
        y.backward(grad, retain_graph=True)
        our_y.backward(ours(grad), retain_graph=True)
    for x, our_x in leaves:
        agree(name, our_x.grad, x.grad, terms=1024)
    named = zip(layer.named_parameters(), reference.named_parameters(), strict=True)
    for (key, p), (their_key, q) in named:
        assert key == their_key
        agree(name, p.grad, q.grad, terms=4096)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("given", [False, True], ids=["zeros", "hx"])
@pytest.mark.parametrize(("options", "shape"), CASES, ids=IDS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients(agree, kind, options, shape, given, dtype):
    layer, reference = pair(kind, options, dtype)
    x = randn(*shape, dtype=dtype, seed=1).requires_grad_()
    our_x = ours(x, requires_grad=True)
    leaves = [(x, our_x)]
    hx, our_hx = first_states(kind, reference, shape, dtype) if given else (None, None)
    if given:
        leaves += zip(flat(hx), flat(our_hx), strict=True)
    results, our_results = flat(reference(x, hx)), flat(layer(our_x, our_hx))
    assert_same_gradients(agree, layer, reference, results, our_results, leaves)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_of_one_output_alone(agree, kind):
    layer, reference = pair(kind, {"batch_first": True, "num_layers": 2}, torch.float64)
    for which in range(3 if kind == "LSTM" else 2):
        x = randn(3, 4, 5, seed=1)
        y, our_y = flat(reference(x))[which], flat(layer(ours(x)))[which]
        y.sum().backward()
        our_y.sum().backward()
        for p, q in zip(layer.parameters(), reference.parameters(), strict=True):
            wanted = torch.zeros_like(q) if q.grad is None else q.grad
            agree(
                f"nn.{kind}",
                p.grad if p.grad is not None else ours(torch.zeros_like(q)),
                wanted,
                terms=1024,
            )
        layer.zero_grad()
        reference.zero_grad()


def test_relu_instead_of_tanh(agree):
    layer, reference = pair("RNN", {"nonlinearity": "relu", "num_layers": 2}, torch.float64)
    x = randn(4, 3, 5, seed=1).requires_grad_()
    our_x = ours(x, requires_grad=True)
    results, our_results = flat(reference(x)), flat(layer(our_x))
    assert_same_gradients(agree, layer, reference, results, our_results, [(x, our_x)])


CELLS = [
    (f"{kind}Cell", options, shape)
    for kind in KINDS
    for options in ({}, {"bias": False})
    for shape in ((3, 5), (5,), (1, 5))
] + [("RNNCell", {"nonlinearity": "relu"}, (3, 5))]


@pytest.mark.parametrize("given", [False, True], ids=["zeros", "hx"])
@pytest.mark.parametrize(("kind", "options", "shape"), CELLS)
def test_cells(agree, kind, options, shape, given):
    layer, reference = pair(kind, options, torch.float64)
    x = randn(*shape, seed=1).requires_grad_()
    our_x = ours(x, requires_grad=True)
    leaves, hx, our_hx = [(x, our_x)], None, None
    if given:
        states = [randn(*shape[:-1], 7, seed=s).requires_grad_() for s in (7, 8)]
        leaves += [(s, ours(s, requires_grad=True)) for s in states[: 1 + (kind == "LSTMCell")]]
        hx, our_hx = (tuple(p[i] for p in leaves[1:]) for i in (0, 1))
        hx, our_hx = (hx, our_hx) if len(hx) == 2 else (hx[0], our_hx[0])
    results, our_results = flat(reference(x, hx)), flat(layer(our_x, our_hx))
    assert_same_gradients(agree, layer, reference, results, our_results, leaves)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *[(kind, options) for kind in KINDS for options, _ in CASES],
        ("GRU", {"num_layers": 2, "dropout": 0.5}),
        ("RNN", {"nonlinearity": "relu"}),
        *[(kind, options) for kind, options, _ in CELLS],
    ],
)
def test_repr_names_and_default_type(kind, options):
    layer = getattr(nn, kind)(5, 7, **options)
    reference = getattr(torch.nn, kind)(5, 7, **options)
    assert repr(layer) == repr(reference)
    assert all(p.dtype is engine.float32 for p in layer.parameters())
    shapes = {name: tuple(value.shape) for name, value in reference.state_dict().items()}
    assert {name: value.shape for name, value in layer.state_dict().items()} == shapes


@pytest.mark.parametrize("kind", [*KINDS, "LSTMCell", "GRUCell", "RNNCell"])
def test_first_weights_have_torchs_distribution(kind):
    engine.manual_seed(3)
    layer = getattr(nn, kind)(20, 64)
    for p in layer.parameters():
        values = theirs(p)
        assert values.abs().max() <= 1 / 8
        assert abs(values.std().item() * 8 * 3**0.5 - 1) < 0.15
        assert abs(values.mean().item()) < 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_state_dict_goes_back_to_torch(agree, kind):
    options = {"num_layers": 2, "bidirectional": True}
    layer = getattr(nn, kind)(5, 7, **options)
    reference = getattr(torch.nn, kind)(5, 7, **options)
    reference.load_state_dict({name: theirs(value) for name, value in layer.state_dict().items()})
    x = randn(4, 3, 5, dtype=torch.float32)
    agree(f"nn.{kind}", layer(ours(x))[0], reference(x)[0])


def test_positional_arguments_stand_in_torchs_order():
    for kind, args in (
        ("LSTM", (5, 7, 2, False, True, 0.5, True)),
        ("RNN", (5, 7, 2, "relu", False, True, 0.5, True)),
        ("LSTMCell", (5, 7, False)),
        ("RNNCell", (5, 7, False, "relu")),
    ):
        assert repr(getattr(nn, kind)(*args)) == repr(getattr(torch.nn, kind)(*args))


@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_the_same_way(agree, kind):
    layer, reference = pair(kind, {"batch_first": True}, torch.float64)
    optimizer = engine.optim.Adam(layer.parameters(), lr=1e-2)
    theirs_optimizer = torch.optim.Adam(reference.parameters(), lr=1e-2)
    for step in range(30):
        x, target = randn(6, 5, 5, seed=step), randn(6, 5, 7, seed=100 + step)
        loss = torch.nn.functional.mse_loss(reference(x)[0], target)
        our_loss = engine.mse_loss(layer(ours(x))[0], ours(target))
        agree(f"nn.{kind}", our_loss, loss, terms=4096)
        for one, value in ((theirs_optimizer, loss), (optimizer, our_loss)):
            one.zero_grad()
            value.backward()
            one.step()
