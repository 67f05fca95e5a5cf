"""A log as a resume brings it back: what is cut, what is moved aside, what goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gradcli.train.log_recovery import recover

TORN = b'{"event": "step", "st'


def line(step: int, event: str = "step") -> bytes:
    return (json.dumps({"event": event, "step": step, "loss": 0.5}) + "\n").encode()


def lines(*steps: int) -> bytes:
    return b"".join(map(line, steps))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def files(log: Path) -> list[str]:
    return sorted(path.name for path in log.parent.iterdir())


@pytest.mark.parametrize(
    ("content", "good", "note"),
    [
        (lines(1, 2, 3), lines(1, 2, 3), None),
        (b"", b"", None),
        (lines(1, 2) + TORN, lines(1, 2), "cut the torn last line of log.jsonl"),
        (lines(1) + b"{", lines(1), "cut the torn last line of log.jsonl"),
        (lines(1, 4), lines(1), "cut 1 line of log.jsonl after step 3"),
        (lines(1, 4) + TORN, lines(1), "cut 2 lines of log.jsonl after step 3"),
        (lines(1, 3) + line(3, "eval"), lines(1, 3) + line(3, "eval"), None),
        (lines(3) + line(3, "test"), lines(3), "cut 1 line of log.jsonl after step 3"),
        (lines(1, 2).rstrip(b"\n"), lines(1, 2), None),
        (lines(1, 2).replace(b"\n", b"\r\n"), lines(1, 2).replace(b"\n", b"\r\n"), None),
    ],
)
def test_a_torn_tail_and_later_steps_are_cut_in_place(
    log: Path, content: bytes, good: bytes, note: str | None
) -> None:
    log.write_bytes(content)
    assert recover(log, 3, 3) == ([] if note is None else [note])
    assert log.read_bytes() == good
    assert files(log) == ["log.jsonl"]


def test_an_evaluation_that_the_checkpoint_does_not_hold_is_made_again(log: Path) -> None:
    log.write_bytes(lines(1, 2) + line(2, "eval"))
    assert recover(log, 2, -1) == ["cut 1 line of log.jsonl after step 2"]
    assert log.read_bytes() == lines(1, 2)


def test_a_text_stays_where_its_evaluation_stays(log: Path) -> None:
    content = lines(1, 2) + line(2, "eval") + line(2, "sample")
    log.write_bytes(content)
    assert recover(log, 2, 2) == []
    assert log.read_bytes() == content
    assert recover(log, 2, 1) == ["cut 2 lines of log.jsonl after step 2"]
    assert log.read_bytes() == lines(1, 2)


@pytest.mark.parametrize(
    ("content", "good", "numbers"),
    [
        (lines(1, 2) + b"garbage\n" + lines(3, 4), lines(1, 2, 3, 4), "line 3 is no record"),
        (lines(1) + b"\xff\xfe\n" + lines(2), lines(1, 2), "line 2 is no record"),
        (lines(1) + b'{"event": "step", "step": 2, "loss": NaN}\n', lines(1), "line 2 is"),
        (lines(1) + b'{"event": "step", "step": true}\n', lines(1), "line 2 is"),
        (lines(1) + b'{"event": "step", "step": -1}\n', lines(1), "line 2 is"),
        (lines(1) + b'{"step": 2}\n' + b"[3]\n\n" + lines(2), lines(1, 2), "lines 2, 3, 4 are"),
        (lines(1) + b"\0" * 4096, lines(1), "line 2 is"),
        (lines(1) + b"\0" * 99 + lines(2, 3), lines(1, 3), "line 2 is"),
        (lines(1, 2, 1, 2, 3), lines(1, 2, 3), "lines 3, 4 are"),
        (lines(1, 999999, 2, 3), lines(1, 2, 3), "line 2 is"),
        (b"another file", b"", "line 1 is"),
        (b"{" * 99_999 + b"\n" + lines(1), lines(1), "line 1 is"),
        (b"x\n" * 9 + lines(1), lines(1), "lines 1, 2, 3, 4, 5, ... are"),
    ],
)
def test_a_damaged_log_is_kept_whole_and_its_good_lines_go_on(
    log: Path, content: bytes, good: bytes, numbers: str
) -> None:
    log.write_bytes(content)
    (note,) = recover(log, 9, 9)
    assert note.startswith(f"warning: log.jsonl is damaged: {numbers}")
    assert "the whole file is log.jsonl.damaged-1 now" in note
    assert (log.parent / "log.jsonl.damaged-1").read_bytes() == content
    assert log.read_bytes() == good
    assert recover(log, 9, 9) == []


def test_what_was_moved_aside_is_never_overwritten(log: Path) -> None:
    (log.parent / "log.jsonl.damaged-1").write_bytes(b"an older one")
    (log.parent / "log.jsonl.damaged-2").mkdir()
    log.write_bytes(b"x\n" + lines(1, 4))
    cut, damage = recover(log, 3, 3)
    assert cut == "cut 1 line of log.jsonl after step 3"
    assert "log.jsonl.damaged-3 now, and log.jsonl goes on with 1 good line" in damage
    assert (log.parent / "log.jsonl.damaged-1").read_bytes() == b"an older one"
    assert log.read_bytes() == lines(1)


def test_a_kill_before_the_new_log_leaves_one_copy(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write_bytes(content := b"x\n" + lines(1))
    usual = os.replace

    def killed(source: Path, target: Path) -> None:
        if Path(target) == log:
            raise KeyboardInterrupt
        usual(source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        patch.setattr(Path, "replace", killed)
        recover(log, 3, 3)
    assert log.read_bytes() == content
    recover(log, 3, 3)
    assert files(log) == ["log.jsonl", "log.jsonl.damaged-1"]
    assert log.read_bytes() == lines(1)


@pytest.mark.parametrize("kind", ["a symbolic link", "a directory", "no regular file"])
def test_what_is_no_file_is_moved_aside_unread(log: Path, kind: str, tmp_path: Path) -> None:
    if kind == "a directory":
        (log / "inner").mkdir(parents=True)
    elif kind == "a symbolic link":
        (tmp_path / "elsewhere").write_bytes(lines(1))
        log.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(log)
    (note,) = recover(log, 3, 3)
    assert note == (
        f"warning: log.jsonl is {kind}; it is log.jsonl.damaged-1 now, and a new log begins"
    )
    assert not os.path.lexists(log)
    assert os.path.lexists(tmp_path / "log.jsonl.damaged-1")


def test_a_log_that_is_not_there_is_none_to_recover(log: Path) -> None:
    assert recover(log, 3, 3) == []
    assert files(log) == []
