"""evaluation.json and evaluation.safetensors: what a report needs, and never at a run's cost."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import idx_bytes
import pytest
from points import gradcli

from gradcli import engine
from gradcli.train import atomic, directory
from gradcli.train.close_look import CloseLook
from gradcli.train.tensor_files import load_tensors

__all__ = ["gradcli"]

FLOWERS = """\
gradcli: 1
name: flowers
data: {name: csv, file: flowers.csv, target: kind, numeric: [length, width], category: [place],
  missing: mean}
model: [linear: 8, relu, linear: $data.classes]
loss: cross_entropy
metrics: [accuracy]
optim: {name: adam, lr: 0.02}
train: {epochs: 3, batch: 16, seed: 1}
"""
HOUSES = """\
gradcli: 1
name: houses
data: {name: csv, file: flowers.csv, target: width, task: regression, numeric: [length],
  category: [place], missing: drop, split: {train: 80%, val: 20%}}
model: [linear: 8, relu, linear: 1]
loss: mse
metrics: [mae]
optim: {name: adam, lr: 0.02}
train: {epochs: 3, batch: 16, seed: 1}
"""
PICTURES = """\
gradcli: 1
name: pictures
data: {name: idx, images: images, labels: labels, mean: 0.4, std: 0.3, split: {train: 30, val: 10},
  target: input}
