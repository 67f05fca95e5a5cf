"""Python's search for garbage: seldom while a command starts, as usual once it computes.

What modules leave behind is no garbage, and looking through it again and again took a seventh of
the time until the first step.
"""

from __future__ import annotations

import gc

_USUAL = gc.get_threshold()
_SELDOM = 100_000  # objects more than before


def seldom() -> None:
    """For a process that has nothing but modules to load."""
    gc.set_threshold(_SELDOM, *_USUAL[1:])


def usual() -> None:
    """As Python has it; what has been loaded by now is not looked through any more."""
    if gc.get_threshold()[0] == _SELDOM:
        gc.freeze()
        gc.set_threshold(*_USUAL)
