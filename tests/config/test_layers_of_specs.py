"""Layers on other inputs than those of the base config: what was planned is what is built."""

from __future__ import annotations

import re
from typing import Any

import pytest
from planning import planned

from gradcli import engine
from gradcli.config.planned import build
from gradcli.config.tensor_spec import TensorSpec
from gradcli.errors import ErrorGroup, ShapeError

FITTING: list[tuple[str, tuple[int, ...], dict[str, Any], tuple[int, ...], int]] = [
    ("conv1d", (3, 11), {"out": 4, "kernel": 3}, (4, 9), 4 * 9 + 4),
    ("conv1d", (4, 11), {"out": 6, "kernel": 5, "padding": "same", "groups": 2}, (6, 11), 66),
    (
        "conv1d",
        (2, 12),
        {"out": 3, "kernel": 3, "stride": 2, "padding": 1, "dilation": 2, "bias": False},
        (3, 5),
        18,
    ),
    ("conv_transpose1d", (3, 5), {"out": 4, "kernel": 3}, (4, 7), 3 * 4 * 3 + 4),
    (
        "conv_transpose1d",
        (4, 5),
        {
            "out": 6,
            "kernel": 3,
            "stride": 2,
            "padding": 1,
            "output_padding": 1,
            "dilation": 2,
            "groups": 2,
            "bias": False,
            "in": 4,
        },
        (6, 12),
        4 * 3 * 3,
    ),
    ("conv_transpose", (3, 5, 4), {"out": 2, "kernel": 2, "stride": 2}, (2, 10, 8), 26),
    (
        "conv_transpose",
        (4, 5, 3),
        {
            "out": 2,
            "kernel": (3, 5),
            "stride": (2, 3),
            "padding": (1, 0),
            "output_padding": (1, 2),
            "groups": 2,
        },
        (2, 10, 13),
        4 * 15 + 2,
    ),
    ("max_pool1d", (3, 11), {"kernel": 2}, (3, 5), 0),
    ("max_pool1d", (3, 11), {"kernel": 3, "stride": 2, "padding": 1}, (3, 6), 0),
    ("avg_pool1d", (3, 11), {"kernel": 4, "stride": 3, "padding": 2}, (3, 4), 0),
    ("reshape", (6, 5), {"shape": (2, 3, 5)}, (2, 3, 5), 0),
    ("reshape", (2, 3, 5), {"shape": (30,)}, (30,), 0),
    ("group_norm", (6,), {"groups": 3}, (6,), 12),
    ("group_norm", (6, 5, 3), {"groups": 2}, (6, 5, 3), 12),
    ("instance_norm", (6, 5), {}, (6, 5), 0),
    ("instance_norm", (6, 5, 3), {"affine": True}, (6, 5, 3), 12),
    ("rms_norm", (6, 5), {}, (6, 5), 5),
    ("rms_norm", (6, 5, 3), {"eps": 1e-6}, (6, 5, 3), 90),
    ("dropout1d", (6, 5), {"p": 0.2}, (6, 5), 0),
    ("dropout2d", (6, 5, 3), {}, (6, 5, 3), 0),
    ("prelu", (6, 5, 3), {}, (6, 5, 3), 1),
    ("prelu", (6, 5, 3), {"init": 0.1, "per_channel": True}, (6, 5, 3), 6),
    ("leaky_relu", (7,), {"negative_slope": 0.3}, (7,), 0),
    ("elu", (7,), {"alpha": 0.3}, (7,), 0),
    ("celu", (7,), {"alpha": 0.3}, (7,), 0),
    ("softplus", (7,), {"beta": 2.0, "threshold": 3.0}, (7,), 0),
    ("hardtanh", (7,), {"min_val": -2.0, "max_val": 0.5}, (7,), 0),
    ("threshold", (7,), {"threshold": 0.5, "value": 0.1}, (7,), 0),
    ("softcap", (7,), {"cap": 30.0}, (7,), 0),
    ("adaptive_avg_pool", (3, 7, 5), {"size": 2}, (3, 2, 2), 0),
    ("adaptive_max_pool", (3, 7, 5), {"size": (3, 6)}, (3, 3, 6), 0),
    ("adaptive_avg_pool1d", (3, 7), {"size": 2}, (3, 2), 0),
    ("adaptive_max_pool1d", (3, 7), {"size": 9}, (3, 9), 0),
    ("upsample", (3, 7), {"scale": 2.5, "mode": "linear"}, (3, 17), 0),
    ("upsample", (3, 7, 5), {"scale": (2.0, 1.5)}, (3, 14, 7), 0),
    ("upsample", (3, 7, 5), {"size": 9, "mode": "nearest-exact"}, (3, 9, 9), 0),
    (
        "upsample",
        (3, 7, 5),
        {"size": (9, 4), "mode": "bilinear", "align_corners": True},
        (3, 9, 4),
        0,
    ),
    ("pad", (3, 7), {"size": (2, 1), "mode": "circular"}, (3, 10), 0),
    ("pad", (3, 7, 5), {"size": 2, "value": 0.5}, (3, 11, 9), 0),
    ("pad", (3, 7, 5), {"size": (1, 2, 3, 0), "mode": "reflect"}, (3, 10, 8), 0),
    ("pad", (3, 2, 5), {"size": (0, 0, 4, 0), "mode": "replicate"}, (3, 6, 5), 0),
    ("pixel_shuffle", (8, 7, 5), {"factor": 2}, (2, 14, 10), 0),
    ("pixel_unshuffle", (2, 6, 9), {"factor": 3}, (18, 2, 3), 0),
    ("log_softmax", (4, 5), {"dim": 0}, (4, 5), 0),
    ("glu", (4, 6), {}, (4, 3), 0),
    ("glu", (4, 5, 3), {"dim": 0}, (2, 5, 3), 0),
    ("swiglu", (4, 6), {"dim": -2}, (2, 6), 0),
]


