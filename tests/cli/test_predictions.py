"""What `gradcli predict` prints and writes: JSON, JSON Lines, CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from points import gradcli

from gradcli.cli import predictions

__all__ = ["gradcli"]


@pytest.fixture
def trained(gradcli) -> None:
    """A run that tells left from right, and two files of points."""
    gradcli("train", "dots.yaml", "-s", "train.epochs=20")
    Path("a.txt").write_text("0.9 0.1\n-0.9 0.2\n")
    Path("b.txt").write_text("-0.8 0\n")


def test_a_file_gets_one_json_object_a_line(gradcli, trained) -> None:
    ended = gradcli("predict", "last", "a.txt", "--out", "out.jsonl")
    assert "2 samples in out.jsonl" in ended.out
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == ["right", "left"]
    printed = gradcli("predict", "last", "a.txt", "--json").json
    assert (printed["format"], printed["predictions"]) == (1, [without_format(row) for row in rows])
    told = gradcli("predict", "last", "a.txt", "--json", "--out", "OUT.JSONL").json
    assert told == {"format": 1, "out": "OUT.JSONL", "samples": 2}
    assert Path("OUT.JSONL").read_bytes() == Path("out.jsonl").read_bytes()


def without_format(row: dict[str, object]) -> dict[str, object]:
    assert row.pop("format") == 1
    return row


def test_classes_in_json_and_csv_have_the_probability_of_each(gradcli, trained) -> None:
    rows = gradcli("predict", "last", "a.txt", "b.txt", "--json").json["predictions"]
    for row in rows:
        assert [*row["probabilities"]] == ["left", "right"]
        assert sum(row["probabilities"].values()) == pytest.approx(1)
        assert row["probability"] == row["probabilities"][row["label"]]
    assert gradcli("predict", "last", "a.txt", "b.txt", "--out", "out.csv").code == 0
    with Path("out.csv").open(newline="") as file:
        found = [*csv.DictReader(file)]
    for cells, row in zip(found, rows, strict=True):
        p = row["probabilities"]
        assert cells == {
            "file": row["file"],
            "index": str(row["index"]),
            "name": row["name"],
            "label": row["label"],
            "probability": repr(row["probability"]),
            "probabilities.left": repr(p["left"]),
            "probabilities.right": repr(p["right"]),
        }


def test_a_file_that_is_there_is_replaced_only_when_asked(gradcli, trained) -> None:
    Path("out.csv").write_text("mine")
    ended = gradcli("predict", "last", "a.txt", "--out", "out.csv")
    assert (ended.code, "there is such a file already; --overwrite replaces it" in ended.err) == (
        2,
        True,
    )
    assert Path("out.csv").read_text() == "mine"
    assert gradcli("predict", "last", "a.txt", "--out", "out.csv", "--overwrite").code == 0
    assert Path("out.csv").read_text().startswith("file,index,name,label,")
    Path("folder.csv").mkdir()
    ended = gradcli("predict", "last", "a.txt", "--out", "folder.csv", "--overwrite")
    assert (ended.code, "it is no regular file" in ended.err) == (2, True)
    ended = gradcli("predict", "last", "a.txt", "--overwrite")
    assert (ended.code, "--overwrite goes with --out" in ended.err) == (2, True)


def test_nothing_is_written_when_a_file_cannot_be_read(gradcli, trained) -> None:
    Path("c.txt").write_text("nan nan\n")
    ended = gradcli("predict", "last", "a.txt", "c.txt", "--out", "out.jsonl")
    assert (ended.code, "the model's output for c.txt, sample 0, is not finite" in ended.err) == (
        5,
        True,
    )
    assert not [path.name for path in Path().iterdir() if "out" in path.name or ".tmp" in path.name]


@pytest.mark.parametrize("name", ["out.txt", "out", "out.json", "csv"])
def test_a_form_that_is_not_known_is_refused_at_once(gradcli, name: str) -> None:
    ended = gradcli("predict", "no-such-run", "a.txt", "--out", name)
    assert ended.code == 2
    assert f"--out {name}: the name must end in .jsonl or .csv; without --out" in ended.err


ODD = {
    "file": "a,b\n\udcff.csv",
    "index": 3,
    "name": 'say "x"',
    "values": {"price, $": 1.5, "file": -0.0},
}


def test_odd_names_come_back_from_both_forms() -> None:
    (line,) = predictions.json_lines([ODD])
    assert json.loads(line) == {"format": 1, **ODD}
    text = "".join(predictions.csv_lines([ODD, ODD]))
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["file", "index", "name", "values.price, $", "values.file"]
    assert rows == [[ODD["file"], "3", ODD["name"], "1.5", "-0.0"]] * 2


def test_a_name_that_is_no_utf8_is_escaped_in_a_table(tmp_path: Path) -> None:
    assert predictions.write(tmp_path / "a.csv", [ODD]) == 1
    assert "\n\\udcff.csv" in (tmp_path / "a.csv").read_text("utf-8")
    assert predictions.line(ODD).startswith("a,b\\n\\xff.csv\t3\t1.5\t")


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        list(predictions.json_lines([{"file": "a", "index": 0, "values": {"y": float("nan")}}]))


@pytest.mark.parametrize("out", ["points.csv", "folder/points.csv", "./folder/../points.csv"])
def test_a_file_to_predict_is_never_overwritten(gradcli, trained, out: str) -> None:
    Path("folder").mkdir()
    for file in (Path("points.csv"), Path("folder/points.csv")):
        file.write_text("0.9 0.1\n")
    ended = gradcli("predict", "last", "points.csv", "folder", "--out", out, "--overwrite")
    assert ended.code == 2
    assert "that is one of the files to predict, and would be lost" in ended.err
    assert Path(out).read_text() == "0.9 0.1\n"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--temperature", "nan"),
        ("--temperature", "inf"),
        ("--top-p", "nan"),
        ("--temperature", "1e400"),
    ],
)
def test_a_number_that_is_none_names_its_option(gradcli, trained, option: str, value: str) -> None:
    ended = gradcli("predict", "last", "--prompt", "a", option, value)
    assert ended.code == 2
    assert f"'{option}': " in ended.err
    assert f"got {value}" in ended.err


@pytest.mark.parametrize("option", ["--temperature", "--top-p"])
def test_a_number_that_would_be_0_names_its_option(gradcli, trained, option: str) -> None:
    ended = gradcli("predict", "last", "--prompt", "a", option, "1e-400")
    assert (ended.code, "1e-400 is too small" in ended.err) == (2, True)
    assert f"'{option}': " in ended.err
