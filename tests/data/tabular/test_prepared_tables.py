"""Tables that are prepared once, read once a start, and sorted where nobody names columns."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gradcli.data import csv, small_table
from gradcli.data.csv import CsvSource
from gradcli.data.dataset import LoadedData
from gradcli.data.facts import DataFacts
from gradcli.data.prepared import identity, progress
from gradcli.engine.device import meta
from gradcli.errors import DataError
from gradcli.train.facts import facts_of

ROWS = [f"{i},{(i * 7) % 11}.5,{'red' if i % 3 else 'blue'},note {i},{i % 4}" for i in range(60)]
TEXT = "row,size,color,note,y\n" + "\n".join(ROWS) + "\n"


@pytest.fixture
def source(tmp_path: Path) -> CsvSource:
    (tmp_path / "table.csv").write_text(TEXT)
    made = CsvSource(file="table.csv", target="y", cache="cache")
    return made.locate(tmp_path)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "small", lambda *paths: False)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The files that are read."""
    calls: list[Any] = []
    true = csv.open_files

    def open_files(files: Any, *rest: Any) -> Any:
        calls.append(files)
        return true(files, *rest)

    for module in (csv, small_table):
        monkeypatch.setattr(module, "open_files", open_files)
    return calls


def content(data: LoadedData) -> dict[str, Any]:
    splits: dict[str, Any] = data.splits
    return {
        name: (split.inputs.tolist(), split.targets.tolist(), split.targets.dtype)
        for name, split in splits.items()
    }


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_prepared_data_is_that_from_memory(
    source: CsvSource, monkeypatch: pytest.MonkeyPatch, opened: list[Any], task: Any
) -> None:
    source = replace(source, task=task)
    plain = source.load()
    monkeypatch.setattr(csv, "small", lambda *paths: False)
    opened.clear()
    assert vars(source.facts()) == vars(plain.facts)
    for _ in range(2):
        data = source.load()
        assert content(data) == content(plain)
        assert vars(data.facts) == vars(plain.facts)
        assert (dict(data.sha256), data.notes) == (plain.sha256, plain.notes)
        assert (data.files, data.state) == (plain.files, plain.state)
    assert len(opened) == 1


def test_prepared_data_is_outlined_as_mapped(
    source: CsvSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = source.facts()

    def taken() -> int:
        before = meta.DEVICE.allocated
        outline = source.outline(facts)
        assert {name: split.size for name, split in outline.items()} == facts.sizes
        return meta.DEVICE.allocated - before

    assert taken() > 0
    monkeypatch.setattr(csv, "small", lambda path: False)
    assert taken() == 0


def test_a_small_table_is_read_once_a_start(source: CsvSource, opened: list[Any]) -> None:
    source.facts()
    replace(source, target_scale="none").load()
    assert len(opened) == 1
    source.load()
    assert len(opened) == 2  # it was forgotten


def test_an_edited_table_is_read_again(source: CsvSource, opened: list[Any]) -> None:
    source.facts()
    Path(source.file).write_text(TEXT + TEXT.partition("\n")[2])
    assert sum(source.facts().sizes.values()) == 120
    assert len(opened) == 2


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"missing": "mean"}, {"numeric": ("size",)}, {"standardize": False}]
)
def test_other_keys_are_another_set(
    source: CsvSource, opened: list[Any], change: dict[str, Any]
) -> None:
    source.load()
    replace(source, target_scale="none").load()
    replace(source, **change).load()
    assert len(opened) == 2


@dataclass(frozen=True)
class LaterFacts(DataFacts):
    """Those of a version that keeps one more."""

    later: int = 0


