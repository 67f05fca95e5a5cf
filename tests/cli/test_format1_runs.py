"""Runs that gradcli wrote before checkpoint format 2: resumed, evaluated and used as then."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from points import gradcli

from gradcli import load
from gradcli.engine.device import cpu
from gradcli.train import checkpoint

__all__ = ["gradcli"]

FOLDER = Path(__file__).parents[1] / "data" / "runs-format1"
WRITTEN_IN = "/data/runs-format1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
SAME_BITS = ("avx2", "avx512", "avx512bf16")  # those of the processor that wrote the runs
NAMES = pytest.mark.parametrize("name", EXPECTED)


@pytest.fixture
def old_runs(gradcli) -> None:
    """The runs, in `runs` of the current folder; resolved.yaml names the data's new place."""
    shutil.copytree(FOLDER / "runs", "runs")
    for path in Path("runs").glob("*/*/resolved.yaml"):
        path.write_text(path.read_text().replace(WRITTEN_IN, str(FOLDER)))


def same(figures: dict[str, float], expected: dict[str, float]) -> None:
    """Both have the same names and values, but for rounding on another instruction set."""
    exact = cpu.isa() in SAME_BITS
    assert figures == (expected if exact else pytest.approx(expected, rel=1e-4))


@NAMES
def test_resume_ends_in_the_weights_of_then(gradcli, old_runs, name: str) -> None:
    ended = gradcli("resume", name, "--json")
    assert ended.code == 0
    expected = EXPECTED[name]["resume"]
    assert ended.json["steps"] == expected["steps"]
    if ended.json["measured_step"] == expected["steps"]:  # figures were of the last step then
        same(ended.json["metrics"], expected["metrics"])
    if cpu.isa() in SAME_BITS:
        assert ended.json["weights_sha256"] == expected["weights_sha256"]


@NAMES
def test_its_old_checkpoints_stay_its_own_when_it_goes_on(gradcli, old_runs, name: str) -> None:
    (run,) = Path("runs", name).iterdir()
    old = (run / "last").read_text().removeprefix("step-").partition(".")[0]
    assert gradcli("resume", name, "-s", "train.keep=9").code == 0
    ended = gradcli("eval", f"{name}@{int(old)}", "--split", "val", "--json")
    assert (ended.code, ended.json["steps"]) == (0, int(old))
    assert gradcli("resume", name, "-s", "train.keep=8").code == 0


@NAMES
def test_an_old_run_can_fork(gradcli, old_runs, name: str) -> None:
    ended = gradcli("resume", name, "-s", "optim.lr=1e-6", "-s", "train.keep=9", "--json")
    assert (ended.code, ended.json["steps"]) == (0, EXPECTED[name]["resume"]["steps"])
    (manifest,) = Path("runs", name).glob("*/manifest.json")
    [fork] = json.loads(manifest.read_text())["forks"]
    assert (fork["keys"], fork["new"]) == (["optim.lr"], {"optim.lr": 1e-6})
    for which in (fork["step"], "last"):
        assert gradcli("eval", f"{name}@{which}", "--split", "val").code == 0


@NAMES
def test_eval_gives_the_figures_of_then(gradcli, old_runs, name: str) -> None:
    ended = gradcli("eval", name, "--split", "val", "--checkpoint", "last", "--json")
    assert ended.code == 0
    same(ended.json["metrics"], EXPECTED[name]["eval"])


ODD_STATES: list[dict[str, Any]] = [
    {"numeric": 5},
    {"numeric": [["area"]], "category": []},
    {"numeric": [["area", "x", 0, 1]], "category": []},
    {"numeric": [], "category": [["city", 3]]},
    {"numeric": [], "category": 3},
    {"numeric": []},
    {"labels": 3},
    {"missing": "perhaps"},
    {"input": "wide"},
    {"input": [0]},
    {"stored": 1, "input": [1, 8, 8]},
    {"mean": "x"},
    {"std": 0.0},
    {"std": [1, 2, 3]},
    {"unit": 7},
    {"unit": "words"},
    {"vocab": {"a": 1}},
    {"vocab": ["a"], "unit": "characters", "context": 8},
    {"context": "long"},
    {"context": -1},
]


