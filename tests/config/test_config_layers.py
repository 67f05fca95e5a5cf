from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.config import layers
from gradcli.config.load import Config, load
from gradcli.config.planned import build
from gradcli.config.rehearsal import rehearse_training
from gradcli.config.room import Room
from gradcli.errors import DeviceError, ErrorGroup, GradcliError, ShapeError

Write = Callable[..., Path]
LAYERS = "  - flatten\n  - linear: 16\n  - relu\n"


def planned(config_file: Write, layers: str, data: str = "{name: fake}") -> Config:
    """The base config with these layers before its last `linear`."""
    lines = "".join(f"  - {line}\n" for line in layers.split("\n"))
    return load(config_file((LAYERS, lines), ("{name: fake}", data)))


def mistakes(config_file: Write, layers: str, data: str = "{name: fake}") -> list[GradcliError]:
    with pytest.raises(ErrorGroup) as caught:
        planned(config_file, layers, data)
    return caught.value.errors


@pytest.mark.parametrize(
    ("layer", "shape", "parameters"),
    [
        ("flatten", (784,), 0),
        ("linear: 5", (1, 28, 5), 28 * 5 + 5),
        ("linear: {out: 5, bias: false, in: 28}", (1, 28, 5), 28 * 5),
        ("conv: {out: 4, kernel: 3}", (4, 26, 26), 4 * 9 + 4),
        ("conv: {out: 4, kernel: [3, 5], padding: same, bias: false}", (4, 28, 28), 4 * 15),
        ("conv: {out: 4, kernel: 2, padding: same}", (4, 28, 28), 4 * 4 + 4),
        ("conv: {out: 4, kernel: 3, stride: 2, padding: 1, dilation: 2}", (4, 13, 13), 40),
        ("max_pool: 2", (1, 14, 14), 0),
        ("max_pool: {kernel: 3, stride: 2, padding: 1}", (1, 14, 14), 0),
        ("avg_pool: [2, 4]", (1, 14, 7), 0),
        ("avg_pool: global", (1,), 0),
        ("batch_norm", (1, 28, 28), 2),
        ("batch_norm: {momentum: 0.2}", (1, 28, 28), 2),
        ("layer_norm", (1, 28, 28), 2 * 784),
        ("dropout", (1, 28, 28), 0),
        ("dropout: 0.2", (1, 28, 28), 0),
        ("relu", (1, 28, 28), 0),
        ("gelu: {approximate: tanh}", (1, 28, 28), 0),
        ("tanh", (1, 28, 28), 0),
        ("sigmoid", (1, 28, 28), 0),
        ("softmax", (1, 28, 28), 0),
        ("residual: [conv: {out: 1, kernel: 3, padding: 1}, relu]", (1, 28, 28), 10),
        ("residual: {layers: [linear: 5], shortcut: [linear: 5]}", (1, 28, 5), 2 * (28 * 5 + 5)),
        ("residual: {layers: [relu], shortcut: []}", (1, 28, 28), 0),
        (
            "parallel: {branches: [[linear: 5], [linear: 7, relu], []], dim: -1}",
            (1, 28, 40),
            29 * 12,
        ),
        ("parallel: {branches: [[linear: 28], []], join: add}", (1, 28, 28), 28 * 29),
        ("parallel: [[max_pool: 4], [conv: {out: 3, kernel: 4, stride: 4}]]", (4, 7, 7), 51),
        ("repeat: {times: 3, layers: [linear: 28, relu]}", (1, 28, 28), 3 * (28 * 28 + 28)),
    ],
)
def test_shapes_and_parameters(
    config_file: Write, layer: str, shape: tuple[int, ...], parameters: int
) -> None:
    config = planned(config_file, f"{layer}\nflatten")
    assert config.model[0].output.shape == shape
    assert config.model[0].parameters == parameters


def test_text_is_embedded_and_classified_at_each_place(config_file: Write) -> None:
    path = config_file(
        (LAYERS, "  - embed: 12\n  - layer_norm\n"),
        ("$data.classes", "$data.vocab"),
        ("fake", "fake, kind: text"),
    )
    config = load(path)
    assert [layer.output.shape for layer in config.model] == [(8, 12), (8, 12), (8, 65)]
    assert [layer.parameters for layer in config.model] == [65 * 12, 24, 12 * 65 + 65]