@pytest.mark.usefixtures("large")
def test_versions_that_keep_other_facts_stand_beside_each_other(
    source: CsvSource, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    source.load()
    with monkeypatch.context() as later:
        later.setattr(csv, "DataFacts", LaterFacts)
        source.load()
    source.load()
    assert len(opened) == 2


def test_columns_are_sorted_where_nobody_names_them(source: CsvSource) -> None:
    data = source.load()
    facts: Any = data.facts
    assert [column.name for column in facts.numeric] == ["size"]
    assert [column.name for column in facts.category] == ["color"]
    assert data.notes == (
        "table.csv: not used: 'row' (another number in every row); "
        "'note' (another text in every row)",
    )
    named = replace(source, numeric=("size",), category=("color",)).load()
    assert content(named) == content(data)
    assert not named.notes
    back = facts_of(json.loads(json.dumps(facts.as_json())), "a checkpoint")
    assert not list(source.misfits(back))
    assert list(replace(source, numeric=("row",)).misfits(back))
    assert list(replace(source, target="size").misfits(back))


def test_one_of_the_two_keys_names_all_inputs(source: CsvSource) -> None:
    facts: Any = replace(source, category=("color",)).facts()
    assert facts.columns == ("color",)


def test_a_table_without_a_column_of_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("y,id,id,same\n" + "a,1,2,x\nb,2,3,x\n" * 20)
    with pytest.raises(DataError, match="no column is left to predict 'y' from") as caught:
        CsvSource(file="t", target="y").locate(tmp_path).facts()
    assert "'same' (the same value in every row)" in caught.value.message
    assert "'id' (a name that appears twice)" in caught.value.message


@pytest.mark.parametrize("columns", [{}, {"numeric": ("n", "m"), "category": ("c",)}])
def test_the_topmost_wrong_cell_of_the_file_is_named(tmp_path: Path, columns: Any) -> None:
    rows = [f"{i % 7}.5,{i % 5},{'ab'[i % 2]},{'uv'[i % 2]}" for i in range(50)]
    rows[40], rows[30], rows[20] = "NA,1,a,u", "1,,a,u", "1,2,,u"
    path = tmp_path / "t"
    made = CsvSource(file=str(path), target="y", **columns)
    for row, column, what in ((22, "3 (c)", "category"), (32, "2 (m)", "number")):
        path.write_text("n,m,c,y\n" + "\n".join(rows) + "\n")
        expected = rf"row {row}, column {column[0]} \({column[3]}\): expected a {what}, found the"
        with pytest.raises(DataError, match=expected):
            made.facts()
        rows[row - 2] = "1,2,a,u"
    path.write_text("n,m,c,y\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"row 42, column 1 \(n\)"):
        made.facts()


def test_a_wrong_cell_comes_before_a_ragged_row_below_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made = CsvSource(file=str(path), target="y", numeric=("n",))
    path.write_text("n,y\n1,a\nx,b\n1,2,3\n")
    with pytest.raises(DataError, match=r"row 3, column 1 \(n\): expected a number, found 'x'"):
        made.facts()
    path.write_text("n,y\n1,a\n1,2,3\nx,b\n")
    with pytest.raises(DataError, match="row 3, column 3: 3 cells, the header has 2"):
        made.facts()


@pytest.mark.usefixtures("large")
def test_new_rows_of_a_large_file_are_read_without_a_cache(source: CsvSource) -> None:
    data = source.load()
    new = Path(source.file).with_name("new.csv")
    new.write_text("color,size\nred,1\nblue,2\n")
    assert data.read(new).names == ["new.csv:2", "new.csv:3"]
    new.with_name("SHA256SUMS").write_text(f"{'0' * 64}  new.csv\n")
    with pytest.raises(DataError, match="is not the file that SHA256SUMS beside it lists"):
        data.read(new)


@pytest.mark.usefixtures("large")
def test_a_file_that_comes_while_a_pattern_is_read_is_not_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1.csv").write_text(TEXT)
    made = CsvSource(file="?.csv", target="y", cache="cache").locate(tmp_path)
    alone = made.facts()
    sha256_of_all = identity.sha256_of_all

    def one_more(*given: Any, **more: Any) -> dict[Path, str]:
        result = sha256_of_all(*given, **more)
        (tmp_path / "0.csv").write_text(TEXT)
        return result

    monkeypatch.setattr(identity, "sha256_of_all", one_more)
    made = CsvSource(file="?.csv", target="y", cache="other").locate(tmp_path)
    assert made.facts().sizes == alone.sizes


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("packed", [False, True])
def test_who_watches_is_told_how_much_there_is_of_plain_text(
    source: CsvSource, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    path = Path(source.file)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    calls: list[tuple[str, int, int | None, str]] = []
    monkeypatch.setattr(progress, "watcher", lambda *told: calls.append(told))
    source.facts()
    size = len(TEXT)
    assert calls[0] == ("preparing table.csv", 0, None if packed else size, "B")
    assert calls[-1] == ("preparing table.csv", size, size, "B")
