"""`code:`: a user's own metrics, from check to the best checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trusting import load

from gradcli.cli.main import run
from gradcli.errors import ErrorGroup

ROOT = Path(__file__).resolve().parents[2]
CONFIG, DATA, *_, CODE = re.findall(
    r"```(?:yaml|python)\n(.*?)```", (ROOT / "docs" / "own-code.md").read_text(), re.S
)
SHORT = ("-s", "train.epochs=3", "-s", "data.samples=80")
METRICS = "[accuracy, off_by_one, {off_by_one: {most: 0, name: exact}}, {f1: {name: f}}]"
Write = Callable[..., Path]
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def gradcli(capfd: pytest.CaptureFixture[str]) -> Command:
    def command(*arguments: str) -> tuple[int, str]:
        code = run(list(arguments))
        shown = capfd.readouterr()
        return code, shown.out + shown.err

    return command


@pytest.fixture
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The documents' rings, with the documents' metric."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gates.py").write_text(DATA)
    (tmp_path / "near.py").write_text(CODE)
    text = CONFIG.replace("code: gates.py ", "code: [gates.py, near.py] ")
    text = text.replace("metrics: [accuracy]", f"metrics: {METRICS}")
    text = text.replace("batch: 50}", "batch: 50, best: val.exact}")
    (tmp_path / "rings.yaml").write_text(text)
    return tmp_path / "rings.yaml"


def test_the_documents_metric_is_measured_captured_and_eager(gradcli: Command, rings: Path) -> None:
    ends = []
    for capture in ("true", "false"):
        code, shown = gradcli("train", str(rings), *SHORT, "-s", f"train.capture={capture}")
        assert code == 0, shown
        assert "eager" not in shown
        code, shown = gradcli("eval", "last", "--json", "--split", "val", "--checkpoint", "last")
        ends.append(json.loads(shown.splitlines()[0])["metrics"])
    assert ends[0] == ends[1]
    assert ends[0]["val.off_by_one"] == 1.0
    assert ends[0]["val.exact"] == ends[0]["val.accuracy"]


def test_a_state_that_asks_for_numbers_gives_the_same_figures(
    gradcli: Command, rings: Path
) -> None:
    found = []
    for code in (CODE, CODE.replace("near.sum()", "near.sum().item()")):
        (rings.parent / "near.py").write_text(code)
        assert gradcli("train", str(rings), *SHORT, "-s", "train.batch=3")[0] == 0
        _, shown = gradcli("eval", "last", "--json", "--split", "val")
        found.append(json.loads(shown.splitlines()[0])["metrics"])
    assert found[0] == found[1]
    assert 0 < found[0]["val.exact"] < 1


def test_its_keys_stand_in_the_resolved_config(rings: Path) -> None:
    config = load(rings)
    assert config.resolved["metrics"][1:3] == [
        {"off_by_one": {"most": 1}},
        {"off_by_one": {"most": 0, "name": "exact"}},
    ]
    assert config.train.best == "val.exact"


def test_a_merge_sees_the_batches_in_order(gradcli: Command, rings: Path) -> None:
    """The rows of 20 samples, in batches of 3: as one list."""
    (rings.parent / "near.py").write_text("""\
import gradcli
from gradcli import engine


@gradcli.metric
class OffByOne:
    direction = "neither"
    most: int = 1

    def state(self, outputs, targets):
        return {"rows": outputs[:, 0] * 0 + targets, "first": targets[:1].sum()}

    def merge(self, states):
        first = states[0]["first"]
        assert type(first) is int
        return {"rows": engine.cat([state["rows"] for state in states]), "first": first}

    def finish(self, state):
        rows = state["rows"].tolist()
        return state["first"] + sum((place + 1) * row for place, row in enumerate(rows))
