"""`gradcli.load`: the model of a run in Python, with its transforms and answers."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from points import Ended, gradcli
from tiny_data import CASES, numpy

import gradcli as package
from gradcli import engine
from gradcli.errors import CheckpointError, DataError, OptionError, RunError

__all__ = ["gradcli"]

Command = Callable[..., Ended]
ALL = pytest.mark.parametrize("case", CASES)
THREADS = 8


@pytest.fixture
def run(gradcli: Command, case: str) -> Path:
    """A run of a few steps; its data lie in `data`, new data of the same kind in `new`."""
    Path("moved.yaml").write_text(CASES[case].config())
    return Path(gradcli("train", "moved.yaml", "--json").json["run"])


def carry_off(run: Path) -> str:
    """The run in another folder; neither its first folder nor its data is there any more."""
    shutil.copytree(run, "elsewhere/copy")
    shutil.rmtree("runs")
    shutil.rmtree("data")
    return "elsewhere/copy"


@ALL
def test_it_answers_as_predict_did_before_the_data_went(
    gradcli: Command, run: Path, case: str
) -> None:
    files = CASES[case].files
    before = gradcli("predict", str(run), *files, "--json", "--top", "1").json["predictions"]
    model = package.load(carry_off(run))
    assert json.loads(json.dumps(model.predict(list(map(Path, files))))) == before
    assert model.transforms(Path(files[0])).shape[1:] == model.facts.input
    of_inputs = [model.predict(Path(file)) for file in files]
    assert list(itertools.chain(*of_inputs)) == before


def test_a_row_of_a_table_is_a_dict(gradcli: Command) -> None:
    for case in ("csv, classes", "csv, values"):
        Path("moved.yaml").write_text(CASES[case].config())
        assert gradcli("train", "moved.yaml").code == 0
        model = package.load("moved@last")
        with Path("new/rows.csv").open() as file:
            rows: list[Any] = list(csv.DictReader(file))
        of_file = model.predict("new/rows.csv")
        answers = [{k: v for k, v in row.items() if k not in ("file", "name")} for row in of_file]
        assert model.predict(rows) == answers
        numbers = [{**row, "area": float(row["area"]) if row["area"] else None} for row in rows]
        assert model.predict(numbers) == answers
        assert model.predict(numbers[5])[0] | {"index": 5} == answers[5]
        with pytest.raises(DataError, match="row 1 has no 'city'"):
            model.predict([rows[0], {"area": 3, "rooms": 2}])
        with pytest.raises(DataError, match=r"row 0, column 3 \(city\): unknown category 'Paris'"):
            model.predict({**rows[0], "city": "Paris"})
        with pytest.raises(DataError, match="expected a row as a dict"):
            model.predict(7)
        shutil.rmtree("data")
        shutil.rmtree("new")


@pytest.mark.parametrize("case", ["npz", "npy"])
def test_arrays_are_tensors_numpy_s_or_lists(gradcli: Command, run: Path, case: str) -> None:
    model = package.load(run)
    file = Path(CASES[case].files[0])
    loaded = numpy.load(file)
    array = loaded["x"] if case == "npz" else loaded
    expected = model.transforms(file).tolist()
    assert model.transforms(array).tolist() == expected
    assert model.transforms(engine.from_numpy(array.copy())).tolist() == expected
    assert model.transforms(array[3]).tolist() == expected[3:4]
    if case == "npz":
        assert model.transforms(array.tolist()).tolist() == expected
        array[0, 0] = numpy.nan
        with pytest.raises(DataError, match="found NaN or infinity"):
            model.predict(array)
    with pytest.raises(DataError, match=r"expected .* got \(2, 3\)"):
        model.predict([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("case", ["image_folder"])
def test_pictures_are_pillow_s_or_bytes_or_tensors(gradcli: Command, run: Path, case: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="image_folder needs the extra `images`")
    model = package.load(run)
    files = [Path(file) for file in CASES[case].files]
    expected = model.transforms(files).tolist()
    with image.open(files[0]) as one, image.open(files[1]) as two:
        assert model.transforms([one, two]).tolist() == expected
        assert model.transforms(two).tolist() == expected[1:]
    assert model.transforms([file.read_bytes() for file in files]).tolist() == expected
    labels = [row["label"] for row in model.predict(files[0].read_bytes())]
    assert labels == [row["label"] for row in model.predict(str(files[0]))]
    assert model.transforms(Path("new")).shape == (16, 3, 8, 8)
    assert len(model.predict("new")) == 16
    pixels = numpy.zeros((2, 3, 8, 8), dtype=numpy.uint8)
    assert model.transforms(pixels).shape == (2, 3, 8, 8)
    with pytest.raises(DataError, match="the samples: not a whole PNG, JPEG, WebP, BMP or GIF"):
        model.predict(b"no picture")


@pytest.mark.parametrize("case", ["text"])
def test_a_text_is_a_string_and_is_written_on(gradcli: Command, run: Path, case: str) -> None:
    text = Path("new/words.txt").read_text()
    shown = gradcli("predict", str(run), "--prompt", "the c", "--tokens", "30", "--seed", "4")
    model = package.load(carry_off(run))
    labels = [row["label"] for row in model.predict(text)]
    assert labels == [row["label"] for row in model.predict(Path("new/words.txt"))]
    assert "the c" + model.generate("the c", 30, seed=4) + "\n" == shown.out
    whole = model.generate("the c", 30, seed=4)
    for stop in (whole[9:12], [whole[9:12], "never"]):
        assert model.generate("the c", 30, seed=4, stop=stop) == whole[: whole.find(whole[9:12])]
    with pytest.raises(OptionError, match=r"^generate: an empty text in stop would end it at once"):
        model.generate("the c", stop="")
    with pytest.raises(DataError, match="7 tokens are too few: the model reads 8"):
        model.predict("the cat")
    assert model.predict([]) == []
    for odd in (3, None, ["the cat sat", 3]):
        with pytest.raises(DataError, match=r"^the samples: expected text, got (int|NoneType)$"):
            model.predict(odd)
    with pytest.raises(OptionError, match=r"^predict: top must be a whole number >= 1, got 0"):
        model.predict(text, top=0)
    with pytest.raises(OptionError, match=r"^generate: tokens must be a whole number >= 1, got -1"):
        model.generate("the c", -1)
    with pytest.raises(OptionError, match=r"^generate: prompt must be a text, got 3"):
        model.generate(3)


def test_a_checkpoint_is_named_as_on_the_command_line(gradcli: Command) -> None:
    assert gradcli("train", "dots.yaml", "-s", "train.keep=9").code == 0
    steps = {which: package.load(f"dots{which}").step for which in ("@last", "@12", "@best", "")}
    assert (steps["@last"], steps["@12"], steps["@best"]) == (18, 12, steps[""])
    with pytest.raises(CheckpointError, match="has no checkpoint '7'"):
        package.load("dots@7")
    with pytest.raises(RunError, match="no run 'dogs'"):
        package.load("dogs")
    shutil.move("runs", "others")
    assert package.load("last", runs="others").step == steps[""]


def test_loading_leaves_random_numbers_and_the_model_as_they_are(gradcli: Command) -> None:
    gradcli("train", "dots.yaml")
    engine.manual_seed(5)
    expected = engine.rand(3).tolist()
    engine.manual_seed(5)
    model = package.load("last")
    assert engine.rand(3).tolist() == expected
    assert not model.model.training
    assert repr(model).startswith("TrainedModel('runs/dots/")


def answers_in_threads(model: Any, samples: list[Any], count: int) -> Iterator[bool]:
    """Whether each answer is right: `count` of them, of eight threads over one model."""
    expected = [model.predict(sample) for sample in samples]
    right: list[list[bool]] = [[] for _ in range(THREADS)]

    def ask(number: int) -> None:
        for i in range(count // THREADS):
            at = (number + i) % len(samples)
            right[number].append(model.predict(samples[at]) == expected[at])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from itertools.chain(*right)


@pytest.mark.parametrize("case", ["csv, classes"])
def test_eight_threads_share_a_model(gradcli: Command, run: Path, case: str) -> None:
    assert_right_in_threads(run, 2000)


def assert_right_in_threads(run: Path, count: int) -> None:
    model = package.load(run)
    with Path("new/rows.csv").open() as file:
        rows: list[Any] = list(csv.DictReader(file))
    samples = [*rows[:6], rows[:3], rows[3:10], Path("new/rows.csv")]  # batches of several sizes
    right = list(answers_in_threads(model, samples, count))
    assert (len(right), all(right)) == (count, True)


if __name__ == "__main__":
    # python tests/cli/test_trained_model.py RUN COUNT: in a folder with `new/rows.csv`
    assert_right_in_threads(Path(sys.argv[1]), int(sys.argv[2]))


OWN_DATA = """
import gradcli
from gradcli import engine