@pytest.mark.parametrize(("kind", "shape", "fields", "output", "parameters"), FITTING)
def test_the_plan_of_a_layer_is_what_it_does(
    kind: str,
    shape: tuple[int, ...],
    fields: dict[str, Any],
    output: tuple[int, ...],
    parameters: int,
) -> None:
    [plan] = planned(TensorSpec(shape), {kind: fields})
    module = build(plan)
    assert plan.output == TensorSpec(output)
    assert module(engine.rand(2, *shape)).shape == (2, *output)
    assert plan.parameters == parameters
    assert sum(p.numel() for p in module.parameters()) == parameters


MISFITS: list[tuple[str, tuple[int, ...], dict[str, Any], str]] = [
    ("conv1d", (3, 5, 5), {"out": 4, "kernel": 3}, r"needs lines \(channels x length\), got 3x5x5"),
    ("conv1d", (3, 5), {"out": 4, "kernel": 6}, "the output would be 0; input 3x5, weight"),
    ("conv1d", (3, 5), {"out": 4, "kernel": 3, "groups": 2}, "groups=2 must divide in=3 and out=4"),
    ("conv1d", (3, 5), {"out": 4, "kernel": 3, "in": 5}, "'in' says 5, the input has 3"),
    ("conv1d", (3, 5), {"out": 4, "kernel": 3, "padding": "same", "stride": 2}, "needs stride 1"),
    (
        "conv_transpose1d",
        (4, 5),
        {"out": 3, "kernel": 3, "groups": 2},
        "must divide in=4 and out=3",
    ),
    (
        "conv_transpose1d",
        (3, 5),
        {"out": 4, "kernel": 3, "output_padding": 1},
        r"output_padding \(1,\) must be smaller than stride \(1,\) or dilation \(1,\)",
    ),
    (
        "conv_transpose",
        (3, 5, 1),
        {"out": 4, "kernel": 2, "padding": 1},
        "the output would be 4 x 0; input 3x5x1, weight",
    ),
    ("conv_transpose", (3, 5), {"out": 4, "kernel": 2}, "needs images"),
    ("max_pool1d", (3, 5), {"kernel": 2, "padding": 2}, "padding 2 is more than half of kernel 2"),
    ("reshape", (6, 5), {"shape": (4, 7)}, "the input 6x5 has 30 values, 4x7 has 28"),
    ("group_norm", (6, 5), {"groups": 4}, "groups=4 must divide the 6 channels"),
    ("instance_norm", (6,), {}, "needs lines"),
    ("instance_norm", (6, 1, 1), {}, "needs more than 1 value for each channel, got shape 6x1x1"),
    ("dropout1d", (6,), {}, "needs lines"),
    ("dropout2d", (6, 5), {}, "needs images"),
    ("avg_pool1d", (3, 5), {"kernel": 6}, "the output would be 0; input 3x5, kernel"),
    ("upsample", (3, 7), {}, "give one of size and scale"),
    ("upsample", (3, 7), {"scale": 2.0, "size": 3}, "give one of size and scale"),
    ("upsample", (3, 7), {"scale": 2.0, "mode": "bilinear"}, "mode 'bilinear' is for images"),
    (
        "upsample",
        (3, 7),
        {"scale": 2.0, "align_corners": True},
        "align_corners is for 'linear' and 'bilinear', not nearest",
    ),
    (
        "upsample",
        (3, 7),
        {"size": (2, 3)},
        r"size must be whole numbers of at least 1, one for lines, got \(2, 3\)",
    ),
    ("upsample", (3, 7), {"scale": 0.1}, r"the output would be \(0,\), the input is 3x7"),
    ("upsample", (3,), {"scale": 2.0}, "needs lines"),
    ("pad", (3,), {"size": 1}, "needs lines"),
    ("pad", (3, 7), {"size": (1, 1, 1, 1)}, r"size is a number or 2 of them, got \(1, 1, 1, 1\)"),
    (
        "pad",
        (3, 7, 5),
        {"size": 5, "mode": "reflect"},
        "reflect borders of dimension 3 can have 4 elements, got 5",
    ),
    ("pad", (3, 7), {"size": 1, "mode": "reflect", "value": 1.0}, "value is for constant"),
    ("pixel_shuffle", (6, 7, 5), {"factor": 2}, "the 6 channels of 6x7x5 must be a multiple of 4"),
    (
        "pixel_unshuffle",
        (6, 7, 5),
        {"factor": 2},
        "height and width of 6x7x5 must be multiples of 2",
    ),
    ("glu", (4, 5), {}, "dim -1 of shape 4x5 has no two halves"),
    ("swiglu", (4, 5), {"dim": 2}, "dim 2 is not one of the 2 dimensions of 4x5"),
    ("hardtanh", (4,), {"min_val": 2.0}, "min_val must be below max_val, got 2.0 and 1.0"),
]


def test_the_keys_of_a_layer_reach_its_module() -> None:
    for kind, fields in (
        ("leaky_relu", {"negative_slope": 0.3}),
        ("prelu", {"init": 0.3}),
        ("celu", {"alpha": 0.3}),
        ("softplus", {"beta": 2.0, "threshold": 3.0}),
        ("hardtanh", {"min_val": -2.0, "max_val": 0.5}),
        ("threshold", {"threshold": 0.5, "value": 0.1}),
        ("softcap", {"cap": 30.0}),
    ):
        [plan] = planned(TensorSpec((4,)), {kind: fields})
        module = build(plan)
        assert {key: getattr(module, key) for key in fields} == fields


@pytest.mark.parametrize(("kind", "shape", "fields", "message"), MISFITS)
def test_a_layer_says_what_does_not_fit(
    kind: str, shape: tuple[int, ...], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ErrorGroup) as caught:
        planned(TensorSpec(shape), {kind: fields})
    [error] = caught.value.errors
    assert isinstance(error, ShapeError)
    assert re.match(f"layer 0, {kind}: .*{message}", error.message)
