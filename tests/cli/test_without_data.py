"""A model leaves its data: the run copied to another folder, its data gone, answers as before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli
from tiny_data import CASES

__all__ = ["gradcli"]

Command = Callable[..., Ended]
ALL = pytest.mark.parametrize("case", CASES)


@pytest.fixture
def run(gradcli: Command, case: str) -> Path:
    """A run of a few steps; its data lie in `data`, new data of the same kind in `new`."""
    Path("moved.yaml").write_text(CASES[case].config())
    ended = gradcli("train", "moved.yaml", "--json")
    assert ended.code == 0
    return Path(ended.json["run"])


def carry_off(run: Path) -> Path:
    """The run in another folder, and neither its first folder nor its data any more."""
    Path("elsewhere").mkdir()
    copy = Path("elsewhere/copy")
    shutil.copytree(run, copy)
    shutil.rmtree("runs")
    shutil.rmtree("data")
    return copy


@ALL
def test_predict_answers_as_before(gradcli: Command, run: Path, case: str) -> None:
    files = CASES[case].files
    lines, as_json = (
        gradcli("predict", str(run), *files),
        gradcli("predict", "last", *files, "--json"),
    )
    assert lines.code == 0
    assert lines.out.count("\n") >= 2
    copy = carry_off(run)
    again = gradcli("predict", str(copy), *files)
    said = lines.err.replace(f"{run}: step", f"{copy}: step")  # whose answers these are
    assert (again.code, again.out, again.err) == (0, lines.out, said)
    found = gradcli("predict", str(copy), *files, "--json").json
    assert found["predictions"] == as_json.json["predictions"]


@pytest.mark.parametrize("case", ["text"])
def test_a_prompt_goes_on_as_before(gradcli: Command, run: Path, case: str) -> None:
    how = ("--prompt", "the c", "--tokens", "40")
    before = gradcli("predict", str(run), *how)
    after = gradcli("predict", str(carry_off(run)), *how)
    assert (before.code, after.code, after.out) == (0, 0, before.out)


OWN = """
from pathlib import Path
import gradcli
from gradcli import engine
from gradcli.data import Labelled, Unseen
from gradcli.data.samples import Samples

@gradcli.dataset
class Signs:
    table: Path

    def splits(self):
        x, y = numbers(self.table)
        return {"train": (x, y), "test": (x, y)}

    def read(self, path, state):
        x, _ = numbers(path)
        return Unseen(x, [f"{path.name}:{i}" for i in range(x.shape[0])], range(x.shape[0]))

    def new_split(self, path, facts):
        return Labelled(Samples(*numbers(path)))

def numbers(path):
    rows = [[float(cell) for cell in line.split()] for line in path.read_text().splitlines()]
    x = engine.tensor([row[:2] for row in rows])
    return x, engine.tensor([int(row[2]) for row in rows])
"""
SIGNS = """
gradcli: 1
name: moved
code: signs.py
data: {name: signs, table: data/signs.txt}
model: [linear: $data.classes]
loss: cross_entropy
metrics: [accuracy]
optim: {name: adam, lr: 0.05}
train: {epochs: 3, batch: 4}
"""


def test_a_dataset_of_one_s_own_reads_new_files_without_its_data(gradcli: Command) -> None:
    Path("data").mkdir()
    rows = "".join(f"{i % 7 - 3} {i % 5 - 2} {int(i % 7 > 2)}\n" for i in range(32))
    for name in ("data/signs.txt", "new.txt"):
        Path(name).write_text(rows)
    Path("signs.py").write_text(OWN)
    Path("moved.yaml").write_text(SIGNS)
    trained = gradcli("train", "moved.yaml", "--json").json
    before = gradcli("predict", "last", "new.txt").out
    Path("signs.py").unlink()
    copy = str(carry_off(Path(trained["run"])))
    ended = gradcli("predict", copy, "new.txt")
    assert (ended.code, ended.out) == (0, before)
    own, weights = ended.err.splitlines()
    assert own.startswith(f"runs own code {copy}/signs.py, sha256 ")
    assert weights == f"{copy}: step 24 (last)"
    found = gradcli("eval", copy, "--data", "new.txt", "--json").json["metrics"]
    assert found["data.accuracy"] == trained["metrics"]["test.accuracy"]


@ALL
def test_eval_of_a_split_needs_the_data(gradcli: Command, run: Path, case: str) -> None:
    ended = gradcli("eval", str(carry_off(run)), "--split", "train")
    assert ended.code == 3
    assert "if the data has moved, write its new place into" in ended.err
    assert "or measure on other data with targets: eval RUN --data FILE" in ended.err


@ALL
def test_eval_of_new_data_gives_the_figures_of_a_split(
    gradcli: Command, run: Path, case: str
) -> None:
    """The training data, handed in as new, has the figures of its split; then without the data."""
    split = CASES[case].split
    of_split = gradcli("eval", str(run), "--split", split, "--json").json["metrics"]
    of_file = gradcli("eval", str(run), "--data", CASES[case].trained, "--json")
    assert of_file.code == 0
    same = {name.replace("data.", f"{split}."): x for name, x in of_file.json["metrics"].items()}
    assert same == pytest.approx(of_split, rel=1e-5)
    new = gradcli("eval", str(run), "--data", CASES[case].labelled, "--json").json
    after = gradcli("eval", str(carry_off(run)), "--data", CASES[case].labelled, "--json")
    assert after.code == 0
    assert after.json["metrics"] == new["metrics"] != of_file.json["metrics"]


@ALL
def test_a_folder_stands_for_the_files_in_it(gradcli: Command, run: Path, case: str) -> None:
    """Those that hold samples, in the order of their names; the others are named."""
    named = [Path(file) for file in CASES[case].files]
    folder = named[0].parent
    (folder / ".hidden").write_text("nothing to read")
    (folder / "y.npy").unlink(missing_ok=True)  # targets are arrays like any other
    readable = sorted(path for path in folder.iterdir() if is_of_samples(path, case))
    of_files = gradcli("predict", str(run), *map(str, readable), "--json").json["predictions"]
    whole = gradcli("predict", str(run), str(folder), "--json")
    assert (whole.code, whole.json["predictions"]) == (0, of_files)
    assert set(map(str, named[:1])) <= {row["file"] for row in of_files}
    left_out = {path.name for path in folder.iterdir()} - {path.name for path in readable}
    assert all(name in whole.err for name in left_out - {".hidden"})


def is_of_samples(path: Path, case: str) -> bool:
    """As the names say that `tiny_data` gives."""
    return not path.name.startswith(".") and "label" not in path.name