@gradcli.dataset
class Rows:
    whole: bool = False

    def splits(self):
        x = engine.arange(60).reshape(20, 3)
        return {"train": (x % 7 if self.whole else x / 60, x.sum(1) / 60)}
"""
OWN_CONFIG = """
gradcli: 1
code: rows.py
data: {name: rows, whole: WHOLE}
model: [MODEL, {linear: 1}]
loss: mse
optim: {name: sgd, lr: 0.01}
train: {steps: 1, batch: 4}
"""


def trained_on_own_data(gradcli: Command, whole: str, model: str) -> package.TrainedModel:
    Path("rows.py").write_text(OWN_DATA)
    Path("own.yaml").write_text(OWN_CONFIG.replace("WHOLE", whole).replace("MODEL", model))
    return package.load(gradcli("train", "own.yaml", "--json").json["run"])


def test_samples_of_own_data_are_made_what_the_model_takes(gradcli: Command) -> None:
    model = trained_on_own_data(gradcli, "false", "{linear: 4}")
    row = [1, 2, 3]
    [expected] = model.predict(engine.tensor([row], dtype=engine.float32))
    for sample in (row, [row], numpy.array(row), numpy.array([row], dtype="float64")):
        assert model.predict(sample) == [expected]
    for odd in ([1, 2], numpy.zeros((2, 4)), [1.0, 2.0, float("nan")]):
        with pytest.raises(DataError, match=r"^the samples: expected"):
            model.predict(odd)


def test_indices_of_own_data_are_whole_and_below_the_vocabulary(gradcli: Command) -> None:
    model = trained_on_own_data(gradcli, "true", "{embed: 2}, flatten")
    expected = model.predict([[0, 1, 6]])
    assert model.predict(numpy.array([0.0, 1.0, 6.0])) == expected
    for odd in ([0, 1, 7], [-1, 0, 0], [0.5, 0, 0], [0, 1]):
        with pytest.raises(DataError, match=r"^the samples: expected"):
            model.predict(odd)
