"""The page of a run: whole, offline, and harmless whatever the files of the run say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_on_disk import LOG, MANIFEST, SCRIPT, STATUS, Seen, evaluation, seen, step


def drawing(made: Seen) -> dict[str, Any]:
    [text] = [text for attributes, text in made.scripts if attributes.get("id") == "drawing"]
    return json.loads(text)


def test_the_head_says_what_came_out_and_how(tmp_path: Path) -> None:
    made = seen(tmp_path)
    assert "tiny 20260102-030405Z-001 finished at step 40 of 40, after 1.5 s" in made.text
    assert "$ gradcli train tiny.yaml" in made.text
    assert "✓ expected test.accuracy >= 0.9, got 0.9500" in made.text
    assert "0.9500 test.accuracy baseline 0.3000" in made.text


def test_a_missed_expectation_is_said_once(tmp_path: Path) -> None:
    status = {**STATUS, "missed": ["expected test.accuracy >= 0.9, got 0.85"]}
    made = seen(tmp_path, status=status)
    assert made.text.count("expected test.accuracy") == 1
    assert "✗ expected test.accuracy >= 0.9, got 0.85" in made.text


@pytest.mark.parametrize(
    ("status", "text", "resume"),
    [
        ({"status": "failed", "error": "loss is nan", "saved": 20}, "loss is nan", True),
        ({"status": "failed", "error": "loss is nan", "saved": -1}, "loss is nan", False),
        ({"status": "stopped"}, "stopped at step 40", True),
        ({"status": "interrupted"}, "interrupted at step 40", True),
        ({"status": "running", "updated": "2026-01-02T03:04:05"}, "killed at step 40", True),
    ],
)
def test_the_head_says_how_to_go_on(tmp_path: Path, status: Any, text: str, resume: bool) -> None:
    made = seen(tmp_path, status={**STATUS, **status})
    assert text in made.text
    assert ("Go on with: gradcli resume" in made.text) == resume
    assert "· expected test.accuracy >= 0.9, not due before the end" in made.text


def test_curves_have_points_for_the_script_and_numbers_for_readers(tmp_path: Path) -> None:
    made = seen(tmp_path)
    charts = drawing(made)["charts"]
    assert [[one["label"] for one in chart["series"]] for chart in charts] == [
        ["train", "train, smoothed", "val"],
        ["accuracy"],
        ["lr"],
    ]
    train = charts[0]["series"][0]
    assert (train["x"][:3], train["y"][:3]) == ([1, 2, 3], [2.0, 1.0, 0.66667])
    assert charts[0]["log"] and not charts[1]["log"]
    tables = [one for one in made.tags if one[0] == "table"]
    assert len(tables) >= len(charts)
    assert "Loss by step: train from 2.0000 to 0.0500" in str(made.tags)


def test_labels_of_any_kind_are_text(tmp_path: Path) -> None:
    """Each text that files hold, wherever the page shows it."""
    hostile: Any = {
        "status": {
            **STATUS,
            "status": SCRIPT,
            "metrics": {f"val.{SCRIPT}": 1.0, SCRIPT: SCRIPT},
            "missed": [SCRIPT],
            "baseline": {"answer": SCRIPT, "metrics": {SCRIPT: 1}, "unbeaten": [SCRIPT]},
        },
        "manifest": {**MANIFEST, "name": SCRIPT, "argv": [SCRIPT, SCRIPT], "device": SCRIPT},
        "log": [
            *LOG,
            evaluation(50, **{f"val.{SCRIPT}": 0.5}),
            step(50, loss=None, nonfinite={SCRIPT: SCRIPT}),
        ],
        "resolved": json.dumps({SCRIPT: SCRIPT, "expect": {SCRIPT: SCRIPT}}),
        "origins": {"values": {SCRIPT: {"value": SCRIPT, "origin": SCRIPT, "place": SCRIPT}}},
    }
    made = seen(tmp_path, **hostile)
    assert [tag for tag, _ in made.tags if tag == "img"] == []
    assert made.text.count(SCRIPT) > 10
    assert SCRIPT in [chart["series"][0]["label"] for chart in drawing(made)["charts"]]


@pytest.mark.parametrize("odd", [None, [], {}, "x", -1, 1e308, [[]], {"a": [1]}, [None], True])
def test_files_of_other_shapes_leave_the_page_whole(tmp_path: Path, odd: Any) -> None:
    keys = ("status", "step", "steps", "seconds", "metrics", "missed", "baseline", "error", "saved")
    names = ("name", "argv", "created", "versions", "device", "threads", "origin", "data", "forks")
    seen(
        tmp_path,
        status=dict.fromkeys(keys, odd),
        manifest=dict.fromkeys(names, odd),
        plan=dict.fromkeys(("layers", "parameters", "total", "model", "memory"), odd),
        origins={"values": odd},
        log=[
            dict.fromkeys(("event", "step", "loss"), odd),
            {"event": "step", "step": odd, "loss": odd},
            {"event": "step", "step": 1, "loss": odd, "lr": odd, "nonfinite": odd},
            {"event": "eval", "step": 1, "val.loss": odd},
            {"event": "sample", "step": 1, "prompt": odd, "text": odd},
        ],
    )


def test_a_run_of_which_nothing_is_left_has_a_page(tmp_path: Path) -> None:
    made = seen(tmp_path, status=None, manifest=None, log=None, resolved="")
    assert "log.jsonl is absent" in made.text


def test_a_damaged_log_is_drawn_as_far_as_it_goes(tmp_path: Path) -> None:
    log = [
        *LOG,
        b'{"event": "step", "step": 41, "loss": NaN}',
        b'{"event": "step", "step": 42, "loss": null, "nonfinite": {"loss": "nan"}}',
        b'{"event": "step", "step": 43, "text": "' + b"x" * 10_000_000 + b'"}',
        b"\x00\xff",
        b'{"event": "step", "step": 44, "loss": 1e999}',
        b'{"event": "step", "step": 45, "loss": 7.5}',
        b'{"event": "step", "st',
    ]
    made = seen(tmp_path, log=log)
    assert drawing(made)["charts"][0]["series"][0]["x"][-1] == 45
    assert "loss is nan at step 42" in made.text
    assert "1 line is longer than 1 MiB" in made.text


def test_a_live_page_may_ask_its_own_server(tmp_path: Path) -> None:
    [policy] = [
        one["content"] or ""
        for _, one in seen(tmp_path, live="/events?from=1-2-3").tags
        if one.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.endswith("; connect-src 'self'")
