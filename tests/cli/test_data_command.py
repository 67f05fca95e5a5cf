"""`gradcli data`: what it lists, prepares, verifies and removes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from measured_data import CONFIG, Measured, write_rows
from points import Ended, gradcli

from gradcli.data import DATASETS
from gradcli.data.prepared.lock import PreparationLock

__all__ = ["gradcli"]
Command = Callable[..., Ended]


@pytest.fixture
def measured(gradcli: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in a folder with a config whose data is prepared into ./cache."""
    monkeypatch.setitem(DATASETS, "measured", Measured)
    write_rows(Path("rows.txt"))
    Path("measured.yaml").write_text(CONFIG)
    return gradcli


def sets() -> list[Path]:
    return sorted(path for path in Path("cache").glob("measured-*") if path.is_dir())


def test_prepare_makes_what_a_training_opens(measured: Command) -> None:
    ended = measured("data", "prepare", "measured.yaml")
    [folder] = sets()
    assert (ended.code, ended.out) == (0, f"prepared: {folder.absolute()}\n")
    assert re.search(r"preparing rows\.txt: 400 rows in \d+\.\d s\n", ended.err)
    again = measured("train", "measured.yaml")
    assert again.code == 0
    assert "preparing" not in again.err
    assert sets() == [folder]


def test_data_that_needs_no_preparing_is_named(measured: Command) -> None:
    ended = measured("data", "prepare", "dots.yaml")
    assert (ended.code, "nothing to prepare" in ended.out) == (0, True)
    assert measured("data", "prepare", "dots.yaml", "--json").json["sets"] == []


def test_the_list_names_size_and_source(measured: Command) -> None:
    assert measured("data", "list", "--cache", "cache").out.startswith("no prepared data in ")
    measured("data", "prepare", "measured.yaml")
    ended = measured("data", "list", "--cache", "cache")
    assert re.search(r"^measured-[0-9a-f]{16} +ready +.* kB +0 s ago +rows\.txt$", ended.out, re.M)
    [row] = measured("data", "list", "--cache", "cache", "--json").json["sets"]
    assert (row["state"], row["files"]) == ("ready", [str(Path("rows.txt").absolute())])


def test_the_users_cache_is_the_default(measured: Command, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    Path("measured.yaml").write_text(CONFIG.replace(", cache: cache", ""))
    measured("data", "prepare", "measured.yaml")
    assert str(tmp_path / "mine" / "gradcli") in measured("data", "list").out


def test_verify_reads_every_byte(measured: Command) -> None:
    measured("data", "prepare", "measured.yaml")
    ended = measured("data", "verify", "--cache", "cache")
    assert (ended.code, ended.out) == (0, f"whole: {sets()[0].absolute()}\n")
    path = sets()[0] / "targets.npy"
    found = path.stat()
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-8] + bytes(7) + b"\1")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    ended = measured("data", "verify", "--cache", "cache")
    assert (ended.code, "targets.npy was changed" in ended.err) == (3, True)
    assert not measured("data", "verify", "--cache", "cache", "--json").json["sets"][0]["ok"]


def test_clean_lists_first_and_removes_with_yes(measured: Command) -> None:
    measured("data", "prepare", "measured.yaml")
    Path("cache", "mine").mkdir()
    ended = measured("data", "clean", "--cache", "cache")
    assert "would remove" in ended.out
    assert len(sets()) == 1
    left = Path("cache", f".{sets()[0].name}.77-0123abcd")
    left.mkdir()
    Path("cache", f"{sets()[0].name}.lock").touch()
    ended = measured("data", "clean", "--cache", "cache", "--yes")
    assert (ended.code, "removed 2 sets" in ended.out) == (0, True)
    assert {path.name for path in Path("cache").iterdir()} - {"known"} == {"mine"}
    assert measured("data", "clean", "--cache", "cache").out.startswith("nothing to remove")


def test_a_set_in_use_of_late_stays_where_the_old_go(measured: Command) -> None:
    measured("data", "prepare", "measured.yaml")
    [old] = sets()
    write_rows(Path("rows.txt"), 24)
    measured("data", "prepare", "measured.yaml")
    os.utime(old / "facts.json", (1e9, 1e9))
    assert measured("data", "clean", "--older-than", "30", "--yes", "--cache", "cache").code == 0
    assert len(sets()) == 1
    assert not old.exists()


def test_a_set_that_is_being_made_stays(measured: Command) -> None:
    measured("data", "prepare", "measured.yaml")
    [one] = sets()
    with PreparationLock(one.with_name(f"{one.name}.lock"), None):
        ended = measured("data", "clean", "--yes", "--cache", "cache")
        half = Path("cache", f".{one.name}.77-0123abcd")
        half.mkdir()
        again = measured("data", "clean", "--yes", "--cache", "cache")
        assert "in work" in measured("data", "list", "--cache", "cache").out
    assert ended.code == again.code == 0
    assert one.exists()
    assert half.exists()


def test_the_lock_of_a_set_that_is_being_made_stays_and_one_that_nobody_holds_goes(
    measured: Command,
) -> None:
    Path("cache").mkdir()
    locks = [Path("cache", f"measured-{number * 16}.lock") for number in "01"]
    locks[1].touch()
    with PreparationLock(locks[0], None):
        assert measured("data", "clean", "--yes", "--cache", "cache").code == 0
        assert [lock.exists() for lock in locks] == [True, False]


def test_a_time_that_no_calendar_has_is_no_error(measured: Command) -> None:
    measured("data", "prepare", "measured.yaml")
    os.utime(sets()[0] / "facts.json", (1e11, 1e12))
    assert measured("data", "list", "--cache", "cache").code == 0


def test_sets_of_another_version_are_left_to_it(measured: Command) -> None:
    measured("data", "prepare", "measured.yaml")
    [one] = sets()
    other = one.with_name("measured-0123456789abcdef")
    shutil.copytree(one, other)
    text = (other / "facts.json").read_text().replace('"format": 1', '"format": 2')
    (other / "facts.json").chmod(0o644)
    (other / "facts.json").write_text(text)
    assert "other version" in measured("data", "list", "--cache", "cache").out
    assert measured("data", "verify", "--cache", "cache").code == 0
    assert measured("train", "measured.yaml").code == 0
    assert (other / "facts.json").read_text() == text


def test_what_to_do_must_be_said(measured: Command) -> None:
    ended = measured("data")
    assert (ended.code, "data list, prepare, verify or clean" in ended.err) == (2, True)
    assert measured("data", "lst").code == 2


def test_fetch_is_reserved(measured: Command) -> None:
    ended = measured("data", "fetch", "mnist")
    assert (ended.code, "reserved" in ended.err) == (2, True)