model: [flatten, linear: 8, relu, linear: 64, {reshape: [1, 8, 8]}]
loss: mse
optim: {name: adam, lr: 0.01}
train: {epochs: 1, batch: 10}
"""
TEXT = """\
gradcli: 1
name: words
data: {name: text, file: words.txt, context: 8}
model: [embed: 8, linear: $data.vocab]
loss: cross_entropy
metrics: [perplexity]
optim: {name: adam, lr: 0.01}
train: {epochs: 1, batch: 8}
"""


def flowers() -> list[str]:
    """300 of them, some with a gap."""
    draw = random.Random(3)
    lines = ["length,width,place,kind"]
    for number in range(300):
        length, place = 30 + draw.random() * 20, draw.choice(["north", "south"])
        width = length / 3 + draw.random()
        kind = "long" if length > 40 + draw.gauss(0, 2) else "short"
        cell = "" if number % 50 == 0 else f"{length:.1f}"
        lines.append(f"{cell},{width:.2f},{place},{kind}")
    return lines


@pytest.fixture
def table(gradcli) -> list[str]:
    lines = flowers()
    Path("flowers.csv").write_text("\n".join(lines) + "\n")
    Path("flowers.yaml").write_text(FLOWERS)
    Path("houses.yaml").write_text(HOUSES)
    return lines


def run_of(name: str) -> Path:
    (path,) = Path("runs", name).iterdir()
    return path


def evaluation(run: Path) -> Any:
    return json.loads((run / "evaluation.json").read_text(), parse_constant=pytest.fail)


def files(run: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(run.glob("evaluation.*"))]


def log_loss(scores: list[float], label: int) -> float:
    largest = max(scores)
    return math.log(sum(math.exp(one - largest) for one in scores)) + largest - scores[label]


def test_classes_have_confusion_outputs_and_the_most_wrong_rows(gradcli, table) -> None:
    metrics = gradcli("train", "flowers.yaml", "--json").json["metrics"]
    run = run_of("flowers")
    found, tensors = evaluation(run), load_tensors(run / "evaluation.safetensors")
    assert {key: found[key] for key in ("format", "split", "task", "samples", "rows")} == {
        "format": 1, "split": "test", "task": "classes", "samples": 30, "rows": 30
    }  # fmt: skip
    assert found["step"] == json.loads((run / "status.json").read_text())["measured_step"]
    assert tensors.metadata == {"step": str(found["step"]), "split": "test"}
    assert found["metrics"] == {k: v for k, v in metrics.items() if k.startswith("test.")}
    assert (found["classes"], found["outputs"]) == (["long", "short"], None)
    assert found["columns"] == ["length", "width", "place"]
    matrix = found["confusion"]
    assert sum(map(sum, matrix)) == 30
    assert (matrix[0][0] + matrix[1][1]) / 30 == pytest.approx(metrics["test.accuracy"])
    scores, labels = tensors["outputs"].tolist(), tensors["targets"].tolist()
    assert tensors["index"].tolist() == list(range(30))
    losses = [log_loss(*one) for one in zip(scores, labels, strict=True)]
    order = sorted(range(30), key=lambda i: -losses[i])
    assert [one["index"] for one in found["worst"]] == order[:24]
    for one in found["worst"]:
        index = one["index"]
        assert one["loss"] == pytest.approx(losses[index], abs=1e-5)
        assert one["truth"] == labels[index]
        assert one["guess"] == scores[index].index(max(scores[index]))
        assert one["certainty"] == pytest.approx(math.exp(-log_loss(scores[index], one["guess"])))
    assert tensors["worst_inputs"].shape == (24, 4)
    assert found["pictures"] is False


def test_rows_are_as_the_table_has_them(gradcli, table) -> None:
    gradcli("train", "flowers.yaml")
    lines = {line.rpartition(",")[0] for line in table}
    for one in evaluation(run_of("flowers"))["worst"]:
        row = one["row"]
        cells = f"{row['length']},{row['width']:.2f},{row['place']}"
        assert cells in lines or f",{row['width']:.2f},{row['place']}" in lines


def test_values_are_in_the_units_of_the_table(gradcli, table) -> None:
    metrics = gradcli("train", "houses.yaml", "--json").json["metrics"]
    run = run_of("houses")
    found, tensors = evaluation(run), load_tensors(run / "evaluation.safetensors")
    assert (found["task"], found["split"], found["outputs"]) == ("values", "val", ["width"])
    assert found["classes"] is None
    assert "confusion" not in found
    pairs = [
        (truth, guess)
        for (truth,), (guess,) in zip(
            tensors["targets"].tolist(), tensors["outputs"].tolist(), strict=True
        )
    ]
    assert all(10 <= truth <= 18 for truth, _ in pairs)
    mean = sum(abs(truth - guess) for truth, guess in pairs) / len(pairs)
    assert mean == pytest.approx(metrics["val.mae"], rel=1e-5)
    first = found["worst"][0]
    assert (first["truth"], first["guess"]) == pytest.approx(pairs[first["index"]], rel=1e-5)
    largest = max(abs(truth - guess) for truth, guess in pairs)
    assert abs(first["truth"] - first["guess"]) == pytest.approx(largest, abs=1e-3)


@pytest.mark.parametrize("best", ["val.loss", "null"])
def test_the_measured_weights_are_looked_at(gradcli, table, best: str) -> None:
    """Those of the best checkpoint, and of the average."""
    keys = ("-s", f"train.best={best}", "-s", "optim.lr=0.1", "-s", "train.ema=0.1")
    ended = gradcli("train", "houses.yaml", "--json", *keys).json
    assert (ended["measured_step"] < ended["steps"]) == (best != "null")
    run = run_of("houses")
    found, tensors = evaluation(run), load_tensors(run / "evaluation.safetensors")
    assert found["step"] == ended["measured_step"]
    pairs = zip(tensors["targets"].tolist(), tensors["outputs"].tolist(), strict=True)
    errors = [abs(truth - guess) for (truth,), (guess,) in pairs]
    assert sum(errors) / len(errors) == pytest.approx(ended["metrics"]["val.mae"], rel=1e-5)


def test_pictures_are_as_before_normalisation(gradcli) -> None:
    labels = idx_bytes.labels(tuple(i % 3 for i in range(40)))
    idx_bytes.write(Path(), images=idx_bytes.images(40, 8), labels=labels)
    Path("pictures.yaml").write_text(PICTURES)
    assert gradcli("train", "pictures.yaml").code == 0
    run = run_of("pictures")
    found, tensors = evaluation(run), load_tensors(run / "evaluation.safetensors")
    assert (found["task"], found["pictures"], len(found["worst"])) == ("images", True, 10)
    inputs, targets = tensors["worst_inputs"], tensors["worst_targets"]
    assert inputs.shape == tensors["worst_outputs"].shape == (10, 1, 8, 8)
    assert inputs.tolist() == targets.tolist()
    pixels = [round(255 * pixel) for pixel in inputs[0].reshape(-1).tolist()]
    first = pixels[0]
    assert pixels == [(first + i) % 256 for i in range(64)]  # as the file has them


def test_a_text_has_figures_alone(gradcli) -> None:
    Path("words.txt").write_text("the cat sat on the mat\n" * 40)
    Path("words.yaml").write_text(TEXT)
    metrics = gradcli("train", "words.yaml", "--json").json["metrics"]
    run = run_of("words")
    found = evaluation(run)
    assert (found["task"], found["rows"], found["worst"]) == ("text", 0, [])
    assert found["metrics"] == metrics
    assert not (run / "evaluation.safetensors").exists()


def test_a_look_changes_no_figure_and_no_weight(gradcli, table, monkeypatch) -> None:
    with_look = gradcli("train", "flowers.yaml", "--json").json
    monkeypatch.setattr(CloseLook, "of_batch", lambda *_: {})
    without = gradcli("train", "flowers.yaml", "--json").json
    for key in ("weights_sha256", "metrics"):
        assert with_look[key] == without[key]


def test_a_stopped_and_resumed_run_has_the_same_files(gradcli, table, monkeypatch) -> None:
    assert gradcli("train", "flowers.yaml", "--runs", "whole").code == 0
    (whole,) = Path("whole/flowers").iterdir()
    signalled = []

    def begin(look: CloseLook) -> None:  # of the last evaluation
        if not signalled:
            signalled.append(os.kill(os.getpid(), signal.SIGTERM))
        usual(look)

    usual = CloseLook.begin
    gradcli("train", "flowers.yaml", "--max-steps", "4")
    run = run_of("flowers")
    assert evaluation(run)["step"] == 4
    monkeypatch.setattr(CloseLook, "__init__", unbegun)
    monkeypatch.setattr(CloseLook, "begin", begin)
    assert gradcli("resume", "last").code == 75
    assert not files(run)
    assert gradcli("resume", "last").code == 0
    assert files(run) == files(whole)


made = CloseLook.__init__


def unbegun(look: CloseLook, *arguments: Any) -> None:
    """Without its own call of `begin`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CloseLook, "begin", lambda _: None)
        made(look, *arguments)


