"""What is said of layers that stand beside each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.config.load import load
from gradcli.errors import GradcliError

Write = Callable[..., Path]
LAYERS = "  - flatten\n  - linear: 16\n  - relu\n"
IMAGES = "conv: {out: 4, kernel: 3, bias: false}\n"


def warned(config_file: Write, layers: str) -> list[GradcliError]:
    """The warnings of the base config with these layers before its last `linear`."""
    lines = "".join(f"  - {line}\n" for line in layers.split("\n"))
    return list(load(config_file((LAYERS, lines))).warnings)


@pytest.mark.parametrize(
    ("layers", "code", "at"),
    [
        (f"{IMAGES}batch_norm\nlayer_norm\nflatten", "W111", ["2"]),
        (f"{IMAGES}batch_norm\nrelu\nlayer_norm\nflatten", "W111", []),
        ("flatten\nlinear: {out: 8, bias: false}\nbatch_norm\nresidual: [rms_norm]", "W111", []),
        ("flatten\nresidual: [layer_norm, rms_norm]", "W111", ["1.1"]),
        ("flatten\nrepeat: {times: 3, layers: [rms_norm, layer_norm]}", "W111", ["1.0.1", "1.1.0"]),
        ("flatten\nlayer_norm\nlayer_norm\nlayer_norm", "W111", ["2", "3"]),
        ("reshape: [28, 28]\ntransformer: 4\nlayer_norm\nflatten", "W111", []),
        (
            "reshape: [28, 28]\ntransformer: {heads: 4, norm: post}\nrms_norm\nflatten",
            "W111",
            ["2"],
        ),
        ("flatten\ndropout: 0.5\nbatch_norm", "W112", ["1"]),
        ("dropout2d\nbatch_norm\nflatten", "W112", ["0"]),
        ("flatten\ndropout: 0\nbatch_norm", "W112", []),
        ("flatten\nbatch_norm\ndropout: 0.5", "W112", []),
        ("flatten\ndropout: 0.5\nlayer_norm", "W112", []),
        ("flatten\nrepeat: {times: 2, layers: [batch_norm, dropout]}", "W112", ["1.0.1"]),
        ("flatten\nlinear: 1\nrelu", "W113", ["1"]),
        ("flatten\nblock: [linear: 1]\nrepeat: {times: 2, layers: [relu]}", "W113", ["1.0"]),
        ("flatten\nrepeat: {times: 3, layers: [linear: 1]}", "W113", ["1.0.0"]),
        ("conv: {out: 1, kernel: 28}\nrelu\nflatten", "W113", ["0"]),
        ("conv: {out: 1, kernel: 3}\nrelu\nflatten", "W113", []),
        ("reshape: [28, 28]\nlinear: 1\ntanh\nlstm: 8\nflatten", "W113", ["1"]),
        ("reshape: [28, 28]\nlinear: 1\nflatten", "W113", []),
        ("reshape: [784, 1]\nlstm: {out: 8, last: true}", "W113", []),
        ("flatten\nparallel: [[linear: 1], [linear: 1]]", "W113", []),
        ("flatten\nresidual: [linear: 1, linear: 784]", "W113", ["1.0"]),
    ],
)
def test_neighbours_that_are_hardly_meant(
    config_file: Write, layers: str, code: str, at: list[str]
) -> None:
    warnings = warned(config_file, layers)
    assert {warning.code for warning in warnings} <= {code}
    assert [warning.message.partition(",")[0] for warning in warnings] == [f"layer {i}" for i in at]
    assert all(warning.location and warning.location.line and warning.caret for warning in warnings)


def test_a_last_layer_of_one_output_is_not_inside(config_file: Write) -> None:
    path = config_file(
        ("{name: fake}", "{name: fake, kind: values}"),
        ("$data.classes", "1"),
        ("cross_entropy", "mse"),
        ("accuracy]", "mae]"),
        (", best: val.accuracy", ""),
        ('test.accuracy: ">= 0.5"', 'test.mae: "< 9"'),
    )
    assert not load(path).warnings
