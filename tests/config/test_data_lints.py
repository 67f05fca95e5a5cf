"""W116 and W117: data that trains and is probably not meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradcli.config.load import load

TEXT = """\
gradcli: 1
data: {DATA}
model: [flatten, linear: OUT]
loss: LOSS
optim: adam
train: {epochs: 1, batch: 4}
"""


def warnings(folder: Path, data: str, loss: str = "mse", out: str = "1") -> list[Any]:
    """Those of a config with this data."""
    text = TEXT.replace("{DATA}", data).replace("LOSS", loss).replace("OUT", out)
    (folder / "c.yaml").write_text(text)
    return list(load(folder / "c.yaml").warnings)


def table(folder: Path, count: int) -> str:
    rows = "".join(f"{n % 7},{n % 5}\n" for n in range(count))
    (folder / "t.csv").write_text("x,y\n" + rows)
    return "{name: csv, file: t.csv, target: y, task: regression, numeric: [x], split: SPLIT}"


def array(folder: Path, count: int) -> str:
    np: Any = pytest.importorskip("numpy", reason="of the extra 'parity'")
    np.savez(folder / "t.npz", x=np.zeros((count, 3), "f4"), y=np.zeros((count, 1), "f4"))
    return "{name: npz, file: t.npz, inputs: x, targets: y, split: SPLIT}"


def idx(folder: Path, count: int) -> str:
    size = count.to_bytes(4, "big")
    (folder / "i").write_bytes(b"\0\0\x08\2" + size + b"\0\0\0\2" + bytes(2 * count))
    (folder / "l").write_bytes(b"\0\0\x08\1" + size + bytes(n % 2 for n in range(count)))
    return "{name: idx, images: i, labels: l, split: SPLIT}"


def cifar(folder: Path, count: int) -> str:
    for name, rows in (("train.bin", count), ("test.bin", 2)):
        (folder / name).write_bytes(bytes(3074 * rows))
    return f"{{name: cifar100, dir: {folder}, split: SPLIT}}"


def pictures(folder: Path, count: int) -> str:
    for name in ("a", "b"):
        (folder / "p" / name).mkdir(parents=True)
    for n in range(count):
        (folder / "p" / "ab"[n % 2] / f"{n}.png").touch()
    return "{name: image_folder, dir: p, size: 4, split: SPLIT}"


@pytest.mark.parametrize("write", [table, array, idx, cifar, pictures])
@pytest.mark.parametrize(
    ("count", "split", "message", "cure"),
    [
        (130, "{train: 80, val: 20}", "takes 100 of 130", "{train: 80%, val: 20%}"),
        (100, "{train: 80, val: 20}", None, None),
        (130, "{train: 80%, val: 20%}", None, None),
        (130, "{train: 10%, val: 5%}", None, None),
        (130, "{train: 50, val: 14}", "leaves 66 of 130", "percents such as 80% go by all"),
        (130, "{train: 50, val: 15}", None, None),
    ],
)
def test_counts_that_are_hardly_meant_are_warned_of(
    tmp_path: Path,
    write: Callable[[Path, int], str],
    count: int,
    split: str,
    message: str | None,
    cure: str | None,
) -> None:
    data = write(tmp_path, count).replace("SPLIT", split)
    values = "csv" in data or "npz" in data
    loss, out = ("mse", "1") if values else ("cross_entropy", "$data.classes")
    told = [one for one in warnings(tmp_path, data, loss, out) if one.code == "W116"]
    assert len(told) == (message is not None)
    if message and cure:
        assert f"data.split {message} samples" in told[0].message
        assert cure in told[0].caret
        assert told[0].location.text[told[0].location.column - 1 :].startswith("split:")


SERIES = "{name: csv, file: t.csv, target: y, task: regression, window: 3, KEYS}"
DAYS = [f"2024-{1 + n // 28:02}-{1 + n % 28:02}" for n in range(60)]
HOURS = [f"{day}T{hour:02}:30:00Z" for day in DAYS for hour in range(24)]


def series(folder: Path, times: Sequence[str], name: str = "t.csv") -> None:
    rows = [f"{time},{n % 7},{n % 5}" for n, time in enumerate(times)]
    (folder / name).write_text("\n".join(["when,x,y", *rows]) + "\n")


def falls(folder: Path, keys: str = "numeric: [x]") -> list[str]:
    """What is said of the order of the series."""
    told = warnings(folder, SERIES.replace("KEYS", keys))
    assert {one.code for one in told} <= {"W117"}
    return [one.message.partition("of time: ")[2] for one in told]


@pytest.mark.parametrize("keys", ["numeric: [x]", "seed: 0"])
@pytest.mark.parametrize(
    ("times", "where"),
    [
        (DAYS[::-1], "falls from 2024-03-04 to 2024-03-03 in row 3 of"),
        ([*HOURS, HOURS[-2]], "falls from 2024-03-04 23:30:00 to 2024-03-04 22:30:00 in row 1442"),
        ([*DAYS[:30], "", DAYS[3], *DAYS[30:]], "falls from 2024-02-02 to 2024-01-04 in row 33"),
        ([f"{hour[:-1]}+01:00" for hour in reversed(HOURS)], "falls from 2024-03-04 23:30:00 to"),
    ],
    ids=["newest first", "late", "a gap", "zone"],
)
def test_a_series_that_goes_back_in_time_is_warned_of(
    tmp_path: Path, times: list[str], where: str, keys: str
) -> None:
    series(tmp_path, times)
    [told] = falls(tmp_path, keys)
    assert told.startswith(f"'when' {where}")


@pytest.mark.parametrize(
    "times",
    [
        DAYS,
        HOURS,
        [day for day in DAYS for _ in range(3)],
        [f"day {n}" for n in range(60, 0, -1)],
        [*DAYS[::-1][:40], *["soon"] * 20],
        ["2024-10-27T02:30+02:00", "2024-10-27T02:00+01:00", "2024-10-27T03:00+01:00"]
        + [f"2024-10-{day}T00:00+01:00" for day in range(28, 32)],
        [str(n) for n in range(60, 0, -1)],
    ],
    ids=["days", "hours", "equal", "words", "not all", "clocks go back", "numbers"],
)
def test_a_series_in_order_or_without_times_is_not(tmp_path: Path, times: list[str]) -> None:
    series(tmp_path, times)
    keys = "numeric: [x], split: {train: 100%}"
    assert falls(tmp_path, keys) == []


def test_a_column_that_rises_says_the_order(tmp_path: Path) -> None:
    rows = [
        f"{seen},{when},{n % 7},{n % 5}"
        for n, (seen, when) in enumerate(zip(DAYS[::-1], DAYS, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["seen,when,x,y", *rows]) + "\n")
    assert falls(tmp_path) == []


def test_each_file_is_a_series_of_its_own(tmp_path: Path) -> None:
    for name in ("t1.csv", "t2.csv"):
        series(tmp_path, DAYS, name)
    keys = "numeric: [x]"
    parts = SERIES.replace("KEYS", keys).replace("t.csv", '"t*.csv"')
    assert warnings(tmp_path, parts) == []
    series(tmp_path, DAYS[::-1], "t2.csv")
    [told] = warnings(tmp_path, parts)
    assert "in row 3 of" in told.message
    assert told.message.endswith("t2.csv")


def test_a_prepared_series_is_warned_of_at_each_start(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("gradcli.data.csv.small", lambda *paths: False)
    series(tmp_path, DAYS[::-1])
    keys = f"numeric: [x], cache: {tmp_path / 'cache'}"
    assert len(falls(tmp_path, keys)) == len(falls(tmp_path, keys)) == 1
