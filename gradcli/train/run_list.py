"""List the runs of a folder: the status of each, and its size.

It does not import the engine.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.errors import ConfigError, RunError
from gradcli.registry import did_you_mean
from gradcli.train.json_file import read_json
from gradcli.train.lock import is_held
from gradcli.train.run_start import NAME, NEVER, RUN_ID, Start, start_of
from gradcli.wording import join_words

KILLED, UNKNOWN = "killed", "unknown"
STATUSES = ("running", "stopped", "interrupted", "failed", "finished")  # into status.json
STATES = (*STATUSES, KILLED, UNKNOWN)
# Figures of which less is better, by their names after `val.`. A test compares them with the table
# of metrics, which would import the engine.
LOWER = frozenset(
    {
        "loss",
        "log_loss",
        "brier",
        "perplexity",
        "bits_per_character",
        "bits_per_byte",
        "mse",
        "rmse",
        "mae",
        "mape",
        "median_error",
    }
)
LONGEST = 100  # letters of a figure's name
COLUMNS = ("name", "status", "step", "age", "size")


@dataclass(frozen=True)
class RunFigure:
    """A figure of a run, such as `val.accuracy`.

    `better` is `higher` or `lower` if the figure judges the run, else "".
    """

    metric: str
    value: float
    better: str = ""


@dataclass(frozen=True)
class RunSummary:
    """A run in a list.

    Attributes:
        status: as in status.json; `killed` if that says `running` and no process holds the lock.
        best: the figure that judges the run, at its best step; for a run that keeps no best
            checkpoint preferably a figure of val that is no loss.
        size: the bytes of all its files.
    """

    path: Path
    start: Start
    status: str
    step: int | None
    steps: int | None
    best: RunFigure | None
    metrics: Mapping[str, float]
    size: int

    @property
    def name(self) -> str:
        """The run's name, which other runs may share."""
        return self.path.parent.name

    @property
    def created(self) -> datetime | None:
        """When it began, if its name is a time."""
        return None if self.start.time == NEVER else self.start.time

    def figure(self, metric: str) -> RunFigure | None:
        """The best value of a figure, else the last; None if the run lacks it."""
        if self.best is not None and self.best.metric == metric:
            return self.best
        value = self.metrics.get(metric)
        return None if value is None else RunFigure(metric, value)


def direction(metric: str) -> str:
    """Which way a figure of gradcli's own is better: `higher` or `lower`."""
    return "lower" if metric.rpartition(".")[2] in LOWER else "higher"


def direction_in(runs: Sequence[RunSummary], metric: str) -> str:
    """The same for any figure, such as a user's own metric: a run that it judges knows."""
    judges = (run.best for run in runs if run.best is not None)
    directions = (figure.better for figure in judges if figure.metric == metric and figure.better)
    return next(directions, direction(metric))


def merit_of(value: float, better: str) -> float:
    """A number that is higher the better a figure is."""
    return value if better == "higher" else -value


def runs_in(folder: Path) -> list[RunSummary]:
    """Every run below a folder, the newest first; links are not followed.

    Raises:
        RunError: the folder cannot be read.
    """
    try:
        paths = [
            run
            for name in _folders(folder, NAME.fullmatch)
            for run in _folders(name, RUN_ID.fullmatch)
            if (run / "resolved.yaml").is_file()
        ]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"cannot read {error.filename or folder}: {error.strerror}") from error
    return sorted(map(read_run, paths), key=lambda run: run.start, reverse=True)


def _folders(folder: Path, matches: Any) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        names = [
            entry.name
            for entry in entries
            if matches(entry.name) and entry.is_dir(follow_symlinks=False)
        ]
    return (folder / name for name in names)


