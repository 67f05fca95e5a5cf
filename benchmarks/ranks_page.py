"""What docs/clusters.md says of many ranks: predicted from a result of `benchmarks ranks`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import ranks_model, results
from benchmarks.markdown import number, table
from benchmarks.tables import between_markers, where

BEGIN = "<!-- predicted: python -m benchmarks ranks --predict -->"
END = "<!-- end of what is predicted -->"
RANKS = tuple(2**power for power in range(11))
NETWORKS = {"10 Gbit/s": 10e9, "100 Gbit/s": 100e9}  # bits a second
LATENCY_MS = 0.02  # of a message
NOTE = """\
**Predicted, not measured**, for one rank per host. A step takes the time of one rank with one
thread on the config's batch (so N ranks train on N times that batch) plus the sum of the gradients.
Each message of the sum costs {us:g} us; each byte that a rank sends costs the network's time and
the rank's own copies and additions, as `mpirun -n 2 gradcli doctor` measures them on one host. The
model assumes that no rank is late and that the network carries no other traffic. In brackets: the
share of the sum.
"""
CHECK = """\
The same model compared with measured steps, using `doctor`'s sums on as many ranks. The ranks
share the {cores} cores of one host, so more ranks take turns; each has 1 / N of the config's batch.
"""


def update(page: Path, folder: Path) -> None:
    """Replace what stands between the markers, by the newest result."""
    result = results.newest(folder, "ranks")
    body = "\nNothing has been measured yet.\n\n" if result is None else prediction(result)
    page.write_text(between_markers(page, BEGIN, END, body), encoding="utf-8")


def prediction(result: Mapping[str, Any]) -> str:
    """A table of steps to 1,024 ranks, and how far the model is from what was measured."""
    per_byte = ranks_model.own_ms_per_byte(result["doctor"]["2"])
    ways = [(name, network) for name in result["steps"] for network in NETWORKS]
    lines = [
        [f"{ranks:,}", *(_cell(result["steps"][name], ranks, net, per_byte) for name, net in ways)]
        for ranks in RANKS
    ]
    head = ("ranks: ms a step", *(f"{name}, {network}" for name, network in ways))
    note, check = NOTE.format(us=LATENCY_MS * 1e3), CHECK.format(cores=result["cores"])
    return f"\n{note}\n{table(head, lines)}\n{check}\n{_checks(result)}\n{where(result)}\n\n"


def _cell(row: Mapping[str, Any], ranks: int, network: str, own: float) -> str:
    per_byte = 8e3 / NETWORKS[network] + own
    nbytes = row["numbers"] * ranks_model.NUMBER
    sum_ms = ranks_model.many_ms(ranks, nbytes, LATENCY_MS, per_byte)
    step = median(row["ms"][ranks_model.ALONE]) + sum_ms
    return f"{number(step)} ({sum_ms / step:.0%})"


def _checks(result: Mapping[str, Any]) -> str:
    lines = [
        (name, str(count), number(check.model_ms), number(check.median_ms), f"{check.error:+.0%}")
        for name, counts in ranks_model.checks(result).items()
        for count, check in counts.items()
    ]
    return table(("config", "ranks", "predicted ms", "measured ms", "difference"), lines)
