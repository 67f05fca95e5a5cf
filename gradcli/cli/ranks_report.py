"""What `gradcli doctor` tells of ranks: who they are, and how long a sum over them takes."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

from gradcli.cli import output
from gradcli.devices import GPUS
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine.distributed import Group, Sum

SIZES = tuple(1 << power for power in range(10, 27, 2))  # bytes: 1 KiB to 64 MiB
NUMBER = 4  # bytes of a float32
# A size is measured so often that about so many bytes are added, within these bounds.
VOLUME, FEWEST, MOST = 1 << 26, 5, 100
LABEL = 11  # cells for the label of a row


def ranks_report(group: Group, report: dict[str, Any]) -> dict[str, Any]:
    """Describe the ranks and time their sums; `report` is that of this rank."""
    from gradcli.engine import distributed

    own = {
        "instruction_set": report.get("instruction_set", ""),
        "cores": report.get("threads", 0),
        "devices": [name for name in ("cpu", *GPUS) if not report["devices"][name]],
        "gradcli": report["gradcli"],
        "ok": report["ok"],
    }
    gathered = group.gather_values(own, "the report")
    ranks = [
        {"rank": rank, "host": member.host, "pid": member.pid, **facts}
        for rank, (member, facts) in enumerate(zip(group.members, gathered, strict=True))
    ]
    return {
        "mpi": distributed.mpi_version(),
        "ranks": ranks,
        "sums": [_measure(group, size) for size in SIZES],
        "ok": all(entry["ok"] for entry in gathered),
    }


def _measure(group: Group, size: int) -> dict[str, Any]:
    """Milliseconds of a sum of so many bytes a rank, along the tree and by MPI itself."""
    from gradcli.engine.distributed import Sum

    exact = Sum(group.size, size // NUMBER, group=group)
    library = Sum(group.size, size // NUMBER, how="library", group=group)
    count = max(FEWEST, min(MOST, VOLUME // size))
    return {
        "bytes": size,
        "exact_ms": _milliseconds(group, exact, count),
        "library_ms": _milliseconds(group, library, count),
    }


def _milliseconds(group: Group, sums: Sum, count: int) -> float:
    """The median over the sums of the time that the slowest rank takes."""
    sums.source.fill_(1.0)
    sums.sum()
    times = []
    for _ in range(count):
        group.barrier("a sum that is measured")
        began = time.perf_counter()
        sums.sum()
        times.append(time.perf_counter() - began)
    gathered = group.gather_values(times, "the times of a sum")
    slowest: list[float] = list(map(max, zip(*gathered, strict=True)))
    return round(median(slowest) * 1e3, 4)


def show(report: dict[str, Any]) -> None:
    """Print the report as lines; ranks that are alike on a host share one."""
    ranks = report["ranks"]
    hosts: dict[tuple[str, ...], list[int]] = {}
    for member in ranks:
        facts = (
            member["host"],
            quantity(member["cores"], "core") + " each",
            member["instruction_set"],
            ", ".join(member["devices"]),
            "" if member["ok"] else "its kernels compute wrongly",
        )
        hosts.setdefault(facts, []).append(member["rank"])
    count = quantity(len({member["host"] for member in ranks}), "host")
    output.say(f"{'ranks':<10} {len(ranks)} on {count}, {report['mpi']}", indent=LABEL)
    for (host, *details), numbers in hosts.items():
        words = ", ".join(fact for fact in details if fact)
        output.say(f"{'':<10} {host}: {_title(numbers)}, {words}", indent=LABEL)
    output.say(f"{'sums':<10} {'size':>10} {'exact':>12} {'library':>12}", indent=LABEL)
    for row in report["sums"]:
        size = row["bytes"]
        text = f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB"
        times = f"{row['exact_ms']:>9.3f} ms {row['library_ms']:>9.3f} ms"
        output.say(f"{'':<10} {text:>10} {times}", indent=LABEL)


def _title(ranks: list[int]) -> str:
    """Ranks in ascending order by their numbers: "rank 3", "ranks 0 to 7", "ranks 0, 2, 4"."""
    first, last = ranks[0], ranks[-1]
    if first == last:
        return f"rank {first}"
    whole = ranks == list(range(first, last + 1))
    return f"ranks {first} to {last}" if whole else f"ranks {', '.join(map(str, ranks))}"