def read_run(path: Path) -> RunSummary:
    """Read a run, whatever its status.json holds."""
    status = read_json(path / "status.json")
    metrics = _metrics(status.get("metrics"))
    return RunSummary(
        path,
        start_of(path),
        status_of(path, status),
        _count(status.get("step")),
        _count(status.get("steps")),
        _best(status.get("best")) or _main_figure(metrics),
        metrics,
        size_of(path),
    )


def status_of(path: Path, record: Mapping[str, Any]) -> str:
    """What a run with this record in status.json is doing, or how it ended."""
    status = record.get("status")
    if status == "running" or not record:
        if is_held(path / "lock"):
            return "running"
        incomplete = status == "running" or not os.path.lexists(path / "status.json")
        return KILLED if incomplete else UNKNOWN
    return status if status in STATUSES else UNKNOWN


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    with contextlib.suppress(OverflowError):
        return float(value) if math.isfinite(value) else None
    return None


def _metrics(record: object) -> dict[str, float]:
    pairs = record.items() if isinstance(record, dict) else ()
    numbers = {str(name): _number(value) for name, value in pairs if len(str(name)) <= LONGEST}
    return {name: value for name, value in numbers.items() if value is not None}


def _best(record: object) -> RunFigure | None:
    """The best figure in status.json; older versions have none."""
    if not isinstance(record, dict):
        return None
    metric, value, better = record.get("metric"), _number(record.get("value")), record.get("better")
    if not isinstance(metric, str) or len(metric) > LONGEST or value is None:
        return None
    return RunFigure(metric, value, better if better in ("higher", "lower") else "")


def _main_figure(metrics: Mapping[str, float]) -> RunFigure | None:
    """The main figure if the run has no best: of val before test, a metric before a loss."""

    def rank(metric: str) -> tuple[bool, bool]:
        return not metric.startswith("val."), metric.endswith(".loss")

    main = min(metrics, key=rank, default=None)
    return None if main is None else RunFigure(main, metrics[main])


def size_of(path: Path) -> int:
    """The bytes of all files below a folder; links are not followed."""
    total, folders = 0, [os.fspath(path)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    with contextlib.suppress(OSError):  # it went away since
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def select(runs: Sequence[RunSummary], name: str | None, folder: Path) -> list[RunSummary]:
    """The runs of this name, or all if it is None.

    Raises:
        RunError: there is none.
    """
    selection = [run for run in runs if name in (None, run.name)]
    if name is None or selection:
        return selection
    quote = ascii(name)[1:-1]
    if not runs:
        raise RunError(f"no run '{quote}': {folder} holds no runs yet; `gradcli train` makes one")
    names = sorted({run.name for run in runs})
    cure = did_you_mean(name, names, f"known: {join_words(names)}")
    raise RunError(f"no run is called '{quote}' in {folder}; {cure}")


def sorted_by(runs: Sequence[RunSummary], column: str | None) -> list[RunSummary]:
    """The runs by a column or a figure, the best, newest or largest first.

    Runs that lack it come last.

    Raises:
        ConfigError: no run has such a figure.
    """
    if column is None or column == "age":
        return sorted(runs, key=lambda run: run.start, reverse=True)
    if column == "size":
        return sorted(runs, key=lambda run: -run.size)
    if column == "step":
        return sorted(runs, key=lambda run: -1 if run.step is None else run.step, reverse=True)
    if column in ("name", "status"):
        return sorted(runs, key=lambda run: str(getattr(run, column)))
    figures = {run.path: run.figure(column) for run in runs}
    better = direction_in(runs, column)
    if runs and not any(figures.values()):
        columns = sorted({name for run in runs for name in run.metrics} | {*COLUMNS})
        cure = did_you_mean(column, columns, f"known: {join_words(columns, 20)}")
        raise ConfigError(f"--sort: no run has a figure '{ascii(column)[1:-1]}'; {cure}")

    def merit(run: RunSummary) -> float:
        figure = figures[run.path]
        return math.inf if figure is None else -merit_of(figure.value, better)

    return sorted(runs, key=merit)
