"""Start times of runs: the name of a run's folder, and which run is the newest.

The name is date, time and a number, in UTC: `20260102-030405Z-001`. Older versions wrote the local
time, without the Z; their manifests say when that was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from gradcli.train.json_file import read_json

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
RUN_ID = re.compile(r"([0-9]{8}-[0-9]{6})(Z?)-([0-9]{3})")
STAMP = "%Y%m%d-%H%M%S"
MOST = 999  # runs of one second
NEVER = datetime.min.replace(tzinfo=UTC)
LAST = datetime(9999, 1, 1, tzinfo=UTC)  # no run is named after a later one
APART = timedelta(days=2)  # local times of one instant differ by 26 hours at most


class Start(NamedTuple):
    """The sort key of runs, oldest first."""

    time: datetime
    number: int
    name: str

    @property
    def folder(self) -> str:
        """The name of the run's folder."""
        return f"{self.time.strftime(STAMP)}Z-{self.number:03d}"

    def next(self) -> Start:
        """The next number, or the next second."""
        if self.number < MOST:
            return self._replace(number=self.number + 1)
        return self._replace(time=self.time + timedelta(seconds=1), number=1)


def newest(runs: Iterable[Path]) -> Path | None:
    """The run that began last, by the time and number in its name."""
    stamps = {run: _stamp(run) for run in runs}
    latest = max(stamps.values(), default=NEVER)
    near = [run for run, stamp in stamps.items() if latest - stamp <= APART]
    return max(near, key=start_of, default=None)


def start_of(run: Path) -> Start:
    """When a run began; an old one by its manifest, else by this machine's local time."""
    match, stamp = RUN_ID.fullmatch(run.name), _stamp(run)
    if match is None or stamp == NEVER:
        return Start(NEVER, 0, run.parent.name)
    time = stamp if match[2] else _created(run) or _as_local(stamp)
    return Start(time, int(match[3]), run.parent.name)


def _stamp(run: Path) -> datetime:
    """The time in a run's name, as if it were UTC."""
    match = RUN_ID.fullmatch(run.name)
    iso = match[1].replace("-", "T") if match else ""
    try:
        return datetime.fromisoformat(iso).replace(tzinfo=UTC)
    except ValueError:
        return NEVER


def _created(run: Path) -> datetime | None:
    """The start in the manifest, where it says one."""
    try:
        return datetime.fromisoformat(read_json(run / "manifest.json")["created"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _as_local(stamp: datetime) -> datetime:
    try:
        return stamp.replace(tzinfo=None).astimezone(UTC)
    except (ValueError, OverflowError, OSError):  # at the ends of the calendar
        return stamp


def next_start(runs: Path, name: str) -> Start:
    """The start of a new run: now, but later than every run there even if a clock went back."""
    now = Start(datetime.now(UTC).replace(microsecond=0), 1, name)
    try:
        last = newest(
            run for folder in runs.iterdir() if folder.is_dir() for run in folder.iterdir()
        )
    except OSError:  # not there yet, or somebody else's
        return now
    before = now if last is None else start_of(last)
    if last is None or before.time >= LAST:
        return now
    return max(now, before.next()._replace(name=name))
