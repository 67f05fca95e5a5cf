"""Forks as values: one for each step that was made with other ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from gradcli.train.forks import Fork, changes, of_run, with_changes, with_forks

LR = Fork(4, ["optim.lr"], {"optim.lr": 0.05}, {"optim.lr": 0.5})


def change(step: int, old: object, new: object, key: str = "optim.lr") -> Fork:
    """A change of one key; None means that it is not there."""
    sides = ({} if value is None else {key: value} for value in (old, new))
    return Fork(step, [key], *sides)


def nothing(step: int) -> Fork:
    return Fork(step, [], {}, {})


def test_a_change_behind_a_fork_is_a_second_one() -> None:
    later = change(9, 0.5, 0.1)
    assert with_changes([LR], 9, later) == [LR, later]
    assert with_changes([LR], 9, nothing(9)) == [LR]


def test_changes_at_one_step_are_one_fork() -> None:
    assert with_changes([LR], 4, change(4, 0.5, 0.1)) == [change(4, 0.05, 0.1)]
    both = with_changes([LR], 4, change(4, None, 1.0, "train.clip"))
    [fork] = both
    assert fork.keys == ["optim.lr", "train.clip"]
    assert (fork.old, fork.new) == ({"optim.lr": 0.05}, {"optim.lr": 0.5, "train.clip": 1.0})


def test_a_change_that_is_taken_back_at_its_step_is_none() -> None:
    assert with_changes([LR], 4, change(4, 0.5, 0.05)) == []
    clip = change(4, None, 1.0, "train.clip")
    assert with_changes([clip], 4, change(4, 1.0, None, "train.clip")) == []


def test_forks_beyond_the_step_become_one_at_it() -> None:
    later = change(9, 0.5, 0.1)
    assert with_changes([LR, later], 6, nothing(6)) == [LR, change(6, 0.5, 0.1)]
    assert with_changes([LR, later], 2, nothing(2)) == [change(2, 0.05, 0.1)]


def test_forks_lie_over_a_config_and_leave_it_alone() -> None:
    config = {"optim": {"lr": 0.05}, "train": {"clip": 2.0}, "schedule": {"name": "constant"}}
    clip = change(5, 2.0, None, "train.clip")
    cosine = change(6, {"name": "constant"}, {"name": "cosine"}, "schedule")
    assert with_forks(config, [LR, clip, cosine]) == {
        "optim": {"lr": 0.5},
        "train": {},
        "schedule": {"name": "cosine"},
    }
    assert config["optim"] == {"lr": 0.05}


def test_changes_are_what_a_config_lacks_of_forks() -> None:
    forks = [LR, change(6, None, 1.0, "train.clip"), change(7, 2.0, None, "train.clip_value")]
    before = {"optim": {"lr": 0.05}, "train": {"clip": 1.0, "clip_value": 2.0}}
    assert changes(before, forks) == {"optim.lr": 0.5, "train.clip_value": None}
    assert changes(with_forks(before, forks), forks) == {}


def test_forks_are_read_from_the_manifest(tmp_path: Path) -> None:
    assert of_run(tmp_path) == []
    (tmp_path / "manifest.json").write_text(json.dumps({"forks": [asdict(LR)]}))
    assert of_run(tmp_path) == [LR]
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    assert of_run(tmp_path) == []
