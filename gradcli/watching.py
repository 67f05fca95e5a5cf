"""Who is told of long work on data: nobody, until the command line says who.

Data code tells through data/prepared/progress.py, which a start without such work never loads.
"""

from __future__ import annotations

from collections.abc import Callable

GIVEN_UP = -1  # in place of how much is done


def _nobody(what: str, progress: int, total: int | None, unit: str) -> None:
    """Tell nobody."""


def _silent(text: str) -> None:
    """Tell nobody."""


watcher: Callable[[str, int, int | None, str], None] = _nobody
teller: Callable[[str], None] = _silent
