"""Clean up old runs: choose which may go, and remove each so that no half of it is left."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.errors import RunError
from gradcli.train.lock import RunLock, is_held
from gradcli.train.run_list import RunFigure, RunSummary, direction_in, merit_of
from gradcli.train.run_start import NAME, RUN_ID
from gradcli.train.small_file import read_small

ASIDE = ".removed-"  # begins no run's name
MENTION = re.compile(rf"({NAME.pattern})/({RUN_ID.pattern})")
PRETRAINED = re.compile(r"^pretrained:(.*\n(?:[ \t#-].*\n?|\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Cleaning:
    """The runs to remove, oldest first, and the old runs that stay, each with the reason."""

    go: Sequence[RunSummary]
    stay: Sequence[tuple[RunSummary, str]]


def plan(runs: Sequence[RunSummary], keep: int, name: str | None = None) -> Cleaning:
    """Plan to remove all but the `keep` newest of each name; `runs` are sorted newest first.

    A run stays if it is in use, the best of its name, or the start of a run that stays. So a second
    cleaning, even at the same time, removes no more.

    Raises:
        RunError: the config of a run that stays cannot be read.
    """
    old = [
        run for same in by_name(runs).values() for run in same[keep:] if name in (None, run.name)
    ]
    reasons: dict[Path, str] = {}
    for same in by_name(runs).values():
        reasons |= {
            run.path: f"the best of its name, {_format(figure)}" for run, figure in bests(same)
        }
    reasons |= {run.path: "it is in use" for run in old if is_held(run.path / "lock")}
    _keep_begins(runs, old, reasons)
    go = [run for run in old if run.path not in reasons]
    stay = [(run, reasons[run.path]) for run in old if run.path in reasons]
    return Cleaning(sorted(go, key=lambda run: run.start), stay)


def by_name(runs: Sequence[RunSummary]) -> dict[str, list[RunSummary]]:
    """Runs by their name, in their order."""
    result: dict[str, list[RunSummary]] = {}
    for run in runs:
        result.setdefault(run.name, []).append(run)
    return result


def bests(runs: Sequence[RunSummary]) -> Iterator[tuple[RunSummary, RunFigure]]:
    """The best run by each figure that judges one of them; the first of equal ones."""
    metrics = dict.fromkeys(run.best.metric for run in runs if run.best is not None)
    for metric in metrics:
        better = direction_in(runs, metric)
        figures = [(run, figure) for run in runs if (figure := run.figure(metric)) is not None]
        yield max(figures, key=lambda pair: merit_of(pair[1].value, better))


def _format(figure: RunFigure) -> str:
    return f"{figure.metric} {figure.value:.4g}"


def _keep_begins(
    runs: Sequence[RunSummary], old: Sequence[RunSummary], reasons: dict[Path, str]
) -> None:
    """Add to `reasons` the runs from which staying runs began, directly or not."""
    names = by_name(runs)
    by_folder = {(run.name, run.path.name): run for run in runs}
    visited: set[Path] = set()
    while True:
        going = {run.path for run in old} - reasons.keys()
        staying = [run for run in runs if run.path not in going and run.path not in visited]
        if not staying or not going:
            return
        for run in staying:
            visited.add(run.path)
            for key in _begins(run.path, names):
                begin = by_folder.get(key)
                if begin is not None and begin.path in going:
                    reasons.setdefault(begin.path, f"{run.path} began with its weights")


def _begins(path: Path, names: dict[str, list[RunSummary]]) -> Iterator[tuple[str, str]]:
    """The name and folder of each run that a run's config mentions.

    A run that was moved keeps both. A name without a folder may mean any run of that name.
    """
    file = path / "resolved.yaml"
    try:
        text = read_small(file).decode("utf-8", "replace")
    except FileNotFoundError:  # it was removed since
        return
    except OSError as error:
        raise RunError(
            f"cannot read {file}: {error.strerror or error}; which runs it began from is not known",
            notes=("nothing was removed",),
        ) from error
    mentions = [(match[1], match[2]) for match in MENTION.finditer(text)]
    yield from mentions
    section = PRETRAINED.search(text)
    if section is None or MENTION.search(section[1]):
        return
    words = set(re.findall(NAME.pattern, section[1].replace("@", " ")))
    for word in words:
        yield from ((run.name, run.path.name) for run in names.get(word, ()))


def remove(path: Path) -> bool:
    """Remove a run; False if it no longer exists.

    Raises:
        RunError: it is in use, or something in it cannot be removed.
    """
    if not os.path.lexists(path):
        return False
    try:
        lock = RunLock(path / "lock")
    except RunError:
        if not os.path.lexists(path):  # another process removed it
            return False
        raise
    try:
        with _open_folder(path.parent) as parent:
            aside = f"{ASIDE}{path.name}-{secrets.token_hex(4)}"
            try:
                if not stat.S_ISDIR(os.lstat(path.name, dir_fd=parent).st_mode):
                    raise RunError(f"cannot remove {path}: it is no folder")
                os.rename(path.name, aside, src_dir_fd=parent, dst_dir_fd=parent)
            except FileNotFoundError:
                return False
            _remove_aside(path.parent, aside, parent)
    except OSError as error:
        raise RunError(f"cannot remove {path}: {error.strerror}") from error
    finally:
        lock.release()
    return True


def remove_left_over(runs: Path) -> None:
    """Remove the remnants of a killed `runs clean`; a running one holds their locks."""
    with contextlib.suppress(OSError):
        for folder in runs.iterdir():
            if not NAME.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
                continue
            for remnant in folder.glob(f"{ASIDE}*"):
                if not remnant.is_symlink() and not is_held(remnant / "lock"):
                    with _open_folder(folder) as parent:
                        _remove_aside(folder, remnant.name, parent)


@contextlib.contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    """A handle of a folder that is no link, so that changes cannot land elsewhere."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _remove_aside(folder: Path, name: str, parent: int) -> None:
    """Remove a renamed run, its resolved.yaml first, so that it no longer counts as a run."""
    troubles: list[OSError] = []

    def note(function: Any, file: Any, error: Any) -> None:
        if not isinstance(error[1], FileNotFoundError):
            troubles.append(error[1])

    with contextlib.suppress(OSError):
        inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            os.unlink("resolved.yaml", dir_fd=inside)
        finally:
            os.close(inside)
    shutil.rmtree(name, onerror=note, dir_fd=parent)
    if troubles:
        raise RunError(
            f"cannot remove {folder / name}: {troubles[0].strerror}; it is no run any more"
        )
