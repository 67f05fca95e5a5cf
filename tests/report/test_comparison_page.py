"""The page of `gradcli compare --html`: whole in itself, and no file of a run can run code."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from gradcli.cli.main import run as command_line
from gradcli.errors import RunError
from gradcli.report.comparison import compare
from gradcli.report.comparison_page import comparison_page
from gradcli.report.written import write_html

HOSTILE = "</script><img src=x onerror=alert(1)>"


def make(name: str, losses: list[float], **status: Any) -> Path:
    """A run of a few files."""
    path = Path("runs", name, "20260101-120000Z-001")
    path.mkdir(parents=True)
    path.joinpath("resolved.yaml").write_text(f'gradcli: 1\nname: "{name}"\n')
    said = {"status": "finished", "step": len(losses), "weights_sha256": name, **status}
    path.joinpath("status.json").write_text(json.dumps(said))
    path.joinpath("log.jsonl").write_text(
        "".join(
            json.dumps({"event": "step", "step": step, "loss": loss}) + "\n"
            for step, loss in enumerate(losses, 1)
        )
    )
    return path


def drawing(page: str) -> Any:
    [found] = re.findall(r'<script type="application/json" id="drawing">(.*?)</script>', page)
    return json.loads(found)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_curves_of_all_runs_lie_in_one_frame() -> None:
    page = comparison_page(compare([make("a", [3.0, 2.0]), make("b", [3.0, 1.0, 0.5])]))
    [chart] = drawing(page)["charts"]
    assert [(one["label"], one["x"], one["y"]) for one in chart["series"]] == [
        ("a", [1, 2], [3.0, 2.0]),
        ("b", [1, 2, 3], [3.0, 1.0, 0.5]),
    ]
    assert len({one["hue"] for one in chart["series"]}) == 2
    assert "the loss differs first at step 2, 2.0 against 1.0; equal up to step 1" in page


def test_every_run_can_be_told_from_the_others() -> None:
    runs = [make(f"run-{number}", [1.0, 2.0]) for number in range(10)]
    [chart] = drawing(comparison_page(compare(runs)))["charts"]
    looks = {(one["hue"], tuple(one["dash"])) for one in chart["series"]}
    assert len(looks) == 10


def test_what_the_policy_allows_is_what_stands_there() -> None:
    page = comparison_page(compare([make("a", [1.0]), make("b", [2.0])]))
    [allowed] = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
    assert "default-src" in allowed and "connect-src" not in allowed
    for kind in ("style", "script"):
        for text in re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert digest in allowed.replace("&#43;", "+")
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert ' style="' not in page


def test_hostile_texts_stay_texts() -> None:
    one, two = make("a", [1.0, 2.0]), make("b", [1.0, 3.0])
    one.joinpath("resolved.yaml").write_text(f"name: '{HOSTILE}'\n'{HOSTILE}': 1\n")
    two.joinpath("status.json").write_text(
        json.dumps({"status": HOSTILE, "weights_sha256": HOSTILE, "metrics": {HOSTILE: 1.0}})
    )
    two.joinpath("manifest.json").write_text(
        json.dumps({"name": HOSTILE, "data": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE}})
    )
    record = {"event": "eval", "step": 1, f"val.{HOSTILE}": 1.0}
    for run in (one, two):
        with run.joinpath("log.jsonl").open("a") as log:
            log.write(json.dumps(record) + "\n")
    page = comparison_page(compare([one, two]))
    assert "<img" not in page
    assert page.count("</script>") == 3  # the drawing, uPlot and ours


def test_runs_without_a_log_have_a_page() -> None:
    one, two = make("a", []), make("b", [])
    two.joinpath("log.jsonl").unlink()
    page = comparison_page(compare([one, two]))
    assert drawing(page)["charts"] == []
    assert "log.jsonl is absent" in page


def test_the_command_writes_it_beside_the_text(capfd: pytest.CaptureFixture[str]) -> None:
    make("a", [1.0])
    make("b", [1.0])
    assert command_line(["compare", "a", "b", "--html", "page.html", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["html"] == "page.html"
    assert Path("page.html").read_text().startswith("<!doctype html>")
    assert command_line(["compare", "a", "b", "--html", "runs"]) == 7
    assert "it is a folder" in capfd.readouterr().err
    assert command_line(["compare", "a", "b", "--html", "no/page.html"]) == 7


def test_a_full_disk_is_named_and_leaves_the_old_page(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("page.html").write_text("old")

    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RunError, match=r"cannot write page[.]html: No space left on device"):
        write_html(Path("page.html"), "new")
    assert Path("page.html").read_text() == "old"
    assert [one.name for one in Path().iterdir()] == ["page.html"]
