"""Convolutions, transposed ones and pooling, on lines and images, beside torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, ours, randn  # noqa: E402
from twins import same_layer, same_training  # noqa: E402

from gradcli.engine import nn  # noqa: E402

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths"),
]

# (layer, its arguments, the input's shape)
CASES = [
    ("Conv1d", (3, 4, 3), {}, (2, 3, 7)),
    ("Conv1d", (4, 6, 5), {"stride": 2, "padding": 3, "groups": 2}, (3, 4, 11)),
    ("Conv1d", (2, 2, 4), {"padding": "same", "bias": False}, (1, 2, 9)),
    ("Conv1d", (3, 3, 3), {"padding": "valid", "dilation": 2, "groups": 3}, (1, 3, 9)),
    ("Conv1d", (2, 3, 5), {"padding": 2, "stride": (3,)}, (2, 2, 64)),
    ("Conv1d", (2, 3, 2), {}, (2, 5)),
    ("Conv1d", (1, 5, 1), {}, (3, 1, 1)),
    ("Conv1d", (1, 2, 3), {}, (0, 1, 5)),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 2), "groups": 2}, (2, 4, 8, 7)),
    ("Conv2d", (2, 2, (2, 4)), {"padding": "same", "bias": False}, (1, 2, 5, 6)),
    ("Conv2d", (3, 3, 3), {"padding": "valid", "dilation": 2, "groups": 3}, (1, 3, 9, 7)),
    ("Conv2d", (2, 3, 3), {}, (2, 5, 4)),
    ("ConvTranspose1d", (3, 4, 3), {}, (2, 3, 7)),
    ("ConvTranspose1d", (4, 6, 5), {"stride": 3, "padding": 2, "groups": 2}, (2, 4, 6)),
    ("ConvTranspose1d", (2, 3, 4), {"stride": 2, "output_padding": 1, "bias": False}, (3, 2, 5)),
    ("ConvTranspose1d", (2, 3, 2), {"dilation": 3, "output_padding": 2}, (2, 5)),
    ("ConvTranspose1d", (1, 1, 1), {}, (1, 1, 1)),
    ("ConvTranspose2d", (3, 4, 3), {}, (2, 3, 7, 5)),
    (
        "ConvTranspose2d",
        (4, 6, (3, 5)),
        {"stride": (2, 3), "padding": (1, 2), "output_padding": (1, 0), "groups": 2},
        (2, 4, 5, 6),
    ),
    ("ConvTranspose2d", (2, 3, 2), {"stride": 2, "bias": False}, (1, 2, 7, 4)),
    ("ConvTranspose2d", (2, 2, 3), {"dilation": (2, 3), "output_padding": (1, 2)}, (2, 2, 4, 3)),
    ("ConvTranspose2d", (3, 3, 4), {"stride": 2, "padding": 1, "groups": 3}, (3, 6, 5)),
    ("MaxPool1d", (2,), {}, (2, 3, 7)),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 10)),
    ("MaxPool1d", (2,), {"dilation": 3, "stride": 1}, (3, 8)),
    ("AvgPool1d", (2,), {}, (2, 3, 7)),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 10)),
    ("AvgPool1d", ((3,),), {"padding": 1, "count_include_pad": False}, (3, 8)),
    ("MaxPool2d", ((3, 2),), {"stride": (1, 2), "padding": 1}, (2, 3, 7, 6)),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 7, 6)),
]
IDS = [f"{name}{args}{options}{shape}" for name, args, options, shape in CASES]
TRAINED = [case for case in CASES if "Pool" not in case[0] and 0 not in case[3]]


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "args", "options", "shape"), CASES, ids=IDS)
def test_windows_give_torchs_values_and_gradients(agree, name, args, options, shape, dtype):
    same_layer(agree, name, args, options, shape, dtype)


@pytest.mark.parametrize(("name", "args", "options", "shape"), TRAINED)
def test_windows_train_as_in_torch(agree, name, args, options, shape):
    same_training(agree, name, args, options, shape)


@pytest.mark.parametrize("name", ["MaxPool1d", "MaxPool2d"])
def test_indices_of_maxima_are_torchs(agree, name):
    shape = (2, 3, 9) if name == "MaxPool1d" else (2, 3, 9, 7)
    x = randn(*shape)
    found = getattr(nn, name)(3, 2, 1, return_indices=True)(ours(x))
    for mine, theirs in zip(
        found, getattr(torch.nn, name)(3, 2, 1, return_indices=True)(x), strict=True
    ):
        agree(f"nn.{name}", mine, theirs)


@pytest.mark.parametrize(
    ("size", "shape"), [((10, 15), (2, 3, 5, 5)), ([2, 4, 9, 13], (2, 3, 5, 5))]
)
def test_output_size_chooses_the_output_padding(agree, size, shape):
    x = randn(*shape)
    options = {"stride": (2, 3), "padding": 1}
    reference = torch.nn.ConvTranspose2d(3, 4, 3, **options).double()
    layer = nn.ConvTranspose2d(3, 4, 3, **options).double()
    layer.load_state_dict({key: ours(value) for key, value in reference.state_dict().items()})
    agree("nn.ConvTranspose2d", layer(ours(x), size), reference(x, size))


def test_functions_of_lines_take_torchs_positions(agree):
    functional, reference = nn.functional, torch.nn.functional
    x, w, b = randn(2, 4, 9), randn(6, 2, 3, seed=1), randn(6, seed=2)
    t = randn(4, 3, 3, seed=3)
    for name, mine, theirs in (
        ("conv1d", (ours(x), ours(w), ours(b), 2, 1, 1, 2), (x, w, b, 2, 1, 1, 2)),
        ("conv_transpose1d", (ours(x), ours(t), ours(b), 2, 1, 1, 2), (x, t, b, 2, 1, 1, 2)),
        ("max_pool1d", (ours(x), 3, 2, 1), (x, 3, 2, 1)),
        ("avg_pool1d", (ours(x), 3, 2, 1, True, False), (x, 3, 2, 1, True, False)),
    ):
        agree(f"F.{name}", getattr(functional, name)(*mine), getattr(reference, name)(*theirs))


def test_transposed_images_take_torchs_positions(agree):
    x, w, b = randn(2, 4, 5, 3), randn(4, 3, 3, 2, seed=1), randn(6, seed=2)
    options = ((2, 1), (1, 0), (1, 0), 2, 1)
    found = nn.functional.conv_transpose2d(ours(x), ours(w), ours(b), *options)
    agree("F.conv_transpose2d", found, torch.nn.functional.conv_transpose2d(x, w, b, *options))
