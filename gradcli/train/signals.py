"""SIGINT, SIGTERM and SIGHUP: the first sets a flag, the second leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from gradcli.errors import GradcliError, Interrupted, Stopped

ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """`with Signals() as signals:` then `signals.first` between steps and batches.

    No code runs in the handler beside setting the flag, so it can come at any moment, in the
    middle of a save too. Outside the main thread Python allows no handlers, and none are set. What
    was ignored before stays ignored: `nohup gradcli train` outlives its terminal.
    """

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            heard = [one for one in ASKED if signal.getsignal(one) != signal.SIG_IGN]
            self._before = {one: signal.signal(one, self._receive) for one in heard}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.first is not None:
            os._exit(130 if number == signal.SIGINT else 128 + number)
        self.first = signal.Signals(number)


def ending(first: signal.Signals, run: str, step: int) -> GradcliError:
    """What to raise where a signal ended a training and the checkpoint of `step` stands."""
    kind = Interrupted if first == signal.SIGINT else Stopped
    return kind(
        f"stopped by {first.name} after step {step}, with a checkpoint",
        notes=(f"continue with: gradcli resume {run}",),
    )
