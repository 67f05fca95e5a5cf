"""`gradcli eval --data`: what new labelled data must be; one sentence for each way it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli
from tiny_data import CASES, idx, numpy

__all__ = ["gradcli"]

Command = Callable[..., Ended]
Change = Callable[[], str]  # makes a mistake in `new`, gives what --data is


def rows(text: str) -> str:
    Path("new/rows.csv").write_text(text)
    return "new/rows.csv"


def unknown_class() -> str:
    return rows("area,rooms,city,kind\n50,2,Rome,huge\n")


def no_target() -> str:
    return rows("area,rooms,city\n50,2,Rome\n")


def missing_price() -> str:
    return rows("area,rooms,city,price\n50,2,Rome,\n")


def unknown_folder() -> str:
    Path("new/dark").rename("new/grey")
    return "new"


def flat_folder() -> str:
    return "new/dark"


def other_targets() -> str:
    x = numpy.zeros((4, 5), dtype=numpy.float32)
    numpy.savez("new/a.npz", x=x, y=numpy.zeros((4, 2), dtype=numpy.float32))
    return "new/a.npz"


def high_label() -> str:
    x = numpy.zeros((4, 5), dtype=numpy.float32)
    numpy.savez("new/a.npz", x=x, y=numpy.array([0, 1, 7, 0]))
    return "new/a.npz"


def other_names() -> str:
    numpy.savez("new/a.npz", inputs=numpy.zeros((4, 5), dtype=numpy.float32))
    return "new/a.npz"


def narrow() -> str:
    numpy.save("new/x.npy", numpy.zeros((24, 5, 5), dtype=numpy.uint8))
    return "new"


def one_of_two() -> str:
    Path("new/y.npy").unlink()
    return "new"


def fewer_labels() -> str:
    Path("new/t10k-labels-idx1-ubyte").write_bytes(idx(numpy.zeros(3, dtype=numpy.uint8)))
    return "new"


def images_alone() -> str:
    return "new/t10k-images-idx3-ubyte.gz"


def short_text() -> str:
    Path("new/words.txt").write_text("the cat")
    return "new/words.txt"


def foreign_text() -> str:
    Path("new/words.txt").write_text("the cat sat \N{SNOWMAN} there\n")
    return "new/words.txt"


def nothing() -> str:
    return "nowhere"


WRONG: dict[Change, tuple[str, str]] = {
    unknown_class: ("csv, classes", "row 2, column 4 (kind): the model knows no class 'huge'"),
    no_target: ("csv, classes", "no column is called 'kind'"),
    missing_price: ("csv, values", "row 2, column 4 (price): expected a number"),
    unknown_folder: ("image_folder", "the class 'grey', which the model does not know"),
    flat_folder: ("image_folder", "new/dark holds no folders"),
    other_targets: ("npz", "float32 4 x 2 are not targets as the model was trained on"),
    high_label: ("npz", "sample 2 has label 7, expected 0 to 1 (2 classes)"),
    other_names: ("npz", "it holds no array 'x'; it has inputs"),
    narrow: ("npy", "samples are (1, 5, 5), the model was trained on (1, 6, 6)"),
    one_of_two: ("npy", "expected a folder that holds x.npy and y.npy"),
    fewer_labels: ("mnist", "16 images in new/t10k-images-idx3-ubyte.gz, but 3 labels in"),
    images_alone: ("mnist", "expected a folder that holds t10k-images-idx3-ubyte and t10k-labels"),
    short_text: ("text", "7 tokens are too few: a context of 8 needs 9"),
    foreign_text: ("text", "the character '\N{SNOWMAN}' did not occur in the training text"),
    nothing: ("text", "data file 'nowhere' does not exist"),
}


@pytest.mark.parametrize("change", WRONG, ids=lambda change: change.__name__)
def test_new_data_that_does_not_fit_is_refused(gradcli: Command, change: Change) -> None:
    case, says = WRONG[change]
    Path("moved.yaml").write_text(CASES[case].config())
    assert gradcli("train", "moved.yaml").code == 0
    ended = gradcli("eval", "last", "--data", change())
    assert (ended.code, says in ended.err) == (3, True), ended.err
    assert ended.out == ""


def test_a_split_and_new_data_exclude_each_other(gradcli: Command) -> None:
    gradcli("train", "dots.yaml")
    ended = gradcli("eval", "last", "--data", "x", "--split", "test")
    assert (ended.code, "--split is of the training data" in ended.err) == (2, True)
    assert gradcli("eval", "last", "--split", "test").code == 0


AGAIN = """\
gradcli: 1
data: {name: npy, inputs: data/x.npy, target: input}
model: [{conv: {out: 1, kernel: 3, padding: 1}}]
loss: mse
metrics: [mae]
optim: {name: sgd, lr: 0.1}
train: {steps: 2, batch: 4}
"""


def test_an_autoencoder_is_measured_on_inputs_alone(gradcli: Command) -> None:
    CASES["npy"].write()
    Path("again.yaml").write_text(AGAIN)
    assert gradcli("train", "again.yaml").code == 0
    ended = gradcli("eval", "last", "--data", "new/x.npy", "--json")
    assert (ended.code, set(ended.json["metrics"])) == (0, {"data.loss", "data.mae"})
    samples = ended.json["samples"]
    said = gradcli("eval", "last", "--data", "new/x.npy").out
    assert f"measured: step 2 (last), new/x.npy, {samples} samples\n" in said
