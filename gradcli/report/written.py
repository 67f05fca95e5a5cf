"""The page of a run as a file, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gradcli.errors import ConfigError, RunError
from gradcli.report.page import page
from gradcli.report.run_files import RunFiles
from gradcli.report.times import LayerTime
from gradcli.train.atomic import write_text

NAME = "report.html"
HEAD = 400  # bytes in which a page says what it is
MARKS = (b"<!doctype html>", b"Content-Security-Policy")


def write_page(run: RunFiles, target: Path | None = None, times: Sequence[LayerTime] = ()) -> Path:
    """Write the page; into the run where no other place is named.

    Raises:
        RunError: it cannot be written there.
    """
    file = run.path / NAME if target is None else target
    write_html(file, page(run, times=times))
    return file


def keep_others(option: str, file: Path) -> None:
    """Refuse the place of a page where another file stands, such as a config.

    Raises:
        ConfigError: it is no page that this program wrote.
    """
    if not os.path.lexists(file) or file.is_dir() or _is_page(file):
        return
    raise ConfigError(
        f"{option} {ascii(str(file))[1:-1]}: there is a file that is no page of gradcli, and it is "
        "not replaced",
        notes=("name another, or remove it first",),
    )


def _is_page(file: Path) -> bool:
    """Whether a page may replace the file without losing anything else."""
    try:
        if not file.is_file():  # a pipe, a device, a link to nothing
            return False
        with file.open("rb") as stream:
            head = stream.read(HEAD)
    except OSError:
        return False
    return not head or all(mark in head for mark in MARKS)


def write_html(file: Path, text: str) -> None:
    """Write a page; one that stood there is replaced when this one is whole.

    Raises:
        RunError: it cannot be written there.
    """
    try:
        if file.is_dir():
            raise RunError(f"cannot write {file}: it is a folder; name a file in it", code="E703")
        # Of a name of bytes that are no text an escape is shown.
        write_text(file, text.encode("utf-8", "backslashreplace").decode(), flush=False)
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror}", code="E703") from error
