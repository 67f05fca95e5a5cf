"""Comparing with an earlier measurement: what counts, what is refused, and in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradcli.bench import against
from gradcli.errors import ConfigError, ExpectationError

NOW: dict[str, Any] = {
    "format": against.FORMAT,
    "name": "tiny",
    "batch": 8,
    "device": "cpu",
    "instruction_set": "avx2",
    "threads": 2,
    "steps": {"eager": {"ms": 2.0}, "captured": {"ms": 1.0}, "torch eager": {"ms": 9.0}},
    "layers": [{"name": "0 linear 4", "ms": 0.5}, {"name": "1 relu", "ms": 0.1}],
}


OLD = Path("old.json")


def written(path: Path, found: object) -> Path:
    path.write_text(found if isinstance(found, str) else json.dumps(found), encoding="utf-8")
    return path


def earlier(**changes: Any) -> dict[str, Any]:
    return {**NOW, **changes}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "it is no JSON"),
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[1, 2]", 'it has no "format"'),
        ("3", 'it has no "format"'),
        ({"format": "gradcli bench 0"}, 'it has no "format"'),
        ({"format": against.FORMAT}, "it has no times"),
        ({"format": against.FORMAT, "steps": []}, "it has no times"),
        ({"format": against.FORMAT, "steps": {"eager": 3}}, "it has no times"),
        ({"format": against.FORMAT, "steps": {"eager": {"ms": "3"}}}, "it has no times"),
        ({"format": against.FORMAT, "steps": {"eager": {"ms": 0}}}, "it has no times"),
        ({"format": against.FORMAT, "steps": {"eager": {"ms": True}}}, "it has no times"),
        ({"format": against.FORMAT, "items": [3, {"name": "x"}]}, "it has no times"),
        ('{"format": "gradcli bench 1", "steps": {"eager": {"ms": NaN}}}', "it has no times"),
        ({"format": against.FORMAT, "steps": {"eager": {"ms": 10**400}}}, "it has no times"),
    ],
)
def test_a_file_that_is_no_measurement_is_refused(
    tmp_path: Path, content: object, why: str
) -> None:
    path = written(tmp_path / "old.json", content)
    with pytest.raises(ConfigError, match="is not what `gradcli bench --json` prints") as caught:
        against.read(path)
    assert why in caught.value.message
    assert caught.value.exit_code == 2


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(ConfigError, match="it is no JSON"):
        against.read(path)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.json", "No such file"), (tmp_path, "directory")):
        with pytest.raises(ConfigError, match=f"cannot read .*{why}"):
            against.read(path)


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against, "LARGEST", 10)
    with pytest.raises(ConfigError, match="larger than 10 bytes"):
        against.read(written(tmp_path / "old.json", NOW))


@pytest.mark.parametrize(
    ("key", "value"),
    [("threads", 1), ("batch", 16), ("name", "other"), ("instruction_set", "avx512")],
)
def test_other_conditions_are_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"was measured with {key} {value}, this is {key}"):
        against.same_conditions(OLD, earlier(**{key: value}), NOW)
    against.same_conditions(OLD, NOW, NOW)


def test_the_steps_count_and_those_of_pytorch_do_not() -> None:
    before = earlier(steps={"eager": {"ms": 1.0}, "torch eager": {"ms": 1.0}})
    assert [(f.name, f.percent) for f in against.compared(OLD, before, NOW)] == [("eager", 100.0)]


def test_kernels_are_compared_by_name() -> None:
    before = {"items": [{"name": "exp", "ms": 1.0}, {"name": "gone", "ms": 1.0}]}
    now = {"items": [{"name": "exp", "ms": 0.5}, {"name": "new", "ms": 1.0}]}
    assert [(f.name, f.percent) for f in against.compared(OLD, before, now)] == [("exp", -50.0)]


def check(before: dict[str, Any], tolerance: float) -> None:
    figures, inside = against.compared(OLD, before, NOW), against.layers(before, NOW)
    against.check(OLD, figures, inside, tolerance)


def test_a_slower_step_names_the_layers_that_are() -> None:
    before = earlier(
        steps={"eager": {"ms": 2.0}, "captured": {"ms": 0.8}},
        layers=[{"name": "0 linear 4", "ms": 0.3}, {"name": "1 relu", "ms": 0.1}],
    )
    with pytest.raises(ExpectationError) as caught:
        check(before, 5.0)
    assert caught.value.exit_code == 6
    assert (
        "1 of 2 times more than 5% above old.json: captured: 1.0000 ms, was 0.8000 ms (+25.0%)"
        in (caught.value.message)
    )
    assert caught.value.notes == ("0 linear 4: 0.5000 ms, was 0.3000 ms (+66.7%)",)


def test_the_tolerance_and_faster_times_pass() -> None:
    check(earlier(steps={"eager": {"ms": 1.95}, "captured": {"ms": 3.0}}), 5.0)
    check(earlier(steps={"captured": {"ms": 0.8}}), 25.1)


def test_slower_layers_alone_are_no_failure() -> None:
    check(earlier(layers=[{"name": "1 relu", "ms": 0.01}]), 5.0)
