"""Comparison with a revision of the past: what is compared, and how it is judged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import before, process, targets, workloads_calls
from benchmarks.__main__ import main
from benchmarks.medians import median_interval
from benchmarks.shipped import FOLDER
from benchmarks.tree import Tree, present

OLD = Tree("before", process.ROOT, sys.executable, process.ROOT)


def verdicts(**parts: Any) -> dict[str, bool | None]:
    result = {"bits": {}, "times": {}, **parts}
    return {verdict.what.partition(":")[0]: verdict.passed for verdict in targets.of_before(result)}


def test_the_interval_of_a_median_is_that_of_the_binomial() -> None:
    assert median_interval([float(i) for i in range(1, 21)]) == (6.0, 15.0)
    assert median_interval([3.0, 1.0]) == (1.0, 3.0)
    assert median_interval([2.0]) == (2.0, 2.0)


def test_a_tree_beside_itself_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    penguins = {"penguins": FOLDER / "penguins.yaml"}
    monkeypatch.setattr(before, "files", lambda long=True: penguins)
    lines: list[str] = []
    rows = before.weights(OLD, present(), True, lines.append)
    assert len(rows["penguins"]["now"]) == 64
    assert rows["penguins"]["same"]
    assert lines == ["  penguins: 2 steps, the same bits"]
    assert verdicts(bits=rows) == {"penguins": True}


def test_other_weights_and_a_new_config_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = {name: FOLDER / f"{name}.yaml" for name in ("penguins", "fresh")}
    monkeypatch.setattr(before, "files", lambda long=True: names)
    monkeypatch.setattr(before, "trained", lambda tree, config, steps: tree.name)
    rows = before.weights(OLD, present(), True, lambda line: None)
    assert rows["fresh"] == {"missing": "not in the revision"}
    assert verdicts(bits=rows) == {"penguins": False, "fresh": None}


def test_steps_and_calls_are_timed_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(folder: Path) -> list[before.Item]:
        call = before.Item("x + x", before.CALLS, {"do": "call", "name": "x + x"})
        absent = before.Item("absent", before.CALLS, {"do": "call", "name": "no such call"})
        return [call, absent]

    monkeypatch.setattr(before, "items", some)
    rows = before.times(OLD, present(), 2, lambda line: None)
    assert 0.1 < rows["x + x"]["low"] <= rows["x + x"]["ratio"] <= rows["x + x"]["high"] < 10
    assert rows["x + x"]["pairs"] == 2
    assert "no such call" in rows["absent"]["missing"]


def test_every_workload_is_an_item_in_both_modes_and_every_call_runs(tmp_path: Path) -> None:
    names = [item.name for item in before.items(tmp_path)]
    assert {f"W{i} {mode}" for i in range(1, 9) for mode in ("eager", "captured")} < set(names)
    assert len(names) == len(set(names)) == 16 + len(workloads_calls.CALLS)
    for name in workloads_calls.CALLS:
        workloads_calls.call(name, "eager").run(1)


def test_slower_by_more_than_two_percent_fails_and_noise_is_doubtful() -> None:
    rows = {
        "slow": {"ratio": 1.03, "low": 1.025, "high": 1.04},
        "noisy": {"ratio": 1.01, "low": 0.99, "high": 1.05},
        "fast": {"ratio": 0.9, "low": 0.8, "high": 1.0},
        "absent": {"missing": "fails"},
    }
    judged = {v.what.partition(":")[0]: v for v in targets.of_before({"bits": {}, "times": rows})}
    assert {n: v.passed for n, v in judged.items()} == {
        "slow": False,
        "noisy": True,
        "fast": True,
        "absent": None,
    }
    assert [name for name, v in judged.items() if v.doubtful] == ["noisy"]


def test_a_tree_whose_gradcli_is_another_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChildProcessError, match=r"before: gradcli is imported from .*gradcli$"):
        Tree("before", tmp_path, sys.executable, process.ROOT).check()


def test_an_unknown_revision_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.process.two_processors", list)
    result = CliRunner().invoke(main, ["before", "no-such-revision"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: git rev-parse --verify no-such-revision^{commit}: ")
