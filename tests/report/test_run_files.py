"""The files of a run are read as far as they can be, and what cannot is named."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from tensor_bytes import encode

from gradcli.errors import RunError
from gradcli.report.log_lines import MOST_LINE, LogLines
from gradcli.report.run_files import RunFiles, floats, number
from gradcli.train.safetensors_file import RawTensor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "runs" / "tiny" / "20260102-030405Z-001"
    run.mkdir(parents=True)
    (run / "resolved.yaml").write_text("gradcli: 1\n")
    return run


def records(folder: Path, data: bytes) -> tuple[list[int], list[str]]:
    (folder / "log.jsonl").write_bytes(data)
    run = RunFiles(folder)
    return [record["step"] for record in run.records()], run.problems


def line(step: int, **more: object) -> bytes:
    return json.dumps({"event": "step", "step": step, **more}).encode() + b"\n"


def test_a_path_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run"):
        RunFiles(tmp_path)


def test_files_that_are_absent_are_empty(folder: Path) -> None:
    run = RunFiles(folder)
    empty = (run.manifest, run.status, run.plan, run.origins, run.evaluation, run.tensors())
    assert empty == ({},) * 6
    assert run.name == "tiny" and run.config_text == "" and run.problems == []
    assert list(run.records()) == [] and run.problems == ["log.jsonl is absent"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": NaN}', '{"a": 1e999}', "[" * 100000, "\xff"])
def test_a_damaged_file_counts_as_empty_and_is_named(folder: Path, text: str) -> None:
    (folder / "status.json").write_text(text, encoding="latin-1")
    run = RunFiles(folder)
    assert run.status == {}
    assert run.problems == ["status.json is damaged: it holds no JSON object"]


def test_a_folder_in_place_of_a_file_is_named(folder: Path) -> None:
    for name in ("plan.json", "config.yaml", "evaluation.safetensors", "log.jsonl"):
        (folder / name).mkdir()
    run = RunFiles(folder)
    assert (run.plan, run.config_text, run.tensors(), list(run.records())) == ({}, "", {}, [])
    assert len(run.problems) == 4


def test_good_lines_are_read_between_damaged_ones(folder: Path) -> None:
    odd = b'{"event": \n\x00\x00\n[1]\nNaN\n\xff\xfe\n' + b"[" * 5000 + b"\n"
    steps, problems = records(folder, line(1) + odd + line(2) + b"\n\n" + line(3)[:-5])
    assert steps == [1, 2]
    assert problems == ["log.jsonl is damaged: 6 lines are no records, the last line is cut off"]


def test_a_line_that_is_too_long_is_passed_over(folder: Path) -> None:
    for long in (MOST_LINE, MOST_LINE + 1, 3 * MOST_LINE, 10 * MOST_LINE + 7):
        steps, problems = records(folder, line(1) + line(2, text="x" * long) + line(3))
        assert steps == [1, 3]
        assert problems == ["log.jsonl is damaged: 1 line is longer than 1 MiB"]
    steps, problems = records(folder, line(1) + b"x" * 5 * MOST_LINE)
    assert (steps, len(problems)) == ([1], 1)


def test_two_damaged_lines_do_not_make_a_record_together(folder: Path) -> None:
    steps, problems = records(folder, line(1) + b'{"step": [1\n2]}\n' + line(3))
    assert steps == [1, 3] and "2 lines are no records" in problems[0]


def test_a_last_line_without_its_break_is_a_record(folder: Path) -> None:
    assert records(folder, line(1) + line(2)[:-1]) == ([1, 2], [])


def test_numbers_that_json_lacks_are_no_figures(folder: Path) -> None:
    (folder / "log.jsonl").write_bytes(b'{"step": 1, "loss": NaN, "lr": 1e999, "n": 1' + b"0" * 400)
    with (folder / "log.jsonl").open("ab") as file:
        file.write(b"}\n")
    [record] = RunFiles(folder).records()
    assert [number(record[key]) for key in ("step", "loss", "lr", "n")] == [1.0, None, None, None]
    assert number(True) is None and number("1") is None


def test_a_growing_log_is_read_on(folder: Path) -> None:
    path = folder / "log.jsonl"
    path.write_bytes(line(1) + line(2)[:9])
    lines = LogLines(path)
    assert [one["step"] for one in lines] == [1]
    with path.open("ab") as file:
        file.write(line(2)[9:] + line(3))
    assert [one["step"] for one in LogLines(path, lines.end)] == [2, 3]


def test_lines_are_whole_across_blocks(folder: Path) -> None:
    lines = [line(step, text="x" * (step * 7919 % 5000)) for step in range(1000)]
    assert records(folder, b"".join(lines)) == (list(range(1000)), [])


def test_tensors_are_rows_of_floats(folder: Path) -> None:
    tensors = {
        "outputs": RawTensor("F32", (2, 2), struct.pack("<4f", 1, 2, float("nan"), 4)),
        "index": RawTensor("I64", (2,), struct.pack("<2q", 7, 9)),
        "odd": RawTensor("BOOL", (2,), b"\x00\x01"),
        "none": RawTensor("F32", (0, 2), b""),
    }
    (folder / "evaluation.safetensors").write_bytes(encode(tensors))
    read = RunFiles(folder).tensors()
    assert floats(read, "outputs") == [[1.0, 2.0], [None, 4.0]]
    assert floats(read, "index") == [[7.0], [9.0]]
    assert floats(read, "odd") == floats(read, "none") == floats(read, "absent") == []


def test_a_damaged_file_of_tensors_is_named(folder: Path) -> None:
    (folder / "evaluation.safetensors").write_bytes(b"\x00" * 20)
    run = RunFiles(folder)
    assert run.tensors() == {}
    assert run.problems[0].startswith("evaluation.safetensors is damaged: ")
