"""Adaptive pools, Upsample and PixelShuffle beside torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, ours, randn  # noqa: E402
from twins import same_layer  # noqa: E402

from gradcli import engine  # noqa: E402
from gradcli.engine import nn, optim  # noqa: E402

pytestmark = pytest.mark.parity
DTYPES = pytest.mark.parametrize("dtype", list(FLOATS), ids=str)

# (layer, its arguments, the input's shape)
CASES = [
    ("AdaptiveAvgPool1d", (1,), {}, (2, 3, 70)),
    ("AdaptiveAvgPool1d", (4,), {}, (2, 3, 7)),
    ("AdaptiveAvgPool1d", (9,), {}, (3, 5)),
    ("AdaptiveMaxPool1d", (3,), {}, (2, 3, 7)),
    ("AdaptiveMaxPool1d", (1,), {}, (0, 3, 7)),
    ("AdaptiveAvgPool2d", (1,), {}, (2, 3, 7, 9)),
    ("AdaptiveAvgPool2d", ((3, None),), {}, (2, 3, 7, 5)),
    ("AdaptiveAvgPool2d", ((2, 1),), {}, (3, 7, 40)),
    ("AdaptiveAvgPool2d", (6,), {}, (1, 2, 4, 5)),
    ("AdaptiveMaxPool2d", ((3, 2),), {}, (2, 3, 7, 5)),
    ("AdaptiveMaxPool2d", ((None, 4),), {}, (3, 7, 5)),
    ("Upsample", (), {"scale_factor": 2}, (2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": (1.5, 3)}, (2, 3, 4, 5)),
    ("Upsample", ((3, 7),), {}, (1, 2, 5, 4)),
    ("Upsample", (7,), {"mode": "nearest-exact"}, (1, 2, 4)),
    ("Upsample", (None, 2.5, "linear"), {}, (2, 3, 6)),
    ("Upsample", (4,), {"mode": "linear", "align_corners": True}, (2, 3, 7)),
    ("Upsample", (None, 2, "bilinear"), {}, (2, 3, 4, 5)),
    ("Upsample", (None, 2, "bilinear", True), {}, (2, 3, 4, 5)),
    ("Upsample", ((3, 9), None, "bilinear", False), {}, (2, 1, 7, 4)),
    ("Upsample", ((1, 1), None, "bilinear", True), {}, (2, 1, 3, 4)),
    ("Upsample", (None, 1.3, "bilinear", None, True), {}, (1, 2, 5, 7)),
    ("Upsample", (None, 1.1, "bilinear"), {}, (1, 2, 5, 7)),
    ("PixelShuffle", (2,), {}, (3, 8, 2, 5)),
    ("PixelShuffle", (3,), {}, (9, 1, 2)),
    ("PixelUnshuffle", (2,), {}, (3, 2, 4, 6)),
    ("PixelUnshuffle", (1,), {}, (2, 3, 1, 2)),
]


@DTYPES
@pytest.mark.parametrize(("name", "args", "options", "shape"), CASES)
def test_layers_give_torchs_values_and_gradients(agree, name, args, options, shape, dtype):
    same_layer(agree, name, args, options, shape, dtype)


@DTYPES
@pytest.mark.parametrize("name", ["AdaptiveMaxPool1d", "AdaptiveMaxPool2d"])
def test_maxima_come_with_torchs_places(agree, name, dtype):
    shape = (2, 3, 7) if name.endswith("1d") else (2, 3, 7, 5)
    x = randn(*shape, dtype=dtype).round()  # with ties
    expected = getattr(torch.nn, name)(3, return_indices=True)(x)
    found = getattr(nn, name)(3, return_indices=True)(ours(x))
    for y, our_y in zip(expected, found, strict=True):
        agree(f"nn.{name}", our_y, y)


@DTYPES
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_every_pair_of_lengths(agree, mode, dtype):
    for length in range(1, 12):
        x = randn(1, 2, length, dtype=dtype, seed=length)
        for size in (*range(1, 20), 37):
            expected = torch.nn.functional.interpolate(x, size, mode=mode)
            agree("F.interpolate", nn.functional.interpolate(ours(x), size, mode=mode), expected)


def test_an_autoencoder_of_these_layers_trains_as_in_torch(agree):
    def model(library):
        return library.Sequential(
            library.Conv2d(1, 4, 3, padding=1),
            library.AdaptiveMaxPool2d((5, 4)),
            library.Upsample(scale_factor=2, mode="bilinear"),
            library.PixelUnshuffle(2),
            library.Conv2d(16, 8, 1),
            library.PixelShuffle(2),
            library.Upsample(size=(9, 7)),
            library.AdaptiveAvgPool2d(4),
        )

    reference = model(torch.nn).double()
    layers = model(nn).double()
    layers.load_state_dict({name: ours(p) for name, p in reference.state_dict().items()})
    sgd, our_sgd = (
        torch.optim.SGD(reference.parameters(), lr=0.1),
        optim.SGD(layers.parameters(), lr=0.1),
    )
    for seed in range(20):
        x = randn(3, 1, 11, 9, seed=seed)
        for net, optimizer, batch in ((reference, sgd, x), (layers, our_sgd, ours(x))):
            optimizer.zero_grad()
            (net(batch) ** 2).mean().backward()
            optimizer.step()
    for p, q in zip(layers.parameters(), reference.parameters(), strict=True):
        agree("nn.Upsample", p, q, terms=1 << 14)


def test_a_captured_step_has_the_eager_bits():
    pool, grow = nn.AdaptiveAvgPool2d((3, 2)), nn.Upsample(scale_factor=1.5, mode="bilinear")
    most, shuffle = nn.AdaptiveMaxPool2d(4), nn.PixelShuffle(2)

    scale = engine.ones(8, 7, 5).requires_grad_()

    def step(x):
        y = pool(grow(shuffle(most(x * scale))))
        (slope,) = engine.grad((y * y).sum(), scale)
        return y, slope

    fast = engine.capture(step)
    for seed in range(4):
        x = ours(randn(2, 8, 7, 5, dtype=torch.float32, seed=seed))
        assert [y.tolist() for y in fast(x)] == [y.tolist() for y in step(x)]
    assert not fast.fallback_reason
