"""Long work on data as people see it: a bar in a terminal, elsewhere a line at begin and end.

Work of less than a second has the line at its end alone.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

from gradcli import watching
from gradcli.cli import output
from gradcli.wording import byte_size, quantity

SHORT = 1.0  # seconds
BYTES = ("byte", "bytes", "B")


class WorkBar:
    """One piece of work from its first call to its last."""

    def __init__(self, what: str, total: int | None, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self._began = time.monotonic()
        self._spoke = False
        self._bar: Any = None
        if output.shows_bars():
            from gradcli.cli.bar import Bar

            self._bar = Bar(
                desc=what,
                total=total,
                unit="B" if unit in BYTES else f" {quantity(2, unit).partition(' ')[2]}",
                unit_scale=True,
                dynamic_ncols=True,
                leave=False,
                colour="green" if output.has_color(sys.stderr) else None,
            )

    def move(self, progress: int) -> None:
        """Move the bar to this amount of work."""
        if self._bar is not None:
            self._bar.update(progress - self._bar.n)
        elif not self._spoke and time.monotonic() - self._began >= SHORT:
            amounts = "" if self.total is None else f": {amount(self.total, self.unit)}"
            output.say_aside(self.what + amounts)
            self._spoke = True

    def close(self, progress: int) -> None:
        """Remove the bar and print what was done, unless the work was given up."""
        if self._bar is not None:
            with contextlib.suppress(OSError):
                self._bar.close()
        if progress != watching.GIVEN_UP:
            seconds = time.monotonic() - self._began
            output.say_aside(f"{self.what}: {amount(progress, self.unit)} in {seconds:.1f} s")


_works: dict[str, WorkBar] = {}


def watch(what: str, progress: int, total: int | None, unit: str) -> None:
    """Show the progress that data code reports; see data/prepared/progress.py."""
    work = _works.get(what)
    if work is None:
        work = _works[what] = WorkBar(what, total, unit)
        if progress == 0:
            return
    if progress in (total, watching.GIVEN_UP):
        del _works[what]
        work.close(progress)
    else:
        work.move(progress)


def amount(count: int, unit: str) -> str:
    """`1,000,000 rows`, `1.3 GB`."""
    return byte_size(count) if unit in BYTES else quantity(count, unit, form=",")
