"""Padding layers, and the padding modes of convolutions, beside torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS  # noqa: E402
from twins import same_layer, same_training  # noqa: E402

pytestmark = pytest.mark.parity

# (layer, its arguments, the input's shape)
LINES = [((2,), (3, 4, 5)), (((1, 3),), (2, 7)), (((0, 2),), (0, 2, 4))]
IMAGES = [((2,), (2, 3, 4, 5)), (((1, 0, 2, 3),), (2, 4, 5)), ((0,), (0, 2, 3, 3))]
PADS = ["Zero", "Reflection", "Replication", "Circular"]
CASES = [
    *((f"{mode}Pad1d", args, {}, shape) for mode in PADS for args, shape in LINES),
    *((f"{mode}Pad2d", args, {}, shape) for mode in PADS for args, shape in IMAGES),
    *(("ConstantPad1d", (*args, 1.5), {}, shape) for args, shape in LINES),
    *(("ConstantPad2d", (*args, -0.5), {}, shape) for args, shape in IMAGES),
]
MODES = ["reflect", "replicate", "circular"]
CONVOLUTIONS = [
    ("Conv1d", (2, 3, 3), {"padding": 2}, (3, 2, 7)),
    ("Conv1d", (2, 4, 4), {"padding": "same", "dilation": 1}, (3, 2, 7)),
    ("Conv2d", (2, 3, (3, 5)), {"padding": (1, 2), "stride": 2}, (3, 2, 7, 6)),
    ("Conv2d", (2, 4, 3), {"padding": "same", "dilation": 2, "groups": 2}, (2, 2, 7, 5)),
    ("Conv2d", (2, 3, 3), {"padding": "valid", "bias": False}, (2, 2, 4, 5)),
]


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "args", "options", "shape"), CASES)
def test_pads_give_torchs_values_and_gradients(agree, name, args, options, shape, dtype):
    same_layer(agree, name, args, options, shape, dtype)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "args", "options", "shape"), CONVOLUTIONS)
def test_convolutions_of_padded_inputs(agree, name, args, options, shape, mode):
    options = {**options, "padding_mode": mode}
    same_layer(agree, name, args, options, shape, torch.float64)
    same_training(agree, name, args, options, shape)