""")
    more = ("-s", "train.best=val.loss", "-s", "train.batch=3")
    assert gradcli("train", str(rings), *SHORT, *more)[0] == 0
    _, shown = gradcli("eval", "last", "--json", "--split", "val")
    found = json.loads(shown.splitlines()[0])["metrics"]["val.off_by_one"]
    labels = (
        load(rings, ["data.samples=80", "train.best=val.loss"])
        .data.load()
        .splits["val"]
        .targets.tolist()
    )
    assert found == labels[0] + sum((place + 1) * label for place, label in enumerate(labels))


WRONG = [
    ("    def merge(self, states: list[dict])", "    def join(self, states)", "has no merge(self"),
    ("(self, state: dict) -> float", "(self)", "OffByOne must have finish(self, state): "),
    ('    direction = "higher"\n', "", "must have direction = 'higher', 'lower' or 'neither', got"),
    ('"higher"', '"up"', "must have direction = 'higher', 'lower' or 'neither', got 'up'"),
    ('targets = "labels"', 'targets = "tokens"', "has targets = 'tokens'; it must be 'labels'"),
    ("most: int = 1", "most: Integer = 1", "near.py:12: NameError: name 'Integer'"),
    (
        '{"near": near.sum(), "count": targets.numel()}',
        "near.sum()",
        "OffByOne.state must give a d",
    ),
    ("targets.numel()", "'many'", "OffByOne.state gives 'many' as 'count'; a state has tensors"),
    ("near.sum()", "near.sum", "OffByOne.state gives method as 'near'"),
    ("return {name: sum", "return {} and {name: sum", "OffByOne.merge must give a dict of tensors"),
    ('return state["near"] / state["count"]', "return [1]", "finish must give one number, got [1]"),
    ('state["near"] /', 'state["far"] /', "near.py:22: KeyError: 'far'"),
    ("outputs.argmax(1)", "outputs.argmux(1)", "near.py:15: AttributeError"),
    ("outputs.argmax(1)", "outputs[5]", "near.py:15: "),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_a_wrong_metric_is_one_sentence(rings: Path, old: str, new: str, message: str) -> None:
    assert old in CODE
    (rings.parent / "near.py").write_text(CODE.replace(old, new, 1))
    with pytest.raises(ErrorGroup) as caught:
        load(rings)
    found = caught.value.errors
    assert any(message in error.message for error in found), [error.message for error in found]
    assert all(error.location for error in found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("off_by_one, {", "unknown key 'least' in metric off_by_one"),
        ("most: 0", "metric off_by_one: most must be a whole number, got text 'few'"),
    ],
)
def test_its_keys_are_checked(rings: Path, change: str, message: str) -> None:
    new = "{off_by_one: {least: 1}}, {" if "{" in change else "most: few"
    rings.write_text(rings.read_text().replace(change, new))
    with pytest.raises(ErrorGroup) as caught:
        load(rings)
    assert message in caught.value.errors[0].message


def test_a_metric_of_values_is_refused_for_labels(rings: Path) -> None:
    (rings.parent / "near.py").write_text(CODE.replace('"labels"', '"values"'))
    with pytest.raises(ErrorGroup) as caught:
        load(rings)
    [first, *_] = caught.value.errors
    assert first.message == ("metric 'off_by_one' is for values, this data has labels as targets")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.best=val.exact", "train.best: metric 'exact' is better neither higher nor lower; "),
        (
            "train.early_stop={metric: val.exact}",
            "train.early_stop.metric: metric 'exact' is better neither higher nor lower; choose "
            "one that is: loss, accuracy, f",
        ),
        (
            "schedule={name: plateau, metric: val.exact}",
            "schedule.metric: metric 'exact' is better neither higher nor lower",
        ),
    ],
)
def test_what_is_better_neither_way_cannot_judge_and_can_be_expected(
    rings: Path, change: str, message: str
) -> None:
    (rings.parent / "near.py").write_text(CODE.replace('"higher"', '"neither"'))
    load(rings, ["train.best=val.loss", 'expect={val.exact: ">= 0.5"}'])
    changes = [change] if "best" in change else ["train.best=val.loss", change]
    with pytest.raises(ErrorGroup) as caught:
        load(rings, changes)
    assert caught.value.errors[0].message.startswith(message)


def test_what_divides_by_zero_is_not_defined(gradcli: Command, rings: Path) -> None:
    (rings.parent / "near.py").write_text(CODE.replace('state["count"]', '(0 * state["count"])'))
    assert gradcli("train", str(rings), *SHORT)[0] == 0
    _, shown = gradcli("eval", "last", "--json", "--split", "val")
    metrics = json.loads(shown.splitlines()[0])["metrics"]
    assert metrics["val.exact"] is None
    assert metrics["nonfinite"]["val.exact"] == "nan"


def test_what_fails_on_real_numbers_alone_is_told_with_its_line(
    gradcli: Command, rings: Path
) -> None:
    lines = (
        "near = (outputs.argmax(1)",
        "assert outputs.abs().sum() == 0\n        near = (outputs.argmax(1)",
    )
    (rings.parent / "near.py").write_text(CODE.replace(*lines))
    code, shown = gradcli("train", str(rings), *SHORT)
    assert (code, "near.py:15: AssertionError" in shown) == (2, True), shown
    assert "Traceback" not in shown
