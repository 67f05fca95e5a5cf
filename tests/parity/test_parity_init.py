"""First values of weights: torch's functions, given our draws, make the same numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, theirs  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine.nn import init  # noqa: E402

pytestmark = pytest.mark.parity
SHAPES = [(5, 7), (9, 4), (6, 3, 3, 2), (8, 2, 5), (1, 6), (0, 4)]


@pytest.fixture
def our_draws(monkeypatch):
    """Torch draws what the engine draws: the bounds, deviations and what follows are its own."""

    def uniform(self, a=0.0, b=1.0, generator=None):
        drawn = engine.empty(*self.shape, dtype=FLOATS[self.dtype]).uniform_(a, b)
        return self.copy_(theirs(drawn))

    def normal(self, mean=0.0, std=1.0, generator=None):
        drawn = engine.empty(*self.shape, dtype=FLOATS[self.dtype]).normal_(mean, std)
        return self.copy_(theirs(drawn))

    monkeypatch.setattr(torch.Tensor, "uniform_", uniform)
    monkeypatch.setattr(torch.Tensor, "normal_", normal)
    monkeypatch.setattr(torch, "randperm", lambda n: theirs(engine.randperm(n)))


def compare(agree, name, shape, dtype, options, terms=8):
    mine = engine.empty(*shape, dtype=FLOATS[dtype])
    other = torch.empty(shape, dtype=dtype)
    engine.manual_seed(11)
    assert getattr(init, name)(mine, **options) is mine
    engine.manual_seed(11)
    getattr(torch.nn.init, name)(other, **options)
    agree(f"init.{name}", mine, other, terms=terms)


CASES = [
    ("uniform_", {}),
    ("uniform_", {"a": -3.0, "b": -1.0}),
    ("normal_", {}),
    ("normal_", {"mean": 5.0, "std": 0.1}),
    ("constant_", {"val": 0.3}),
    ("ones_", {}),
    ("zeros_", {}),
    ("xavier_uniform_", {}),
    ("xavier_uniform_", {"gain": 1.7}),
    ("xavier_normal_", {}),
    ("xavier_normal_", {"gain": 0.2}),
    ("kaiming_uniform_", {}),
    ("kaiming_uniform_", {"a": 0.2, "mode": "fan_out"}),
    ("kaiming_uniform_", {"nonlinearity": "selu"}),
    ("kaiming_normal_", {}),
    ("kaiming_normal_", {"nonlinearity": "relu", "mode": "FAN_OUT"}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"mean": 1.0, "std": 0.02, "a": 0.99, "b": 1.5}),
    ("trunc_normal_", {"std": 2.0, "a": 3.0, "b": 4.0}),
]


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        (name, options, shape)
        for name, options in CASES
        for shape in SHAPES
        # There torch draws with the deviation of one side.
        if not (shape == (0, 4) and name.startswith("xavier"))
    ],
)
def test_the_same_draws_give_the_same_weights(name, options, shape, dtype, agree, our_draws):
    compare(agree, name, shape, dtype, options)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (12, 12), (40, 3, 2)], ids=str)
@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_orthogonal_weights_of_the_same_draws(gain, shape, dtype, agree, our_draws):
    compare(agree, "orthogonal_", shape, dtype, {"gain": gain}, terms=1024)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("options", [{"sparsity": 0.3}, {"sparsity": 1.0, "std": 2.0}], ids=str)
def test_sparse_weights_of_the_same_draws(options, dtype, agree, our_draws):
    for shape in [(7, 5), (3, 9), (1, 1)]:
        compare(agree, "sparse_", shape, dtype, options)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (4, 2), (3, 3), (0, 2)], ids=str)
def test_eye(shape, dtype, agree):
    compare(agree, "eye_", shape, dtype, {})


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(
    ("shape", "groups"),
    [((4, 3, 5), 1), ((6, 2, 3, 4), 2), ((6, 4, 3, 3), 3), ((2, 5, 1, 2, 3), 1)],
    ids=str,
)
def test_dirac(shape, groups, dtype, agree):
    compare(agree, "dirac_", shape, dtype, {"groups": groups})


def test_gains(agree):
    names = ["linear", "sigmoid", "tanh", "relu", "selu", "leaky_relu"]
    names += [f"{kind}{n}d" for kind in ("conv", "conv_transpose") for n in (1, 2, 3)]
    found = [init.calculate_gain(name) for name in names]
    expected = [torch.nn.init.calculate_gain(name) for name in names]
    for slope in (0, 1, 0.2, -3.5):
        found.append(init.calculate_gain("leaky_relu", slope))
        expected.append(torch.nn.init.calculate_gain("leaky_relu", slope))
    agree(
        "init.calculate_gain",
        engine.tensor(found, dtype=engine.float64),
        torch.tensor(expected, dtype=torch.float64),
        terms=2,
    )