KILLED = """\
import os, sys
from pathlib import Path
from gradcli.cli.main import run

replace = Path.replace

def killed(path, target):
    if target.name == sys.argv[1]:
        os._exit(137)
    return replace(path, target)

Path.replace = killed
run(sys.argv[2:])
"""


@pytest.mark.parametrize("name", ["evaluation.json", "evaluation.safetensors"])
def test_a_kill_before_a_file_stands_costs_nothing(gradcli, table, name: str) -> None:
    assert gradcli("train", "flowers.yaml", "--runs", "whole").code == 0
    (whole,) = Path("whole/flowers").iterdir()
    root = str(Path(engine.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, name, "train", "flowers.yaml"],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 137
    run = run_of("flowers")
    assert not (run / "evaluation.json").exists()
    assert gradcli("resume", "last").code == 0
    assert files(run) == files(whole)
    assert not list(run.rglob("*.tmp"))


@pytest.mark.parametrize("name", ["evaluation.json", "evaluation.safetensors"])
def test_a_full_disk_costs_the_files_alone(gradcli, table, monkeypatch, name: str) -> None:
    """Row 84."""
    before = gradcli("train", "flowers.yaml", "--json").json["weights_sha256"]

    def full(path: Path, *arguments: Any, **options: Any) -> None:
        if path.name == name:
            raise OSError(28, os.strerror(28))
        usual(path, *arguments, **options)

    writer = "write_text" if name.endswith("json") else "write_file"
    usual = getattr(atomic, writer)
    monkeypatch.setattr(directory, writer, full)
    ended = gradcli("train", "flowers.yaml", "-s", "name=full")
    assert ended.code == 0
    assert before in ended.out
    (line,) = [line for line in ended.err.splitlines() if "evaluation.json" in line]
    assert line.startswith("warning: evaluation.json is not written: cannot write in runs/full/")
    run = run_of("full")
    assert not files(run)
    assert json.loads((run / "status.json").read_text())["status"] == "finished"


def test_a_dataset_that_cannot_be_looked_at_costs_nothing(gradcli, table, monkeypatch) -> None:
    def finish(look: CloseLook) -> None:
        raise ValueError("no such samples")

    monkeypatch.setattr(CloseLook, "finish", finish)
    ended = gradcli("train", "flowers.yaml")
    assert ended.code == 0
    lines = [line for line in ended.err.splitlines() if line.startswith("warning: a report")]
    assert [line.partition("evaluation ")[2] for line in lines] == [
        "sees: ValueError: no such samples",  # tried before the first step
        "saw: ValueError: no such samples",
    ]
    assert ended.err.index(lines[0]) < ended.err.index("step  1/") < ended.err.index(lines[1])
    assert not files(run_of("flowers"))


def test_a_run_that_failed_has_no_evaluation(gradcli, table) -> None:
    assert gradcli("train", "flowers.yaml", "-s", "optim={name: sgd, lr: 1e30}").code == 5
    assert not files(run_of("flowers"))
