"""Resolve RUN[@W]: a run by its path, its name or `last`, and one of its checkpoints."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import NamedTuple

from gradcli.errors import ConfigError, GradcliError, RunError
from gradcli.registry import did_you_mean
from gradcli.train.checkpoint import step_of
from gradcli.train.run_start import NAME, RUN_ID, newest, start_of
from gradcli.wording import join_words


class CheckpointChoice(NamedTuple):
    """A run, and which of its checkpoints; None if that is left open."""

    path: Path
    which: str | None


def find(runs: Path, text: str, option: str | None = None) -> CheckpointChoice:
    """Resolve RUN[@W]: RUN is a path, a run's name (its newest) or `last`.

    W is `best`, `last` or a step, like the `option` --checkpoint. If a path with an `@` in it is a
    run, it means that run.
    """
    run, at, which = text.rpartition("@")
    if not at or "/" in which or is_run(Path(text)):
        return CheckpointChoice(_find(runs, text), option)
    if option not in (None, which):
        raise ConfigError(
            f"{ascii(text)[1:-1]} names the checkpoint {which!a}, and --checkpoint names "
            f"{option!a}; keep one of them"
        )
    return CheckpointChoice(_find(runs, run), which)


def runs_of(runs: Path, name: str) -> list[Path]:
    """All runs of this name, the newest first."""
    return sorted((run for run in _all(runs) if run.parent.name == name), key=start_of)[::-1]


def _find(runs: Path, text: str) -> Path:
    """The run that a path, a name or `last` means."""
    path = Path(text)
    try:
        if text and is_run(path):
            return path
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    candidates = _all(runs)
    if text != "last":
        candidates = [run for run in candidates if run.parent.name == text or run.name == text]
    run = newest(candidates)
    if run is not None:
        return run
    raise _not_found(runs, text)


def _not_found(runs: Path, text: str) -> GradcliError:
    names = sorted({run.parent.name for run in _all(runs)})
    quote = ascii(text)[1:-1]
    if not text:
        return RunError("no run '': a run is named by its path, its name or `last`")
    near = _runs_near(runs, Path(text))
    if os.path.isdir(text):  # noqa: PTH112 -- false, and no OSError, for a name that is too long
        return RunError(f"{quote} is not a run: it has no resolved.yaml", notes=near)
    if near:
        return RunError(f"{quote} is not a run", notes=near)
    if not names:
        return RunError(f"no run '{quote}': {runs} holds no runs yet; `gradcli train` makes one")
    cure = did_you_mean(text, names, f"known: {join_words(names)}, last")
    return RunError(f"no run '{quote}' in {runs}; {cure}")


def _runs_near(runs: Path, path: Path) -> tuple[str, ...]:
    """A hint for a path that is no run: the run above it, or the newest run below it."""
    for outer in path.parents:
        if is_run(outer):
            step = step_of(path.name)
            return (f"it is of a run: say {outer}{'' if step is None else f'@{step}'}",)
    try:
        inner = [run for run in _folders(path, RUN_ID) if is_run(run)] or _all(path)
    except (OSError, RunError):
        return ()
    last = newest(inner)
    if last is None:
        return ()
    if last.parent.parent.resolve() == runs.resolve():
        return (f"the newest run in it: say {last.parent.name}, or {last}",)
    return (f"the newest run in it: say {last}",)


def is_run(path: Path) -> bool:
    """Whether a directory holds a run; a name that no file can have holds none.

    Its folder of checkpoints may be missing: git and archives leave out an empty one.
    """
    try:
        return (path / "resolved.yaml").is_file()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise
    except ValueError:  # a zero byte
        return False


def _all(runs: Path) -> list[Path]:
    """Every run below `runs`; links are not followed."""
    try:
        return [
            run for name in _folders(runs, NAME) for run in _folders(name, RUN_ID) if is_run(run)
        ]
    except OSError as error:
        raise RunError(f"cannot read {runs}: {error.strerror}") from error


def _folders(path: Path, pattern: re.Pattern[str]) -> list[Path]:
    if not path.is_dir():
        return []
    entries = (entry for entry in path.iterdir() if pattern.fullmatch(entry.name))
    return [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
