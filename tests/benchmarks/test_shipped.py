"""Trainings of configs to their `expect:`: what is kept of them, and how it is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import results, shipped, tables, targets

PENGUINS = shipped.FOLDER / "penguins.yaml"
DATA = shipped.ROOT / "datasets" / "penguins" / "penguins.csv"


def variant(folder: Path, expect: str) -> Path:
    path = folder / "short.yaml"
    path.write_text(
        f"gradcli: 1\nextends: {PENGUINS}\ndata: {{file: {DATA}}}\ntrain: {{epochs: 1}}\n"
        f"expect: {{test.accuracy: null, test.loss: '{expect}'}}\n"
    )
    return path


@pytest.mark.parametrize(("expect", "reached"), [("<= 5", True), ("<= 0.001", False)])
def test_a_row_says_what_was_expected_and_what_came(
    tmp_path: Path, expect: str, reached: bool
) -> None:
    row = shipped.trained(variant(tmp_path, expect))
    assert row["reached"] is reached
    assert row["expect"] == {"test.loss": expect}
    assert (row["epochs"], row["steps"]) == (1, 8)
    assert 0.1 < row["metrics"]["test.loss"] < 2.0
    assert row["seconds"] > 0.1
    (verdict,) = targets.VERDICTS["configs"]({"rows": {"short": row}})
    assert (verdict.passed, verdict.what) == (reached, "short, test.loss")
    assert ("reached" if reached else "MISSED") in shipped.sentence(row)
    shown = tables.TABLES["configs"]({"rows": {"short": row}})
    assert f"({expect}, {'yes' if reached else 'no'}) | 8 |" in shown


def test_a_config_without_its_data_takes_no_part(tmp_path: Path) -> None:
    path = tmp_path / "absent.yaml"
    path.write_text(f"gradcli: 1\nextends: {PENGUINS}\ndata: {{file: nowhere.csv}}\n")
    row = shipped.trained(path)
    assert "nowhere.csv" in row["missing"]
    assert targets.VERDICTS["configs"]({"rows": {"absent": row}}) == []
    assert "takes no part" in shipped.sentence(row)


def test_a_wrong_config_is_no_row(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        f"gradcli: 1\nextends: {PENGUINS}\ndata: {{file: {DATA}}}\nloss: cross_entrpy\n"
    )
    with pytest.raises(Exception, match="cross_entrpy"):
        shipped.trained(path)


def test_rows_stay_for_what_is_not_trained_now(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh: dict[str, Any] = {"missing": "fresh"}
    monkeypatch.setattr(shipped, "trained", lambda path: fresh)
    before = {"rows": {"mnist": {"missing": "old"}, "gone": {}, "penguins": {"missing": "old"}}}
    found = shipped.shipped({"penguins": PENGUINS}, before, lambda line: None)
    assert found["rows"] == {"mnist": {"missing": "old"}, "penguins": fresh}


def test_what_was_trained_is_there_and_reached_what_it_expects() -> None:
    found = results.newest(results.FOLDER, "configs")
    assert found is not None
    assert set(found["rows"]) <= set(shipped.files())
    for name, row in found["rows"].items():
        assert row["reached"], name


def test_a_model_of_text_is_trained_on_another_text_and_writes_on(tmp_path: Path) -> None:
    text = tmp_path / "play.txt"
    text.write_text("ROMEO:\nabcd\n" * 40)
    path = tmp_path / "letters.yaml"
    path.write_text(
        "gradcli: 1\ndata: {name: text, file: absent.txt, context: 8}\n"
        "model: [{embed: 8}, {gru: 8}, {linear: $data.vocab}]\nloss: cross_entropy\n"
        "optim: {name: adam, lr: 0.02}\ntrain: {steps: 3, batch: 8}\nexpect: {val.loss: '<= 9'}\n"
    )
    said: list[str] = []
    found = shipped.on_text({"letters": path}, text, said.append)
    row = found["rows"]["letters"]
    assert (row["reached"], len(row["sample"]["text"])) == (True, 300)
    assert found["text"]["file"] == "play.txt"
    assert "letters: reached: val.loss" in said[0]
    (verdict,) = targets.VERDICTS["text"](found)
    assert (verdict.passed, verdict.limit) == (True, 9.0)
    shown = tables.TABLES["text"](found)
    assert "## Models of play.txt" in shown
    assert f"```\nROMEO:{row['sample']['text']}\n```" in shown
