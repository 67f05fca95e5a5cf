"""SIGINT, SIGTERM and SIGHUP: the first sets a flag, the second leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from gradcli.errors import GradcliError, Interrupted, Stopped

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """`with Signals() as signals:` then `signals.first` between steps and batches.

    The handler only sets a flag, so a signal may come at any moment, even during a save. Outside
    the main thread Python allows no handlers, and none are set. Signals that were ignored stay
    ignored: `nohup gradcli train` outlives its terminal.
    """

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            active = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._receive) for number in active}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.first is not None:
            os._exit(130 if number == signal.SIGINT else 128 + number)
        self.first = signal.Signals(number)


def ending(first: signal.Signals, run: str, step: int) -> GradcliError:
    """The error of a signal that stopped a training after the checkpoint of `step`."""
    kind = Interrupted if first == signal.SIGINT else Stopped
    return kind(
        f"stopped by {first.name} after step {step}, with a checkpoint",
        notes=(f"continue with: gradcli resume {run}",),
    )
