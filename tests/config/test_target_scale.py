"""`data.target_scale`: where it is standard by default, where it is refused, what is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trusting import load

from gradcli.errors import ErrorGroup

CONFIG = """\
gradcli: 1
data: {name: csv, file: t.csv, target: y, task: regression, numeric: [x]}
model: [linear: 4, relu, linear: 1]
loss: mse
metrics: [mae]
optim: {name: adam, lr: 1e-3}
train: {epochs: 1, batch: 8}
"""


@pytest.fixture
def config(tmp_path: Path) -> Any:
    """Loads the config, each pair in it replaced."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))

    def loaded(*changes: tuple[str, str]) -> Any:
        text = CONFIG
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "c.yaml").write_text(text)
        return load(tmp_path / "c.yaml")

    return loaded


def scale(config: Any) -> str | None:
    found: str | None = config.resolved["data"].get("target_scale")
    assert found == config.data.target_scale
    return found


@pytest.mark.parametrize("loss", ["mse", "l1", "smooth_l1", "huber"])
def test_a_regression_is_scaled_by_default(config, loss: str) -> None:
    found = config(("loss: mse", f"loss: {loss}"))
    assert (scale(found), found.warnings) == ("standard", ())


@pytest.mark.parametrize("loss", ["bce", "bce_with_logits", "kl", "poisson_nll"])
def test_a_loss_that_needs_the_targets_as_they_are_gets_them(config, loss: str) -> None:
    assert scale(config(("loss: mse", f"loss: {loss}"))) == "none"
    with pytest.raises(ErrorGroup) as caught:
        config(("loss: mse", f"loss: {loss}"), ("numeric:", "target_scale: standard, numeric:"))
    [error] = caught.value.errors
    assert (error.code, str(error.location).split(":")[-2]) == ("E109", "2")
    assert f"loss '{loss}' needs the targets as they are; use none" in error.message


@pytest.mark.parametrize("end", ["sigmoid", "tanh", "softplus", "relu", "sigmoid, identity"])
def test_a_model_whose_end_is_bounded_gets_the_targets_as_they_are(config, end: str) -> None:
    change = ("linear: 1]", f"linear: 1, {end}]")
    assert scale(config(change)) == "none"
    written = config(change, ("numeric:", "target_scale: standard, numeric:"))
    assert scale(written) == "standard"
    [warning] = [one for one in written.warnings if one.code == "W106"]
    assert "bounds the outputs, and scaled targets lie on both sides of 0" in warning.message


def test_labels_are_never_scaled(config) -> None:
    labels = [("regression", "classification"), ("linear: 1", "linear: $data.classes")]
    labels += [("mse", "cross_entropy"), ("mae", "accuracy")]
    assert scale(config(*labels)) is None
    assert scale(config(*labels, ("numeric:", "target_scale: none, numeric:"))) == "none"
    with pytest.raises(ErrorGroup, match="only targets that are values, one or a row of them"):
        config(*labels, ("numeric:", "target_scale: standard, numeric:"))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (("batch: 8", "batch: 8, best: val.loss"), "train.best: val.loss"),
        (("batch: 8", "batch: 8, early_stop: {metric: val.loss}"), "train.early_stop.metric"),
        (("batch: 8}", 'batch: 8}\nexpect: {val.loss: "< 1"}'), "expect: val.loss"),
    ],
)
def test_a_loss_that_is_watched_is_noted(config, change: tuple[str, str], where: str) -> None:
    [warning] = config(change).warnings
    assert (warning.code, warning.caret) == ("W106", "mae and rmse are")
    assert warning.message.startswith(where)
    assert "not in the target's units" in warning.message
    assert not config(change, ("numeric:", "target_scale: none, numeric:")).warnings
    assert not config((change[0], change[1].replace("loss", "mae"))).warnings


def test_a_threshold_that_is_written_down_is_noted_unless_the_scale_is_chosen(config) -> None:
    change = ("loss: mse", "loss: {name: huber, delta: 5000}")
    [warning] = config(change).warnings
    assert "loss.delta counts in deviations of the target" in warning.message
    assert not config(change, ("numeric:", "target_scale: standard, numeric:")).warnings
    assert not config(change, ("numeric:", "target_scale: none, numeric:")).warnings


@pytest.mark.parametrize("reader", ["npy", "npz"])
def test_arrays_of_floats_are_scaled_and_targets_that_are_inputs_are_not(
    config, tmp_path: Path, reader: str
) -> None:
    numpy = pytest.importorskip("numpy")
    x, y = numpy.zeros((40, 3), "float32"), numpy.zeros((40, 2), "float32")
    numpy.save(tmp_path / "x.npy", x)
    numpy.save(tmp_path / "y.npy", y)
    numpy.savez(tmp_path / "a.npz", x=x, y=y, labels=numpy.arange(40) % 2)
    names = (
        "inputs: x.npy, targets: y.npy" if reader == "npy" else "file: a.npz, inputs: x, targets: y"
    )
    data = CONFIG.splitlines()[1]
    arrays = f"data: {{name: {reader}, {names}, split: {{train: 80%, val: 20%}}}}"
    change = (data, arrays), ("linear: 1]", "linear: 2]")
    assert scale(config(*change)) == "standard"
    itself = (data, arrays.replace("name:", "target: input, name:")), ("linear: 1]", "linear: 3]")
    assert scale(config(*itself)) is None
    with pytest.raises(ErrorGroup, match="only targets that are values"):
        config(
            (itself[0][0], itself[0][1].replace("name:", "target_scale: standard, name:")),
            itself[1],
        )


OWN = """
import gradcli
from gradcli import engine

@gradcli.dataset
class Waves:
    samples: int = 40
    pictures: bool = False

    def splits(self):
        x = engine.arange(self.samples).to(engine.float32).reshape(-1, 1)
        y = 1000 * x.sin() + 5000
        y = y.reshape(-1, 1, 1, 1).expand(-1, 1, 2, 2) if self.pictures else y[:, 0]
        return {"train": (x[:30], y[:30]), "val": (x[30:], y[30:])}
"""


def test_own_data_with_values_is_scaled_and_pictures_are_not(config, tmp_path: Path) -> None:
    (tmp_path / "waves.py").write_text(OWN)
    data = CONFIG.splitlines()[1]
    own = (data, "code: waves.py\ndata: {name: waves}")
    assert scale(config(own)) == "standard"
    chosen = config((data, "code: waves.py\ndata: {name: waves, target_scale: none}"))
    assert scale(chosen) == "none"
    pictures = (data, "code: waves.py\ndata: {name: waves, pictures: true}")
    ends = ("linear: 1]", "linear: 4]")
    assert scale(config(pictures, ends)) is None


OWN_LOSS = """
import gradcli
from gradcli.engine import nn

@gradcli.loss
class Cosh(nn.Module):
    targets = "values"

    def forward(self, outputs, targets):
        return (outputs - targets).cosh().log().mean()
"""


def test_an_own_loss_gets_the_targets_as_they_are_unless_asked_otherwise(
    config, tmp_path: Path
) -> None:
    (tmp_path / "cosh.py").write_text(OWN_LOSS)
    own = ("loss: mse", "code: cosh.py\nloss: cosh")
    assert scale(config(own)) == "none"
    assert scale(config(own, ("numeric:", "target_scale: standard, numeric:"))) == "standard"
