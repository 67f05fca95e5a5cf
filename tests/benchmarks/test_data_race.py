"""The race of readers: its rows, and how they are judged."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmarks import data, tables, targets


def start(seconds: float) -> dict[str, float]:
    return {"seconds": seconds, "to_last_step": seconds - 0.1, "anonymous_mb": 40.0}


FOUND: dict[str, Any] = {
    "rows": {
        "start": {"title": "start on 100 rows", "first": start(0.4), "second": start(0.4)},
        "csv 1M": {
            "title": "CSV, 1,000,000 rows",
            "bytes": 83_000_000,
            "first": start(8.0),
            "first with tables": start(2.0),
            "second": start(0.6),
            "peer": "pandas.read_csv",
            "peer_seconds": 0.8,
        },
        "bpe": {
            "title": "text, 100 characters as tokens",
            "bytes": 100,
            "first": start(2.5),
            "second": start(0.6),
            "peer": "tokenizers",
            "peer_seconds": 2.0,
        },
        "npy": {"title": ".npy", "bytes": 1, "first": start(1.0), "second": start(0.6)},
        "pictures": {"title": "4,000 JPEG files", "missing": "PIL is not installed"},
    },
    "waiting": {"mnist_cnn": 0.0012},
}
CHANGES = {
    "as it should be": ((), None, ""),
    "slow first": (("csv 1M", "first", "seconds"), 10.7, "seconds of the first start"),
    "slow with tables": (("csv 1M", "first with tables", "seconds"), 2.7, "with tables"),
    "large": (("csv 1M", "first", "anonymous_mb"), 251.0, "megabytes of the first start"),
    "slow second": (("csv 1M", "second", "seconds"), 0.71, "second start"),
    "slow encoding": (("bpe", "first", "seconds"), 2.9, "seconds of encoding"),
    "slow mapping": (("npy", "first", "to_last_step"), 1.4, "ten steps"),
    "not mapped": (("npy", "first", "anonymous_mb"), 1500.0, "beside the file"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_limits_are_those_of_a_user(change: str) -> None:
    found = deepcopy(FOUND)
    path, value, what = CHANGES[change]
    if path:
        name, way, key = path
        found["rows"][name][way][key] = value
    missed = [one.what for one in targets.VERDICTS["data"](found) if one.passed is False]
    assert len(missed) == bool(path) and all(what in one for one in missed)


def test_steps_that_wait_are_told() -> None:
    found = {**FOUND, "waiting": {"mnist_cnn": 0.03}}
    [missed] = [one.what for one in targets.VERDICTS["data"](found) if not one.passed]
    assert missed == "mnist_cnn, share that waits for data"


def test_the_table_has_every_row_and_what_is_missing() -> None:
    text = tables.TABLES["data"](FOUND)
    assert "| CSV, 1,000,000 rows | 83 | 8.00, 40 MB | 2.00, 40 MB | 0.600, 40 MB |" in text
    assert "0.800 (pandas.read_csv)" in text and "PIL is not installed" in text
    assert "mnist_cnn 0.12%" in text
    assert "first start with tables 2.00 s" in data.sentence(FOUND["rows"]["csv 1M"])


def test_memory_of_this_process_is_told() -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("the system does not tell the memory of a process in parts")
    assert 1e6 < data.anonymous(os.getpid()) < 1e11
    assert data.anonymous(2**22 + 1) == 0


@pytest.mark.parametrize("name", ["npy", "bpe"])
def test_a_quick_race_of_one_case(name: str) -> None:
    pytest.importorskip("numpy", reason="of the extra 'parity': it writes the data")
    lines: list[str] = []
    found = data.data([name], quick=True, say=lines.append)
    assert list(found["rows"]) == ["start", name] and found["waiting"] == {}
    row = found["rows"][name]
    assert row["bytes"] > 1_000_000 and row["peer_seconds"] > 0
    for way in ("first", "second"):
        assert 0 < row[way]["to_last_step"] <= row[way]["seconds"]
    assert "GB of data" in lines[0] and len(lines) == 3
