"""True and false keep their meaning when a table changes its format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.csv import CsvSource
from gradcli.data.transforms import row_inputs
from gradcli.errors import DataError

FLAGS = [n % 3 == 0 for n in range(40)]


def _csv(path: Path, words: tuple[str, str]) -> None:
    rows = [f"{n},{words[flag]},{n % 5}" for n, flag in enumerate(FLAGS)]
    path.write_text("\n".join(["n,flag,y", *rows]) + "\n")


def _json(path: Path) -> None:
    rows = [{"n": n, "flag": flag, "y": n % 5} for n, flag in enumerate(FLAGS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _parquet(path: Path) -> None:
    pa: Any = pytest.importorskip("pyarrow", reason="of the extra 'tables'")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    numbers = range(len(FLAGS))
    columns = {"n": list(numbers), "flag": FLAGS, "y": [n % 5 for n in numbers]}
    parquet.write_table(pa.table(columns), path)


FORMATS: dict[str, Callable[[Path], None]] = {
    "pandas' CSV": lambda path: _csv(path, ("False", "True")),
    "loud CSV": lambda path: _csv(path, ("FALSE", "TRUE")),
    "JSON lines": _json,
    "Parquet": _parquet,
}
USES: dict[str, dict[str, Any]] = {
    "number": {"task": "regression", "target": "y", "numeric": ("n", "flag")},
    "category": {"task": "regression", "target": "y", "numeric": ("n",), "category": ("flag",)},
    "class": {"target": "flag", "numeric": ("n",)},
    "value": {"task": "regression", "target": "flag", "numeric": ("n",)},
}


@pytest.mark.parametrize("trained", FORMATS)
@pytest.mark.parametrize("use", USES)
def test_a_table_of_any_format_gives_the_same_samples(
    tmp_path: Path, trained: str, use: str
) -> None:
    FORMATS[trained](tmp_path / "t.csv")
    keys = {"missing": "mean", "file": "t.csv", **USES[use]}
    loaded = CsvSource(**keys).locate(tmp_path).load()
    every = engine.arange(len(FLAGS))
    inputs, targets = loaded.read_split(tmp_path / "t.csv").split.batch(every)
    for name, write in FORMATS.items():
        write(tmp_path / "new")
        others = loaded.read_split(tmp_path / "new").split.batch(every)
        assert [one.tolist() for one in others] == [inputs.tolist(), targets.tolist()], name
    rows = [{"n": n, "flag": flag} for n, flag in enumerate(FLAGS)]
    assert row_inputs(rows, loaded.facts).tolist() == inputs.tolist()  # type: ignore[arg-type]


def test_a_column_of_truth_that_parquet_took_for_numbers_is_read_from_csv(tmp_path: Path) -> None:
    _parquet(tmp_path / "t.parquet")
    loaded = CsvSource(file="t.parquet", target="y", task="regression").locate(tmp_path).load()
    assert [column.name for column in loaded.facts.numeric] == ["flag"]  # type: ignore[attr-defined]
    _csv(tmp_path / "new.csv", ("False", "True"))
    new, old = (loaded.read(tmp_path / name).inputs[:] for name in ("new.csv", "t.parquet"))
    assert new.tolist() == old.tolist()


@pytest.mark.parametrize(
    ("known", "new"),
    [(("False", "True", "maybe"), "true"), (("Yes", "No"), "yes"), (("false", "true"), "t")],
)
def test_other_words_are_told_by_their_case(
    tmp_path: Path, known: tuple[str, ...], new: str
) -> None:
    rows = [f"{known[n % len(known)]},{n % 7}" for n in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["flag,y", *rows]) + "\n")
    keys: dict[str, Any] = {"target": "y", "task": "regression", "category": ("flag",)}
    loaded = CsvSource(file="t.csv", **keys).locate(tmp_path).load()
    (tmp_path / "new.csv").write_text(f"flag\n{known[0]}\n{new}\n")
    with pytest.raises(DataError, match=f"row 3.*unknown category '{new}'; known: "):
        loaded.read(tmp_path / "new.csv")