@pytest.mark.parametrize(
    ("layer", "shape", "parameters"),
    [
        ("lstm: 5", (8, 5), 4 * 5 * (12 + 5 + 2)),
        ("lstm: {out: 5, bidirectional: true}", (8, 10), 2 * 4 * 5 * (12 + 5 + 2)),
        ("lstm: {out: 5, depth: 2, dropout: 0.5}", (8, 5), 4 * 5 * (12 + 5 + 2 + 5 + 5 + 2)),
        ("gru: {out: 5, last: true}", (5,), 3 * 5 * (12 + 5 + 2)),
        ("gru: {out: 5, bias: false}", (8, 5), 3 * 5 * (12 + 5)),
        (
            "rnn: {out: 5, depth: 2, bidirectional: true, last: true, nonlinearity: relu}",
            (10,),
            2 * 5 * (12 + 5 + 2 + 10 + 5 + 2),
        ),
    ],
)
def test_recurrent_layers_on_text(
    config_file: Write, layer: str, shape: tuple[int, ...], parameters: int
) -> None:
    path = config_file(
        (LAYERS, f"  - embed: 12\n  - {layer}\n"),
        ("$data.classes", "$data.vocab"),
        ("fake", "fake, kind: text"),
    )
    if "last" in layer:  # one state for a whole sample: no prediction at each place
        with pytest.raises(ErrorGroup, match="linear 'head', the last one"):
            load(path)
        path.write_text(path.read_text().replace("last: true", "last: false"))
        shape = (8, *shape)
    planned = load(path).model[1]
    assert planned.output.shape == shape
    assert planned.parameters == parameters
    assert sum(p.numel() for p in build(planned).parameters()) == parameters


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("conv: {out: 4, kernel: 30}", "would be -1 x -1; input 1x28x28, weight (4, 1, 30, 30)"),
        ("max_pool: 29", "layer 0, max_pool: the output would be 0 x 0; input 1x28x28"),
        ("conv: {out: 4, kernel: 3, groups: 2}", "groups=2 must divide in=1 and out=4"),
        ("conv: {out: 4, kernel: 3, padding: same, stride: 2}", "'same' needs stride 1"),
        ("conv: {out: 4, kernel: 3, in: 3}", "'in' says 3, the input has 1"),
        ("max_pool: {kernel: 2, padding: 2}", "padding 2 is more than half of kernel 2"),
        ("avg_pool: {kernel: global, stride: 2}", "a global window has no stride"),
        ("flatten\nmax_pool: 2", "layer 1, max_pool: needs images (channels x height x width)"),
        ("flatten\nlinear: {in: 800, out: 5}", "layer 1, linear: 'in' says 800, the input has 784"),
        ("flatten\nresidual: [linear: 5]", "residual: the input is 784, its layers give 5"),
        (
            "flatten\nresidual: {layers: [linear: 5], shortcut: [linear: 6]}",
            "residual: its shortcut gives 6, its layers give 5; a sum needs them equal",
        ),
        ("parallel: [[linear: 5], []]", "branch 0 gives 1x28x5, branch 1 gives 1x28x28; concat"),
        ("parallel: {branches: [[flatten], []], join: add}", "branch 1 gives 1x28x28; a sum needs"),
        ("parallel: {branches: [[relu], []], dim: 3}", "concat: dim 3 is outside -3..2"),
        ("parallel: [[relu], [max_pool: 29]]", "layer 0.1.0, max_pool: the output would be 0 x 0"),
        ("embed: 3", "needs indices"),
        ("lstm: 3", "layer 0, lstm: needs sequences (steps x features), got 1x28x28"),
        ("flatten\ngru: 3", "layer 1, gru: needs sequences (steps x features), got 784"),
        ("relu", "put flatten before"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(config_file: Write, layers: str, message: str) -> None:
    found = mistakes(config_file, layers)
    assert any(message in f"{error.message} {error.notes}" for error in found), found
    assert isinstance(found[0], ShapeError)
    assert found[0].exit_code == 2
    assert found[0].location is not None


@pytest.mark.parametrize(
    ("layer", "value"),
    [
        ("conv: {out: 4, kernel: 3, groups: 3}", "3}"),
        ("max_pool: {padding: 2, kernel: 2}", "2, kernel"),
        ("upsample: {mode: linear, scale: 2}", "linear"),
        ("pad: {size: [1, 2, 3, 29], mode: reflect}", "pad:"),
    ],
)
def test_what_the_engine_refuses_is_told_at_the_key_it_names(
    config_file: Write, layer: str, value: str
) -> None:
    place = mistakes(config_file, layer)[0].location
    assert place is not None
    assert place.text[place.column - 1 :].startswith(value)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("relu: 3", "relu takes no value"),
        ("linear", "layer 0, linear: out is missing: a whole number"),
        ("linear: 0", "out must be a whole number from 1 to 2147483647, got 0"),
        ("linear: {units: 3}", "unknown key 'units' in layer 0, linear"),
        ("lstm", "layer 0, lstm: out is missing: a whole number"),
        ("lstm: {out: 3, num_layers: 2}", "unknown key 'num_layers' in layer 0, lstm"),
        ("rnn: {out: 3, nonlinearity: gelu}", "nonlinearity must be one of tanh, relu"),
        ("dropout: 1.0", "p must be a number in [0, 1), got 1.0"),
        ("conv: {out: 3, kernel: [3, 3, 3]}", "kernel must be a whole number >= 1, or two of them"),
        ("conv: {out: 3, kernel: 3, padding: full}", "two of them as [height, width], or same"),
        ("gelu: {approximate: exact}", "approximate must be one of none, tanh"),
        ("torch.nn.Linear: 3", "no layer is called 'torch.nn.Linear'"),
        ("dense: 3", "no layer is called 'dense'"),
        ("{linear: 3, name: x}", "name: {fields}, got a map of 2 keys"),
        ("[relu]", "must be a name, name: value or name: {fields}, got a list"),
        ("3", "must be a name, name: value or name: {fields}, got 3"),
        ("linear: {out: 3, name: 7}", "name must be letters"),
        ("linear: {out: 3, name: head}", "two layers are named 'head'"),
        ("repeat: {times: 0, layers: [relu]}", "times must be a whole number from 1"),
        ("repeat: {times: 2}", "layers is missing: a list of layers"),
        ("repeat: {times: 2, layers: []}", "repeat has no layers"),
        ("repeat: {times: 2, layers: relu}", "layers must be a list of layers, got text 'relu'"),
        ("repeat: {times: 20000, layers: [relu]}", "a model has at most 10000 layers"),
        ("parallel: []", "layer 0: parallel has no branches"),
        ("parallel: [relu]", "branches must be a list of lists of layers, got text 'relu'"),
        ("parallel: {branches: [[relu]], join: max}", "join must be one of concat, add"),
        ("parallel: [[linear: 3.5]]", "layer 0.0.0, linear: out must be a whole number"),
        ("residual: {layers: [relu], shortcut: [linear: 3.5]}", "layer 0.shortcut.0, linear: out"),
        ("residual: [linear: 3.5]", "layer 0.0, linear: out must be a whole number"),
    ],
)  # fmt: skip
def test_wrong_layers_are_named(config_file: Write, layer: str, message: str) -> None:
    found = mistakes(config_file, layer)
    assert any(message in error.message for error in found), found


