"""`python faulty_rank.py FAULT RANK SECONDS RUNS ...`: gradcli, one rank of which fails.

It does so SECONDS after the first checkpoint stands in RUNS: `exit` leaves without a word, `raise`
raises in a step, `disk` finds the disk full. The rest is gradcli's own command line.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradcli.cli.main import run
from gradcli.engine import distributed
from gradcli.train.step import TrainingStep

struck = threading.Event()


def wait_and_strike(fault: str, rank: int, seconds: float, runs: Path) -> None:
    while not list(runs.glob("*/*/checkpoints/step-*.safetensors")):
        time.sleep(0.005)
    time.sleep(seconds)
    if distributed.rank() == rank:
        sys.stderr.write(f"struck at {time.time()}\n")
        sys.stderr.flush()
        if fault == "exit":
            os._exit(5)
        struck.set()


def failing(call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    def checked(*arguments: Any, **options: Any) -> Any:
        if struck.is_set():
            raise error
        return call(*arguments, **options)

    return checked


def main() -> int:
    fault, rank, seconds, runs = sys.argv[1:5]
    arguments = (fault, int(rank), float(seconds), Path(runs))
    threading.Thread(target=wait_and_strike, args=arguments, daemon=True).start()
    if fault == "raise":
        plain: Any = TrainingStep.run
        TrainingStep.run = failing(plain, ValueError("planted"))  # type: ignore[method-assign]
    if fault == "disk":
        os.fsync = failing(os.fsync, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    return run(sys.argv[5:])


if __name__ == "__main__":
    sys.exit(main())
