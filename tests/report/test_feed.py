"""What a feed tells of a run that goes on, ends, goes on elsewhere or cuts its log back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gradcli.report import feed
from gradcli.report.feed import Feed, Mark, mark_in, mark_of
from gradcli.train.lock import RunLock


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a log of two steps."""
    (tmp_path / "resolved.yaml").write_text("gradcli: 1\n")
    (tmp_path / "log.jsonl").write_text(line(1) + line(2))
    return tmp_path


def line(step: object, event: str = "step", **more: object) -> str:
    return json.dumps({"event": event, "step": step, "loss": 0.5, **more}) + "\n"


def append(run: Path, text: str) -> None:
    with (run / "log.jsonl").open("a") as log:
        log.write(text)


def following(run: Path) -> Feed:
    return Feed(run, mark_of(run))


def test_new_lines_are_told_once(run: Path) -> None:
    one = following(run)
    assert one.look() == ([], False)
    append(run, line(3, lr=0.1, seconds=4, epoch=0) + line(3, "eval", **{"val.loss": 0.25}))
    records, renew = one.look()
    assert records == [
        {"event": "step", "step": 3, "loss": 0.5, "lr": 0.1},
        {"event": "eval", "step": 3, "val.loss": 0.25},
    ]
    assert not renew
    assert one.look() == ([], False)
    assert one.mark == mark_of(run)


def test_a_line_is_told_when_it_is_whole(run: Path) -> None:
    one, text = following(run), line(3)
    append(run, text[:9])
    assert one.look() == ([], False)
    append(run, text[9:])
    assert [record["step"] for record in one.look().records] == [3]


def test_a_mark_goes_on_where_another_feed_was(run: Path) -> None:
    mark = mark_in(str(mark_of(run)))
    assert mark is not None
    append(run, line(3))
    assert [record["step"] for record in Feed(run, mark).look().records] == [3]


@pytest.mark.parametrize("text", ["", "1", "1-2", "1-2-3-4", "-1-2-3", "a-b-c", "9" * 20 + "-1-1"])
def test_what_is_no_mark_is_none(text: str) -> None:
    assert mark_in(text) is None


@pytest.mark.parametrize("offset", [10, 10**14])
def test_a_mark_of_another_log_renews_the_page(run: Path, offset: int) -> None:
    one = Feed(run, Mark(offset, 7, mark_of(run).checksum))
    assert one.look() == ([], True)
    assert one.look() == ([], False)


def test_the_first_line_renews_the_page_for_it_draws_the_first_curve(run: Path) -> None:
    (run / "log.jsonl").unlink()
    one = following(run)
    assert one.look() == ([], False)
    append(run, line(1))
    assert one.look() == ([], True)
    append(run, line(2))
    assert [record["step"] for record in one.look().records] == [2]


@pytest.mark.parametrize("longer", [False, True])
def test_a_log_that_is_cut_back_renews_the_page(run: Path, longer: bool) -> None:
    append(run, line(3))
    one = following(run)
    (run / "log.jsonl").write_text(line(1) + (line(2, lr=0.25) + line(3)) * longer)
    assert one.look() == ([], True)
    append(run, line(4))
    assert one.look().renew is False


def test_a_text_renews_the_page_which_shows_it(run: Path) -> None:
    one = following(run)
    append(run, line(3, "sample", prompt="a", text="b"))
    assert one.look() == ([], True)


def test_too_many_lines_are_left_to_a_new_page(run: Path) -> None:
    one = following(run)
    append(run, "".join(map(line, range(3, feed.MOST_RECORDS + 4))))
    assert one.look() == ([], True)
    assert one.look() == ([], False)


@pytest.mark.parametrize("name", feed.STATE_FILES)
def test_any_other_file_renews_the_page(run: Path, name: str) -> None:
    one = following(run)
    (run / name).write_text("{}")
    assert one.look() == ([], True)
    assert one.look() == ([], False)


def test_a_run_that_begins_or_ends_renews_the_page(run: Path) -> None:
    one = following(run)
    lock = RunLock(run / "lock")
    assert one.look().renew
    lock.release()
    assert one.look().renew
    assert not one.look().renew


def test_only_finite_figures_of_curves_are_told(run: Path) -> None:
    one = following(run)
    append(run, '{"event": "step", "step": 3, "loss": NaN}\n' + line(4, loss=None, lr="0.1"))
    append(run, line("5") + line(True) + line(-6) + line(2**60) + line(7, "odd") + "[]\n17\n")
    append(run, line(8, loss=1e999) + line(9, loss=True) + "x" * 100 + "\n" + line(10))
    assert one.look() == ([{"event": "step", "step": 10, "loss": 0.5}], False)


def test_a_log_that_is_no_file_is_empty(run: Path) -> None:
    (run / "log.jsonl").unlink()
    os.mkfifo(run / "log.jsonl")
    assert mark_of(run).offset == 0
    assert following(run).look() == ([], False)
    assert mark_of(run / "nowhere").offset == 0