def test_names_from_other_tools_are_understood(config_file: Write) -> None:
    assert "did you mean 'linear'?" in mistakes(config_file, "dense: 3")[0].caret


RENAMED = [
    (kind, key, name)
    for kind, layer in layers.LAYERS.items()
    for key, name in layer.keys.items()
    if key != name
]


@pytest.mark.parametrize(("kind", "key", "name"), RENAMED)
def test_what_torch_calls_a_key_is_understood(
    config_file: Write, kind: str, key: str, name: str
) -> None:
    carets = [error.caret for error in mistakes(config_file, f"{kind}: {{{name}: 1}}")]
    assert f"did you mean '{key}'?" in carets


def test_an_output_width_other_than_the_classes_is_refused(config_file: Write) -> None:
    with pytest.raises(ErrorGroup) as caught:
        load(config_file(("$data.classes", "10"), ("fake", "fake, classes: 12")))
    [error] = caught.value.errors
    assert "linear 'head', the last one, gives 10 values a sample" in error.message
    assert "the data has 12 classes" in error.message
    assert error.notes == ("write $data.classes instead of a number",)


def test_a_regression_takes_mse_and_values(config_file: Write) -> None:
    changes = [
        ("fake", "fake, kind: values"),
        ("$data.classes", "1"),
        ("metrics: [accuracy]", "metrics: [mae]"),
        ("val.accuracy", "val.mae"),
        ("test.accuracy", "test.mae"),
    ]
    config = load(config_file(("cross_entropy", "mse"), *changes))
    assert config.loss.name == "mse"
    with pytest.raises(ErrorGroup, match="'cross_entropy' is for labels, this data has values"):
        load(config_file(*changes))


@pytest.mark.parametrize(("train", "batch"), [(101, 10), (100, 1)])
def test_batchnorm_refuses_a_batch_of_one_sample(
    config_file: Write, train: int, batch: int
) -> None:
    path = config_file(
        ("- relu", "- batch_norm"),
        ("fake", f"fake, train: {train}"),
        ("batch: 10", f"batch: {batch}"),
    )
    with pytest.raises(ErrorGroup, match="a batch of 1 sample has no variance") as caught:
        load(path)
    assert "set train.drop_last to true" in caught.value.errors[0].notes


