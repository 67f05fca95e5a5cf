"""The list of own code that is trusted: who may write it, and what it does when it is broken."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
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


def link(file: Path) -> None:
    file.with_name("elsewhere").write_text(LINE)
    file.symlink_to("elsewhere")


def test_a_link_is_called_one(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True)
    link(file)
    assert lines_of()[0].endswith("trusted: it is a symbolic link")


@pytest.mark.parametrize("make", [link, os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_not_believed(file: Path, make: Callable[[Path], None]) -> None:
    file.parent.mkdir(mode=0o700, parents=True)
    make(file)
    assert lines_of()[0].startswith(f"warning: nothing is trusted: {file}: ")
    assert "not remembered" in lines_of(remember=True)[-1]


def test_a_home_that_cannot_be_written_is_only_a_warning(file: Path) -> None:
    file.parent.parent.write_text("a file in place of the folder")
    assert len(lines_of(remember=True)) == 2
    assert "not remembered" in lines_of(remember=True)[-1]


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES])
def test_a_full_disk_is_only_a_warning(
    file: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    lines_of(remember=True)

    def full(*arguments: object, **options: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(trust_list, "write_file", full)
    said = lines_of(remember=True, sha256=OTHER)[-1]
    assert said.endswith(f"not remembered as trusted: {file}: {os.strerror(reason)}")
    assert is_trusted()


def test_a_lock_that_is_never_free_is_only_a_warning(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines_of(remember=True)
    monkeypatch.setattr(trust_list, "SECONDS", 0.05)
    with file.with_name("lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        said = lines_of(remember=True, sha256=OTHER)[-1]
    assert said.endswith("another process keeps it locked")
    assert is_trusted()


@pytest.mark.parametrize("home", ["", "/", "relative"])
def test_without_a_home_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative/too")
    monkeypatch.setenv("HOME", home)
    assert lines_of(remember=True)[-1].endswith("no home folder is known; XDG_STATE_HOME names one")
    assert "was not run" in lines_of()[0]


def test_without_the_variable_it_lies_in_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    lines_of(remember=True)
    assert (tmp_path / ".local/state/gradcli/trusted").read_text() == LINE


def test_many_processes_lose_no_line(file: Path) -> None:
    program = (
        "import hashlib, sys\n"
        "from gradcli.config.trust import Trust\n"
        "from pathlib import Path\n"
        "for i in range(10):\n"
        "    sha256 = hashlib.sha256(f'{sys.argv[1]} {i}'.encode()).hexdigest()\n"
        "    Trust(everything=True, remember=True, say=print).admit(Path(f'{i}.py'), sha256)\n"
    )
    began = [
        subprocess.Popen([sys.executable, "-c", program, str(i)], stdout=subprocess.PIPE, text=True)
        for i in range(4)
    ]
    said = "".join(one.communicate(timeout=120)[0] for one in began)
    assert "warning" not in said
    listed = re.findall(r"^[0-9a-f]{64}  \d\.py$", file.read_text(), re.MULTILINE)
    assert len(set(listed)) == len(listed) == file.read_text().count("\n") == 40


def test_what_a_killed_process_left_is_cleared_away(file: Path) -> None:
    lines_of(remember=True)
    (file.parent / ".gradcli-0123456789abcdef.tmp").write_text("half")
    lines_of(remember=True, sha256=OTHER)
    assert sorted(one.name for one in file.parent.iterdir()) == ["lock", "trusted"]
    assert is_trusted()


def test_no_name_of_a_file_breaks_the_list(file: Path) -> None:
    Trust(everything=True, remember=True).admit(Path("a b\n\x1b\udce9.py"), HASH)
    assert re.fullmatch(r"a{64}  a_b___\.py\n", file.read_text())
    assert is_trusted()
