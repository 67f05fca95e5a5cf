"""`python slow_data.py CACHES SECONDS ...`: gradcli on data that is prepared slowly, by ranks.

With CACHES `own` each rank has a cache of its own, as on another machine, and rank 1 alone is slow;
with `one` they share it, and rank 0 comes last. Each preparing leaves a line in prepared.txt.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measured_data import Measured

from gradcli.cli.main import run
from gradcli.data import DATASETS
from gradcli.data.prepared.cache import cache_folder
from gradcli.data.prepared.sets import PreparedSet
from gradcli.data.prepared.writer import Writer
from gradcli.engine import distributed

CACHES, SECONDS = sys.argv[1], float(sys.argv[2])


class Slow(Measured):
    """The YAML keys of `data: {name: measured}`."""

    def opened(self, write: Any = None) -> PreparedSet:
        caches = cache_folder(None)
        while CACHES == "one" and distributed.group().rank == 0 < distributed.size() - 1:
            if list(caches.glob("*.lock")) or list(caches.glob("measured-*")):
                break
            time.sleep(0.01)
        return super().opened(write)

    def write(self, writer: Writer) -> Mapping[str, Any]:
        rank = distributed.rank()
        with Path("prepared.txt").open("a") as file:
            file.write(f"{rank}\n")
        if CACHES == "one" or rank == 1:
            time.sleep(SECONDS)
        return super().write(writer)


def main() -> int:
    rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
    os.environ["XDG_CACHE_HOME"] = str(Path("cache" + rank * (CACHES == "own")).absolute())
    DATASETS["measured"] = Slow  # type: ignore[index]
    return run(sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
