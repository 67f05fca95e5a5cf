"""Result files, the tables made of them, and a race that is really run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import markdown, results, tables, targets
from benchmarks.__main__ import main


def row(ms: float, **more: Any) -> dict[str, Any]:
    return {"ms": ms, "p10": ms, "kept": 9, "dropped": {}, "noisy": False, **more}


def races() -> dict[str, Any]:
    rows = {
        "gradcli scan": row(0.5),
        "torch eager": row(4.5, same_course=False),
        "torch compile": row(4.5),
    }
    ratios = targets.compare(rows)
    return {"workloads": {"W1": {"title": "a model", "rows": rows, "ratios": ratios}}}


def write(folder: Path, date: str, found: dict[str, Any]) -> None:
    made = results.document("workloads", found, quick=False)
    results.write(folder, {**made, "date": f"{date}T00:00:00Z"})


def test_the_newest_result_is_read_back_as_written(tmp_path: Path) -> None:
    write(tmp_path, "2026-01-02", {"workloads": {}})
    write(tmp_path, "2026-01-01", races())
    found = results.newest(tmp_path, "workloads")
    assert found is not None
    assert found["workloads"] == {}
    assert found["machine"]["cores"] >= 1
    assert results.newest(tmp_path, "matmul") is None


def test_tables_replace_only_what_stands_between_the_markers(tmp_path: Path) -> None:
    write(tmp_path, "2026-01-01", races())
    page = tmp_path / "page.md"
    page.write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
    tables.update(page, tmp_path)
    text = page.read_text()
    assert text.startswith(f"before\n{tables.BEGIN}\n")
    assert text.endswith(f"{tables.END}\nafter\n")
    assert "old" not in text
    line = next(line for line in text.splitlines() if line.startswith("| W1"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:5] == ["W1: a model", "-", "-", "0.500", "4.50\\*"]
    assert cells[-3:] == ["9.00x (8, yes)", "-", "-"]


def test_a_table_of_products_has_a_ratio_for_the_kernel_and_one_for_a_call(tmp_path: Path) -> None:
    rows = {
        "gradcli c": row(1.0, gflops=12.0),
        "gradcli captured": row(4.0, gflops=3.0),
        "numpy": row(2.0, gflops=6.0),
    }
    old = {"ratio": 0.5}  # files of before had one ratio, of the call
    shapes = {"1x2x3": {"rows": rows, **old}, "4x5x6": {"rows": {"numpy": row(2.0)}, "ratio": None}}
    made = results.document("matmul", {"shapes": shapes, "geometric_mean": 0.5}, quick=False)
    results.write(tmp_path, made)
    lines = tables.tables(tmp_path).splitlines()
    cells = next(line for line in lines if line.startswith("| 1x2x3")).split(" | ")
    assert cells == ["| 1x2x3", "12.0", "3.00", "-", "-", "6.00", "2.00x", "0.50x |"]
    assert next(line for line in lines if line.startswith("| 4x5x6")).endswith("| - | - |")
    (note,) = (line for line in lines if line.startswith("Geometric means"))
    assert "the kernel 2.00x (1.2, yes), one captured call 0.50x (1.2, no)" in note


# The scoreboard has a page of its own, which test_scoreboard.py holds.
RACES = [f for f in sorted(results.FOLDER.glob("*.json")) if not f.stem.endswith("-scoreboard")]


@pytest.mark.parametrize("file", RACES, ids=lambda f: f.stem)
def test_every_result_that_is_kept_can_be_shown_and_judged(file: Path) -> None:
    found = json.loads(file.read_text())
    assert tables.TABLES[found["kind"]](found).startswith("## ")
    assert targets.VERDICTS[found["kind"]](found)


def test_a_page_that_does_not_exist_is_begun(tmp_path: Path) -> None:
    tables.update(tmp_path / "page.md", tmp_path)
    assert "Nothing has been measured yet." in (tmp_path / "page.md").read_text()


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("prose\n")
    with pytest.raises(ValueError, match="no markers"):
        tables.update(page, tmp_path)
    assert page.read_text() == "prose\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(224.2, "224"), (12.34, "12.3"), (1.0, "1.00"), (0.4567, "0.457"), (0.00025, "0.000250")],
)
def test_numbers_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert markdown.number(value) == text


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("benchmarks.process.two_processors", list)

    def run(*arguments: str) -> dict[str, Any]:
        options = ("--quick", "--only", "gradcli", "--out", str(tmp_path))
        done = CliRunner().invoke(main, [*options, *arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        (file,) = tmp_path.glob(f"*-{arguments[0]}.json")
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    return run


def test_a_quick_race_times_gradcli_alone(quick: Any) -> None:
    found = quick("workloads", "W1", "W8")
    assert found["quick"]
    for name in ("W1", "W8"):
        eager = found["workloads"][name]["rows"]["gradcli eager"]
        assert eager["ms"] > 0
        assert eager["p10"] <= eager["ms"]
        assert eager["same_course"]
        assert found["workloads"][name]["ratios"]["torch"] is None
    assert {v["passed"] for v in found["verdicts"]} <= {None, True, False}


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.process import COMPETITORS

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert COMPETITORS["jax scan"].missing() == "jax is not installed"


def test_peak_memory_of_a_fresh_process_is_measured(quick: Any) -> None:
    rows = quick("memory")["workloads"]["W2"]
    assert 10 < rows["gradcli eager"]["peak_mib"] < 1000


def test_generation_is_raced_and_shown(quick: Any, tmp_path: Path) -> None:
    batches = quick("generation")["batches"]
    assert list(batches) == ["1", "8"]
    for entry in batches.values():
        assert entry["rows"]["gradcli, 1 thread"]["ms"] > 0
        assert entry["ratios"]["torch"] is None
        assert entry["ratios"]["floor"] > 0
    lines = tables.tables(tmp_path).splitlines()
    (line,) = (line for line in lines if line.startswith("| 8 |"))
    assert line.count("|") == 8
    assert [cell.strip() for cell in line.split("|")][4:7] == ["-", "-", "-"]
