"""Signals: one sets a flag, the handlers of before come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from gradcli.errors import Interrupted, Stopped
from gradcli.train.signals import Signals, ending


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (signal.SIGINT, Interrupted, 130),
        (signal.SIGTERM, Stopped, 75),
        (signal.SIGHUP, Stopped, 75),
    ],
)
def test_a_signal_sets_the_flag_and_names_the_error(number, kind, code) -> None:
    before = signal.getsignal(number)
    with Signals() as signals:
        os.kill(os.getpid(), number)
        assert signals.first == number
        error = ending(signals.first, "runs/a/1", 7)
    assert type(error) is kind
    assert error.exit_code == code
    assert "resume runs/a/1" in error.notes[0]
    assert signal.getsignal(number) == before


def test_what_was_ignored_before_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.first is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_second_signal_leaves_at_once(number: int, code: int) -> None:
    script = (
        "import os, sys; from gradcli.train.signals import Signals, ending\n"
        "with Signals():\n"
        "    os.kill(os.getpid(), int(sys.argv[1]))\n"
        "    os.kill(os.getpid(), int(sys.argv[1]))\n"
        "    print('still here')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(int(number))], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, b"")
