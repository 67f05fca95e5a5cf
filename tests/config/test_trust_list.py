"""The list of own code that is trusted: who may write it, and what it does when it is broken."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gradcli.config import trust_list
from gradcli.config.trust import Trust
from gradcli.errors import ConfigError

CODE = Path("own.py")
HASH, OTHER = "a" * 64, "b" * 64
LINE = f"{HASH}  own.py\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the list will lie."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "gradcli" / "trusted"


def lines_of(remember: bool = False, sha256: str = HASH) -> list[str]:
    """What is said as a file is trained (or evaluated); its refusal is said too."""
    lines: list[str] = []
    try:
        Trust(everything=remember, remember=remember, say=lines.append).admit(CODE, sha256)
    except ConfigError as error:
        lines.append(error.message)
    return lines


def is_trusted(sha256: str = HASH) -> bool:
    return lines_of(sha256=sha256) == [f"runs own code own.py, sha256 {sha256[:16]}"]


def test_what_was_trained_is_trusted_from_then_on(file: Path) -> None:
    assert not is_trusted()
    assert lines_of(remember=True) == [
        f"runs own code own.py, sha256 {HASH[:16]}",
        f"it is trusted from now on: {file}",
    ]
    assert is_trusted()
    assert not is_trusted(OTHER)
    assert file.read_text() == LINE


def test_nothing_is_listed_twice(file: Path) -> None:
    lines_of(remember=True)
    assert lines_of(remember=True) == [f"runs own code own.py, sha256 {HASH[:16]}"]
    lines_of(remember=True, sha256=OTHER)
    assert file.read_text() == f"{LINE}{OTHER}  own.py\n"


def test_trusting_everything_once_leaves_nothing_behind(file: Path) -> None:
    Trust(everything=True).admit(CODE, HASH)
    assert not file.parent.parent.exists()


def test_nobody_else_may_read_or_write_it(file: Path) -> None:
    before = os.umask(0)
    try:
        lines_of(remember=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in file.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("name", ["trusted", "."])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_a_list_in_which_others_may_write_is_not_believed(file: Path, name: str, mode: int) -> None:
    lines_of(remember=True)
    one = file.parent / name
    one.chmod(one.stat().st_mode | mode)
    said, refusal = lines_of()
    assert said.startswith(f"warning: nothing is trusted: {file}: others may write in it (mode ")
    assert "was not run" in refusal
    assert "others may write in it" in lines_of(remember=True, sha256=OTHER)[-1]


def test_a_list_of_another_user_is_not_believed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines_of(remember=True)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert f"{file}: it belongs to user {owner}, not to you" in lines_of()[0]
    assert "belongs to user" in lines_of(remember=True, sha256=OTHER)[-1]


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (LINE[:-1], "its last line is torn"),
        (LINE[:40], "its last line is torn"),
        (f"{LINE}garbage\n", "its line 2 is no SHA-256 with a name"),
        (f"{LINE}\n{LINE}", "its line 2 is no SHA-256 with a name"),
        (LINE.replace("a", "A", 1), "its line 1 is no SHA-256 with a name"),
        (LINE.replace("own", "\0\xe9"), "its line 1 is no SHA-256 with a name"),
    ],
)
def test_a_damaged_list_trusts_nothing_and_stays_as_it_is(
    file: Path, contents: str, reason: str
) -> None:
    lines_of(remember=True)
    file.write_text(contents)
    said, refusal = lines_of()
    assert said == f"warning: nothing is trusted: {file}: {reason}"
    assert "was not run" in refusal
    said = lines_of(remember=True, sha256=OTHER)[-1]
    assert said == f"warning: own code is not remembered as trusted: {file}: {reason}"
    assert file.read_text() == contents


def test_a_list_of_endless_size_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines_of(remember=True)
    monkeypatch.setattr(trust_list, "MOST_BYTES", 20)
    assert "it has more than 20 bytes" in lines_of()[0]