@NAMES
def test_an_odd_state_is_refused_or_does_no_harm(gradcli, old_runs, name: str) -> None:
    """Each ends in an answer or in one sentence about the checkpoint."""
    (pointer,) = Path("runs", name).glob("*/last")
    path = pointer.parent / "checkpoints" / pointer.read_text().strip()
    found = checkpoint.read(path)
    new = ["--prompt", "the cat"] if name == "words" else [str(FOLDER / "data" / "houses.csv")]
    codes = set()
    for state in ODD_STATES:
        odd = replace(found.meta, state={**found.meta.state, **state})
        checkpoint.write(path.parent, odd, found.tensors)
        ended = gradcli("predict", name, *new, "--checkpoint", "last")
        codes.add(ended.code)
        assert ended.code in (0, 3, 7), (state, ended)
        assert ended.code != 7 or path.name in ended.err
    assert 7 in codes


def test_without_its_data_an_old_run_says_so(gradcli, old_runs) -> None:
    for path in Path("runs").glob("houses/*/resolved.yaml"):
        path.write_text(path.read_text().replace(str(FOLDER), "/gone"))
    ended = gradcli("predict", "houses", str(FOLDER / "data" / "houses.csv"))
    assert (ended.code, "does not exist" in ended.err) == (3, True)
    assert "if the data has moved, write its new place into" in ended.err
    assert "is of format 1 and holds no facts of the data" in ended.err


def test_an_old_run_that_keeps_a_best_checkpoint_is_measured_there(gradcli, old_runs) -> None:
    ended = gradcli("eval", "pictures", "--split", "val")
    assert "the best checkpoint, step 4; --checkpoint last is step 8" in ended.err
    for text, step in (("pictures", 4), ("pictures@best", 4), ("pictures@last", 8)):
        assert gradcli("eval", text, "--split", "val", "--json").json["measured_step"] == step


@pytest.mark.parametrize("name", ["houses", "pictures"])
def test_predict_answers_as_then(gradcli, old_runs, name: str) -> None:
    expected = EXPECTED[name]["predict"]
    files = dict.fromkeys(str(FOLDER / row["file"]) for row in expected)
    ended = gradcli("predict", name, *files, "--checkpoint", "last", "--json")
    assert ended.code == 0
    rows = ended.json["predictions"][: len(expected)]
    for row, old in zip(rows, expected, strict=True):
        assert (row["index"], row["name"]) == (old["index"], old["name"])
        assert row.get("label") == old.get("label")
        values = list(row.get("values", {}).values())  # by the name of the target since
        assert values == pytest.approx(old.get("values", []), rel=1e-4)
        assert row.get("probability", 0) == pytest.approx(old.get("probability", 0), rel=1e-4)


def test_a_resumed_old_run_leaves_its_data(gradcli, old_runs) -> None:
    assert gradcli("resume", "houses").code == 0
    new = str(FOLDER / "data" / "houses.csv")
    before = gradcli("predict", "houses@last", new)
    for path in Path("runs").glob("houses/*/resolved.yaml"):
        path.write_text(path.read_text().replace(str(FOLDER), "/gone"))
    after = gradcli("predict", "houses@last", new)
    assert (after.code, after.out) == (0, before.out)


def test_an_old_run_is_loaded_in_python(gradcli, old_runs) -> None:
    expected = EXPECTED["houses"]["predict"]
    model = load("houses@last")
    found = model.predict(FOLDER / expected[0]["file"])[: len(expected)]
    for row, old in zip(found, expected, strict=True):
        assert list(row["values"].values()) == pytest.approx(old["values"], rel=1e-4)


def test_a_prompt_goes_on_as_then(gradcli, old_runs) -> None:
    ended = gradcli("predict", "words", "--prompt", "the cat", "--tokens", "20", "--json")
    assert ended.code == 0
    assert ended.json["text"] == EXPECTED["words"]["predict"]


def test_an_old_config_is_read_as_configs_are(gradcli, old_runs) -> None:
    [run] = Path("runs/pictures").iterdir()
    text = (run / "resolved.yaml").read_text()
    assert "ema: 0.9\n" in text
    (run / "resolved.yaml").write_text(text.replace("ema: 0.9\n", "ema: 9e-1\n"))
    ended = gradcli("resume", "pictures", "--json")
    assert ended.json["steps"] == EXPECTED["pictures"]["resume"]["steps"], ended.err
    if cpu.isa() in SAME_BITS:
        assert ended.json["weights_sha256"] == EXPECTED["pictures"]["resume"]["weights_sha256"]
