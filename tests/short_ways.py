"""For tests that look at each call of a kernel as `array.run` makes it."""

from __future__ import annotations

import pytest

from gradcli.engine.device import cpu

SHORT_WAYS = (
    "computed",
    "mapped",
    "multiplied",
    "pick",
)  # they make a result where they run the kernel


def close_short_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every call be one of `run`."""
    for name in SHORT_WAYS:
        monkeypatch.setattr(cpu, name, lambda *_: None)
