"""What a user's own code raises, as one sentence with its file and line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradcli.errors import ShapeError


@contextmanager
def one_sentence(path: Path) -> Iterator[None]:
    """Turns what own code raises into one sentence with file and line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        file = path.resolve()  # the config's folder may be relative, a traceback's is not
        steps = traceback.extract_tb(error.__traceback__)
        lines = [step.lineno for step in steps if Path(step.filename).resolve() == file]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        where = f"{path}:{line}" if line else str(path)
        message = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
        raise ShapeError(f"own code, {where}: {message}") from error
