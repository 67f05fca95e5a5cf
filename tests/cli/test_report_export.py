"""`gradcli report --to csv|tensorboard`: every record, exactly, and what is refused."""

from __future__ import annotations

import csv
import errno
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from points import gradcli, only_run
from refusals import refused

__all__ = ["gradcli", "refused"]


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def run(gradcli) -> Path:
    assert gradcli("train", "dots.yaml").code == 0
    return only_run()


def test_a_row_a_record_with_the_same_numbers(gradcli, run: Path) -> None:
    ended = gradcli("report", "last", "--to", "csv")
    assert (ended.code, ended.out) == (0, f"wrote {run / 'metrics.csv'}\n")
    table = rows(run / "metrics.csv")
    for row, record in zip(table, records(run), strict=True):
        assert set(record) <= set(row)
        for key, text in row.items():
            assert text == (
                "" if key not in record else record[key] if key == "event" else repr(record[key])
            )
    assert gradcli("report", "last", "--to", "csv").code == 0  # its own file is written anew


def test_odd_records_are_rows_too(gradcli, run: Path) -> None:
    odd = [
        {"event": "step", "step": 1, "loss": None, "nonfinite": {"loss": "nan"}},
        {"event": "sample", "step": 1, "text": 'a "b",\nc', "prompt": "é"},
        {"event": "eval", "step": 1, "val.confusion": [[1, 2], [3, 4]], "x\ny": True},
    ]
    (run / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in odd) + '{"torn')
    ended = gradcli("report", "last", "--to", "csv", "-o", "out.csv")
    assert (ended.code, "the last line is cut off" in ended.err) == (0, True)
    first, second, third = rows(Path("out.csv"))
    assert (first["loss"], second["loss"]) == ("nan", "")
    assert (second["text"], second["prompt"]) == ('a "b",\nc', "é")
    assert (third["val.confusion"], third["x\ny"]) == ("[[1, 2], [3, 4]]", "true")
    assert Path("out.csv").read_bytes().startswith(b"event,step,loss,")


def test_a_file_that_is_there_is_not_replaced(gradcli, run: Path, refused) -> None:
    Path("mine.csv").write_text("precious")
    refused(2, "there is such a file already", "report", "last", "--to", "csv", "-o", "mine.csv")
    refused(2, "there is such a file", "report", "last", "--to", "tensorboard", "-o", "mine.csv")
    assert Path("mine.csv").read_text() == "precious"


@pytest.mark.parametrize("form", ["csv", "tensorboard"])
def test_a_run_without_records_has_nothing_to_export(
    gradcli, run: Path, refused, form: str
) -> None:
    (run / "log.jsonl").write_text("")
    refused(7, "has no records: log.jsonl is empty", "report", "last", "--to", form)
    (run / "log.jsonl").unlink()
    refused(7, "has no records: log.jsonl is absent", "report", "last", "--to", form)


def test_a_log_of_too_many_keys_is_no_table(gradcli, run: Path, refused) -> None:
    (run / "log.jsonl").write_text(json.dumps({f"k{n}": n for n in range(2000)}) + "\n")
    refused(7, "records of more than 1000 keys", "report", "last", "--to", "csv")


@pytest.mark.parametrize("form", ["csv", "tensorboard"])
def test_a_full_disk_leaves_nothing(
    gradcli, run: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboardX", reason="of the extra 'tensorboard'")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gradcli.report.export._row", full)
    monkeypatch.setattr("gradcli.report.export._scalars", full)
    before = sorted(run.rglob("*"))
    ended = gradcli("report", "last", "--to", form)
    assert (ended.code, "No space left on device" in ended.err) == (7, True)
    assert sorted(run.rglob("*")) == before


def test_without_the_package_the_command_that_brings_it_is_named(
    gradcli, run: Path, refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX.event_file_writer", None)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    message = "needs the package tensorboardX: pip install 'gradcli[tensorboard]'"
    refused(2, message, "report", "last", "--to", "tensorboard")


def scalars(folder: Path) -> dict[tuple[str, int], float]:
    """What the one event file of a folder holds, read by the format's own description."""
    from tensorboardX.proto.event_pb2 import Event

    (file,) = folder.iterdir()
    assert file.name.startswith("events.out.tfevents.")
    data, found = file.read_bytes(), {}
    while data:
        size = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + size])
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found[value.tag, event.step] = value.simple_value
        data = data[16 + size :]
    return found


def test_event_files_have_the_figures_of_the_log(gradcli, run: Path) -> None:
    pytest.importorskip("tensorboardX", reason="of the extra 'tensorboard'")
    for _ in range(2):  # the second one takes the place of the first
        assert gradcli("report", "last", "--to", "tensorboard").code == 0
    found = scalars(run / "tensorboard")
    assert {tag for tag, _ in found} >= {"train/loss", "train/lr", "val/accuracy", "test/loss"}
    for record in records(run):
        for key, tag in (("loss", "train/loss"), ("val.accuracy", "val/accuracy")):
            if key in record:
                assert found[tag, record["step"]] == pytest.approx(record[key], rel=1e-6)


def test_a_folder_with_files_of_others_is_not_replaced(gradcli, run: Path, refused) -> None:
    pytest.importorskip("tensorboardX", reason="of the extra 'tensorboard'")
    (run / "tensorboard").mkdir()
    (run / "tensorboard" / "notes.txt").write_text("precious")
    refused(2, "holds more than event files", "report", "last", "--to", "tensorboard")
    assert (run / "tensorboard" / "notes.txt").exists()
