"""The page of a run as a file, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradcli.errors import RunError
from gradcli.report.page import page
from gradcli.report.run_files import RunFiles
from gradcli.report.times import LayerTime
from gradcli.train.atomic import write_text

NAME = "report.html"


def write_page(run: RunFiles, target: Path | None = None, times: Sequence[LayerTime] = ()) -> Path:
    """Write the page; into the run where no other place is named.

    Raises:
        RunError: it cannot be written there.
    """
    file = run.path / NAME if target is None else target
    write_html(file, page(run, times=times))
    return file


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
