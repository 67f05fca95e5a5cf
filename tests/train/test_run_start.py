"""Which run is the newest: in every time zone, at the end of summer time, with a clock set back."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from gradcli.errors import RunError
from gradcli.train import run_start
from gradcli.train.directory import create
from gradcli.train.run_name import find
from gradcli.train.run_start import next_start, start_of

Clock = Callable[[str], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """`clock("2026-10-25T00:30:00")` sets the clock, in UTC."""

    def at(text: str) -> None:
        class Fixed(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(tz)

        monkeypatch.setattr(run_start, "datetime", Fixed)

    return at


def begin(runs: Path, name: str = "a") -> Path:
    with create(runs, name) as run:
        run.write_config([], {"name": name})
        return run.path


def old(runs: Path, folder: str, created: str | None, name: str = "a") -> Path:
    """A run of an older version, named by the local time."""
    path = runs / name / folder
    (path / "checkpoints").mkdir(parents=True)
    (path / "resolved.yaml").touch()
    if created is not None:
        (path / "manifest.json").write_text(json.dumps({"created": created}))
    return path


def test_a_run_from_new_york_is_newer_than_an_earlier_one_from_tokyo(
    tmp_path: Path, clock: Clock, zone: Clock
) -> None:
    zone("Asia/Tokyo")
    clock("2026-05-01T10:00:00")
    first = begin(tmp_path)
    zone("America/New_York")
    clock("2026-05-01T11:00:00")
    second = begin(tmp_path)
    assert (first.name, second.name) == ("20260501-100000Z-001", "20260501-110000Z-001")
    assert find(tmp_path, "last").path == find(tmp_path, "a").path == second


def test_old_runs_are_ordered_by_what_their_manifests_say(tmp_path: Path, clock: Clock) -> None:
    tokyo = old(tmp_path, "20260501-190000-001", "2026-05-01T19:00:00+09:00")
    newer = old(tmp_path, "20260501-070000-001", "2026-05-01T07:00:00-04:00", "b")
    assert find(tmp_path, "last").path == newer
    assert start_of(tokyo).time == datetime(2026, 5, 1, 10, tzinfo=UTC)
    clock("2026-05-01T10:30:00")  # between the two: later than both
    assert find(tmp_path, "last").path != begin(tmp_path, "c").parent
    assert find(tmp_path, "last").path.parent.name == "c"


@pytest.mark.parametrize("created", [None, "", "yesterday", 7, "9999-12-31T23:59:59-23:00"])
def test_an_old_run_whose_manifest_does_not_say_is_of_local_time(
    tmp_path: Path, zone: Clock, created: str | None
) -> None:
    zone("Asia/Tokyo")
    run = old(tmp_path, "20260501-190000-001", created)
    assert start_of(run).time == datetime(2026, 5, 1, 10, tzinfo=UTC)


def test_at_the_end_of_summer_time_the_later_run_is_the_newer(
    tmp_path: Path, clock: Clock, zone: Clock
) -> None:
    zone("Europe/Berlin")
    clock("2026-10-25T00:30:00")  # 02:30, summer time
    begin(tmp_path)
    clock("2026-10-25T01:10:00")  # 02:10, an hour after
    second = begin(tmp_path)
    assert find(tmp_path, "last").path == second
    earlier = old(tmp_path, "20251026-025000-001", "2025-10-26T02:50:00+02:00")
    later = old(tmp_path, "20251026-021000-001", "2025-10-26T02:10:00+01:00")
    assert start_of(earlier) < start_of(later)


def test_with_a_clock_set_back_and_in_one_second_the_later_run_is_the_newer(
    tmp_path: Path, clock: Clock
) -> None:
    for now, name, folder in (
        ("2026-05-01T10:00:00.9", "b", "20260501-100000Z-001"),
        ("2026-05-01T10:00:00", "a", "20260501-100000Z-002"),
        ("2026-04-01T10:00:00", "b", "20260501-100000Z-003"),
        ("1970-01-01T00:00:00", "a", "20260501-100000Z-004"),
        ("2026-05-01T10:00:01", "a", "20260501-100001Z-001"),
    ):
        clock(now)
        run = begin(tmp_path, name)
        assert run.name == folder
        assert find(tmp_path, "last").path == run


def test_after_999_runs_of_a_second_comes_the_next_second(tmp_path: Path, clock: Clock) -> None:
    clock("2026-05-01T10:00:00")
    old(tmp_path, "20260501-100000Z-999", None)
    assert begin(tmp_path).name == "20260501-100001Z-001"


@pytest.mark.parametrize("folder", ["99991231-235959Z-999", "00000000-000000Z-001", "x"])
def test_a_folder_of_no_time_hinders_nothing(tmp_path: Path, clock: Clock, folder: str) -> None:
    clock("2026-05-01T10:00:00")
    old(tmp_path, folder, None)
    assert begin(tmp_path).name == "20260501-100000Z-001"


def test_what_stands_in_the_way_of_every_number_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Path.mkdir

    def mkdir(path: Path, *args: object, **options: object) -> None:
        if "Z-" in path.name:
            raise FileExistsError
        usual(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(RunError, match="already has 999 runs of this second"):
        begin(tmp_path)


def test_only_the_newest_of_many_old_runs_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 29):
        old(tmp_path, f"202602{day:02d}-100000-001", f"2026-02-{day:02d}T10:00:00+00:00")
    reads: list[Path] = []
    monkeypatch.setattr(run_start, "read_json", lambda file: reads.append(file) or {})
    next_start(tmp_path, "a")
    assert len(set(reads)) <= timedelta(days=3) / timedelta(days=1)