def test_batchnorm_takes_a_dropped_last_sample(config_file: Write) -> None:
    load(
        config_file(
            ("- relu", "- batch_norm"),
            ("fake", "fake, train: 101"),
            ("batch: 10", "batch: 10, drop_last: true"),
        )
    )


def test_a_model_larger_than_the_machine_is_a_device_error(config_file: Write) -> None:
    [error] = mistakes(config_file, "flatten\nlinear: 90000\nlinear: 90000")
    assert isinstance(error, DeviceError)
    assert error.exit_code == 4
    assert error.message.startswith("training needs more than 3")
    assert error.message.endswith(" GB available")


def test_the_memory_is_that_of_the_device(config_file: Write) -> None:
    file = config_file(("fake", "fake, train: 1000000"), ("batch: 10", "batch: 1000000"))
    config = load(file, room=Room("the moon", lambda: None))
    assert config.memory is not None
    most = rehearse_training(config)[0].most
    assert most > config.memory.total  # while the step is learnt
    assert load(file, room=Room("the moon", lambda: most)).memory == config.memory
    about = f"{most / 1e9:.1f} GB"
    for free, needed in ((most - 1, f"{most:,} bytes"), (10**6, f"more than {1.568:.1f} GB")):
        with pytest.raises(ErrorGroup) as caught:
            load(file, room=Room("the moon", lambda: free))  # noqa: B023 -- called at once
        [error] = caught.value.errors
        assert error.code == "E402"
        there = about if free > 10**6 else "1.0 MB"
        assert error.message == f"training needs {needed}, the moon has {there} available"
    assert load(file, room=None).memory is None


def test_a_model_without_parameters_is_refused(config_file: Write) -> None:
    file = config_file(
        ("  - linear: 16\n", ""), ("  - linear: {out: $data.classes, name: head}\n", "")
    )
    with pytest.raises(ErrorGroup, match="no layer has parameters, so there is nothing to train"):
        load(file)


def test_bytes_beyond_64_bits_are_refused(config_file: Write) -> None:
    [error] = mistakes(config_file, "upsample: 10000000\nupsample: 1\navg_pool: global")
    assert isinstance(error, ShapeError)
    assert "overflow 64 bits" in error.message


@pytest.mark.parametrize(
    ("layers", "at"),
    [
        ("flatten\nlinear: 8\nbatch_norm", ["1"]),
        ("flatten\nrepeat: {times: 3, layers: [linear: 8, batch_norm]}", ["1.0.0"]),
        ("flatten\nrepeat: {times: 2, layers: [batch_norm, linear: 8]}", ["1.0.1"]),
        ("flatten\nrepeat: {times: 2, layers: [linear: 8]}\nbatch_norm", ["1.1.0"]),
        ("flatten\nlinear: 8\nresidual: [linear: 8, batch_norm]", ["2.0"]),
        (
            "flatten\nresidual: {layers: [linear: 8], shortcut: [linear: 8, batch_norm]}",
            ["1.shortcut.0"],
        ),
        ("flatten\nparallel: {branches: [[linear: 8, batch_norm], [linear: 8]]}", ["1.0.0"]),
        ("flatten\nlinear: 8\nresidual: [batch_norm]", []),
        ("flatten\nresidual: {layers: [linear: 8], shortcut: [linear: 8]}\nbatch_norm", []),
        ("flatten\nlinear: {out: 8, bias: false}\nbatch_norm", []),
    ],
)
def test_bias_before_batchnorm_is_a_warning(config_file: Write, layers: str, at: list[str]) -> None:
    warnings = planned(config_file, layers).warnings
    assert {warning.code for warning in warnings} <= {"W103"}
    assert [warning.message.partition(",")[0] for warning in warnings] == [f"layer {i}" for i in at]


@pytest.mark.parametrize(
    ("layer", "title"),
    [
        ("linear: 5", "linear 5"),
        ("linear: {out: 5, name: wide}", "linear 'wide'"),
        ("gelu", "gelu"),
        ("gelu: tanh", "gelu tanh"),
        ("layer_norm: {eps: 0.00001}", "layer_norm"),
        ("max_pool: [2, 4]", "max_pool"),
    ],
)
def test_a_title_tells_the_first_key_where_it_was_chosen(
    config_file: Write, layer: str, title: str
) -> None:
    config = planned(config_file, f"{layer}\nflatten")
    assert config.model[0].title == title
