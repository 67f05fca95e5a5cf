"""A time series in several files: no window crosses from one to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.csv import CsvSource
from gradcli.data.dataset import LaterInputs
from gradcli.errors import DataError

LENGTHS = (20, 3, 9, 8)  # of the files; the second one has no whole sample
SPLIT = {"train": "50%", "val": "30%", "test": "20%"}


def days(folder: Path, lengths: tuple[int, ...] = LENGTHS, **options: Any) -> CsvSource:
    """Row i of file k: k, i and the target 100 k + i."""
    for day, rows in enumerate(lengths):
        lines = [f"{day},{row},{100 * day + row}" for row in range(rows)]
        (folder / f"day{day}.csv").write_text("\n".join(["day,step,y", *lines]) + "\n")
    keys = {
        "file": "day*.csv",
        "target": "y",
        "task": "regression",
        "numeric": ("day", "step"),
        "standardize": False,
        "window": 3,
        "split": SPLIT,
        "cache": str(folder / "cache"),
    }
    return CsvSource(**{**keys, **options}).locate(folder)


def samples(source: CsvSource) -> dict[str, list[tuple[Any, Any]]]:
    splits = source.load().splits
    return {
        name: [
            (inputs.tolist(), targets.tolist())
            for one in range(split.size)
            for inputs, targets in [split.batch(engine.tensor([one]))]
        ]
        for name, split in splits.items()
    }


def test_a_sample_is_of_one_file_and_none_is_left_out(tmp_path: Path) -> None:
    rows = [(day, row) for day, count in enumerate(LENGTHS) for row in range(count)]
    parts = {"train": rows[:20], "val": rows[20:32], "test": rows[32:]}
    for name, some in samples(days(tmp_path, horizon=2)).items():
        part, expected = parts[name], []
        for at in range(len(part) - 4):
            window, (day, row) = part[at : at + 3], part[at + 4]
            if window[0] == (day, row - 4):
                expected.append(
                    ([[[float(a), float(b)] for a, b in window]], [[100.0 * day + row]])
                )
        assert some == expected


def test_a_cut_inside_a_file_is_a_border_as_well(tmp_path: Path) -> None:
    source = days(tmp_path, split={"train": 10, "val": 21, "test": 9})
    facts = source.facts()
    assert facts.sizes == {"train": 7, "val": 7 + 5, "test": 5}
    assert source.load().facts.stretches == {"train": (10,), "val": (10, 3, 8), "test": (1, 8)}


def test_batches_are_those_of_single_samples(tmp_path: Path) -> None:
    source = days(tmp_path, channels="first")
    split: Any = source.load().splits["val"]
    inputs, targets = split.batch(engine.arange(split.size))
    single = samples(source)["val"]
    assert [[one] for one in inputs.tolist()] == [one for one, _ in single]
    assert [[one] for one in targets.tolist()] == [one for _, one in single]
    assert split.stored_targets.tolist() == targets.tolist()
    [(_, firsts, _), (_, lasts, _)] = split.spans(engine.arange(split.size))
    assert [last - first for first, last in zip(firsts, lasts, strict=True)] == [3] * split.size


def test_prepared_rows_and_those_of_test_files_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"test_file": "day*.csv", "split": {"train": 20, "val": 20}}
    for options in ({}, own):
        source = days(tmp_path, **options)
        with monkeypatch.context() as patch:
            direct, facts = samples(source), source.load().facts
            patch.setattr("gradcli.data.csv.small", lambda *paths: False)
            assert (samples(source), source.load().facts) == (direct, facts)
            assert (samples(source), source.facts()) == (direct, facts)
    assert len(direct["test"]) == 17 + 6 + 5


def test_the_outline_is_as_large_as_the_data(tmp_path: Path) -> None:
    source = days(tmp_path, channels="first")
    outline: Any = source.outline(source.facts())
    for name, split in source.load().splits.items():
        assert outline[name].size == split.size
        assert outline[name].rows.shape == split.rows.shape
        stretches = split.stretches and split.stretches.jumps.shape
        assert (outline[name].stretches and outline[name].stretches.jumps.shape) == stretches


def test_files_that_are_each_shorter_than_a_window_are_refused(tmp_path: Path) -> None:
    message = (
        r"the train split has 4 rows of one file at most; a window of 4 and a horizon of 1 "
        r"need at least 5 that lie in one file"
    )
    with pytest.raises(DataError, match=message):
        days(tmp_path, (4,) * 10, window=4).facts()


def test_windows_of_a_new_table_are_made_a_batch_at_a_time(tmp_path: Path) -> None:
    source = days(tmp_path, (3000,), file="day0.csv", window=200)
    unseen = source.load().read(tmp_path / "day0.csv")
    inputs = unseen.inputs
    assert isinstance(inputs, LaterInputs)
    assert inputs.shape == (2801, 200, 2)
    assert inputs[5:7].tolist() == inputs[:].tolist()[5:7]
    assert inputs[2799:5000].shape == (2, 200, 2)
