"""`gradcli report`: where it writes the page, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from points import gradcli, only_run
from refusals import refused

__all__ = ["gradcli", "refused"]


def test_the_page_lies_in_the_run_or_where_it_is_asked_for(gradcli) -> None:
    gradcli("train", "dots.yaml")
    ended = gradcli("report", "last")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"wrote {only_run() / 'report.html'}\n"
    text = (only_run() / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "val.accuracy" in text
    assert gradcli("report", "dots", "-o", "page.html").out == "wrote page.html\n"
    assert Path("page.html").exists()


def test_a_damaged_file_is_a_warning(gradcli) -> None:
    gradcli("train", "dots.yaml")
    (only_run() / "status.json").write_text("{")
    ended = gradcli("report", "last", "--json")
    assert ended.code == 0 and "warning: status.json is damaged" in ended.err
    assert ended.json["problems"] == ["status.json is damaged: it holds no JSON object"]


def test_a_run_without_a_log_has_a_page(gradcli) -> None:
    gradcli("train", "dots.yaml")
    (only_run() / "log.jsonl").unlink()
    ended = gradcli("report", "last")
    assert ended.code == 0 and "warning: log.jsonl is absent" in ended.err


def test_the_time_of_each_layer_is_measured_where_it_is_asked_for(gradcli) -> None:
    gradcli("train", "dots.yaml")
    page = only_run() / "report.html"
    assert "Time of a step" not in page.read_text(encoding="utf-8")
    assert gradcli("report", "last", "--time").code == 0
    text = page.read_text(encoding="utf-8")
    assert "Time of a step" in text and "0 linear 8" in text
    assert gradcli("report", "last", "--time", "--to", "csv").code == 2


def test_what_is_no_run_has_no_page(gradcli, refused) -> None:
    Path("empty").mkdir()
    refused(7, "is not a run: it has no resolved.yaml", "report", "empty")
    refused(7, "holds no runs yet", "report", "nobody")
    gradcli("train", "dots.yaml")
    refused(2, "not of a checkpoint as in dots@best", "report", "dots@best")


def test_a_page_that_cannot_be_written_is_refused(gradcli, refused, monkeypatch) -> None:
    gradcli("train", "dots.yaml")
    before = sorted(Path().iterdir())
    refused(7, "it is a folder; name a file in it", "report", "last", "-o", "runs")
    refused(
        7,
        "cannot write no/page.html: No such file or directory",
        "report",
        "last",
        "-o",
        "no/page.html",
    )
    refused(7, "cannot write /dev/full", "report", "last", "-o", "/dev/full/page.html")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(Path, "replace", full)
    refused(
        7, "cannot write page.html: No space left on device", "report", "last", "-o", "page.html"
    )
    assert sorted(Path().iterdir()) == before


def test_a_file_that_is_no_page_is_not_replaced(gradcli, refused) -> None:
    for _ in range(2):
        assert gradcli("train", "dots.yaml").code == 0
    first, second = sorted(str(run) for run in Path("runs/dots").iterdir())
    Path("own.html").write_text("<!doctype html><title>mine</title>")
    Path("pointer.html").symlink_to("nowhere")
    for target in ("dots.yaml", "own.html", "pointer.html", os.devnull):
        before = Path(target).is_file() and Path(target).read_text()
        message = f"{target}: there is a file that is no page of gradcli, and it is not replaced"
        refused(2, f"-o {message}", "report", "last", "-o", target)
        refused(2, f"--html {message}", "compare", first, second, "--html", target)
        assert (Path(target).is_file() and Path(target).read_text()) == before
    Path("empty.html").touch()
    for _ in range(2):  # a page takes the place of a page
        assert gradcli("report", "last", "-o", "empty.html").code == 0
        assert gradcli("compare", first, second, "--html", "empty.html").code == 0


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_locked_folder_is_refused(gradcli, refused) -> None:
    gradcli("train", "dots.yaml")
    only_run().chmod(0o500)
    refused(7, "Permission denied", "report", "last")


def test_a_training_leaves_its_page_at_its_end(gradcli) -> None:
    ended = gradcli("train", "dots.yaml")
    assert ended.err.splitlines()[-1] == f"report     {only_run() / 'report.html'}"
    assert "finished" in (only_run() / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--json", "--no-report"])
def test_a_training_leaves_no_page_where_nobody_wants_one(gradcli, option: str) -> None:
    assert gradcli("train", "dots.yaml", option).code == 0
    assert not (only_run() / "report.html").exists()
    Path(only_run(), "status.json").unlink()
    assert gradcli("resume", "last", option).code == 0
    assert not (only_run() / "report.html").exists()


def test_a_run_that_stopped_or_missed_its_figure_leaves_its_page(gradcli) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "4")
    page = only_run() / "report.html"
    assert "Go on with: <code>gradcli resume" in page.read_text(encoding="utf-8")
    gradcli("resume", "last")
    assert "Go on with" not in page.read_text(encoding="utf-8")
    ended = gradcli("train", "dots.yaml", "--name", "far", "-s", "expect={val.loss: '<= 0'}")
    assert ended.code == 6
    [page] = Path("runs").glob("far/*/report.html")
    assert "✗ expected val.loss &lt;= 0" in page.read_text(encoding="utf-8")


def test_a_run_that_failed_leaves_its_page_if_anything_is_left(gradcli, monkeypatch) -> None:
    from gradcli.train import checkpoint

    gradcli("train", "dots.yaml", "--max-steps", "6")
    page = only_run() / "report.html"
    page.unlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write", full)
    ended = gradcli("resume", "last")
    assert ended.code == 7
    assert "No space left on device" in page.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_made_costs_the_training_nothing(gradcli, monkeypatch) -> None:
    from gradcli.report import written

    monkeypatch.setattr(written, "page", lambda run, times: 1 / 0)
    ended = gradcli("train", "dots.yaml")
    assert ended.code == 0
    assert ended.err.splitlines()[-1] == (
        "warning: the page of the run is not written: division by zero"
    )


def test_a_run_without_a_page_gets_one_by_a_resume(gradcli) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "4", "--no-report")
    assert gradcli("resume", "last").code == 0
    assert (only_run() / "report.html").exists()
