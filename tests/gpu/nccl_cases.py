"""Two ranks on the stand-ins for NVIDIA's driver and NCCL: `python -m cuda_process case ...`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from ctypes import CDLL, c_long
from pathlib import Path
from typing import Any

import pytest
from cuda_cases import Counts

from gradcli import engine
from gradcli.cli import main as command_line
from gradcli.devices import name_of
from gradcli.engine import distributed
from gradcli.engine.distributed.gpus import way
from gradcli.engine.distributed.group import ALONE, Alone, Group, Member
from gradcli.engine.distributed.nccl import NAME, Communicator, version
from gradcli.engine.distributed.sum import How, Sum
from gradcli.errors import DeviceError

PARTS, LENGTH, STEPS = 5, 3 * 1024 + 37, 6


class Pair(Alone):
    """Two ranks that meet in a folder, as far as NCCL needs that: they exchange nothing else."""

    def __init__(self, rank: int, folder: Path) -> None:
        Group.__init__(self, rank, [Member("here", 1), Member("here", 2)])
        self._folder = folder

    def broadcast(self, data: bytes, what: str, source: int = 0) -> bytes:
        """Through a file."""
        path = self._folder / "data"
        if self.rank == source:
            path.with_suffix(".new").write_bytes(data)
            path.with_suffix(".new").rename(path)
        while not path.exists():
            time.sleep(0.01)
        return path.read_bytes()


def rows_of(step: int) -> Any:
    """A row for each part of a step, which all ranks know."""
    generator = engine.Generator().manual_seed(step)
    return engine.randn(PARTS, LENGTH, generator=generator)


def node_sum(rows: Any, low: int, high: int) -> Any:
    """What a rank adds up itself: the parts of a node along the tree."""
    if high - low == 1:
        return rows[low]
    half = low + (1 << ((high - low - 1).bit_length() - 1))
    return node_sum(rows, low, half) + node_sum(rows, half, high)


class Training:
    """Steps whose gradients are the sum of a row for each part, with the norm of all of it."""

    def __init__(self, total: Sum | None, device: str = "cuda") -> None:
        self.total = total
        self.device = device
        self.weight = engine.ones(LENGTH).to(device)

    def step(self, *rows: Any) -> Any:
        """On a rank the rows are those of its nodes; without a sum, of all nodes of two ranks."""
        made = [row * self.weight for row in rows]
        if self.total is None:
            left, right, last = made
            out = (left + right) + last
        else:
            for i, row in enumerate(made):
                self.total.source[i].copy_(row)
            self.total.sum()
            out = self.total.out
        norm = (out * out).sum().sqrt()
        self.weight.sub_(out * (0.1 / (norm + 1.0)))
        return norm

    def nodes(self) -> Sequence[Sequence[int]]:
        """The parts that each row stands for."""
        return ((0, 2), (2, 4), (4, 5)) if self.total is None else self.total.nodes

    def write(self, path: Path, look: Callable[[], None]) -> None:
        """What all steps give and leave; looks behind each replay."""
        captured = engine.capture(self.step, on_fallback=pytest.fail)
        found = []
        for number in range(STEPS):
            rows = rows_of(number)
            found.append(
                captured(*[node_sum(rows, *n).to(self.device) for n in self.nodes()]).item()
            )
            if number > 1:  # eager twice, and once more as a proof
                look()
        assert len(captured.programs) == 1
        path.write_bytes(repr(found).encode() + bytes(self.weight.cpu().memoryview()))


def one_rank(folder: str) -> None:
    """What two ranks are to give."""
    Training(None).write(Path(folder) / "alone", lambda: None)


def a_rank_over_nccl(rank: str, how: How, folder: str) -> None:
    """A step is one launch, with one sum in it."""
    engine.zeros(1).to("cuda")  # opens it
    pair = Pair(int(rank), Path(folder))
    gpus = Communicator(pair)
    assert version() == "2.28.3"
    total = Sum(PARTS, LENGTH, how=how, group=pair, device="cuda", gpus=gpus)
    counts, exchanges = Counts(), c_long.in_dll(CDLL(NAME), "standin_nccl_exchanges")
    each = 2 if how == "exact" else 1  # the nodes' slices, and the gathering of the sums
    seen: list[tuple[int, int]] = []

    def look() -> None:
        seen.append((counts.graph_launches, exchanges.value))
        if len(seen) > 1:
            (a, b), (c, d) = seen[-2:]
            assert (c - a, d - b) == (1, each)

    Training(total).write(Path(folder) / f"rank{rank}", look)


def a_rank_of_a_launcher(how: How, launches: str, folder: str) -> None:
    """By NCCL a step is one launch, and two with the sum between them by the host's memory."""
    ranks = distributed.join(timeout=60)
    device = name_of("cuda", ranks.rank)
    engine.zeros(1).to(device)  # opens it
    gpus = way(ranks, device).gpus
    assert way(ranks, device).gpus is gpus
    assert (gpus is None) == (launches == "2")
    total = Sum(PARTS, LENGTH, how=how, group=ranks, device=device, gpus=gpus)
    counts, seen = Counts(), list[tuple[int, int]]()

    def look() -> None:
        seen.append((counts.graph_launches, total.count))
        if len(seen) > 1:
            (a, b), (c, d) = seen[-2:]
            assert (c - a, d - b) == (int(launches), int(gpus is None))

    Training(total, device).write(Path(folder) / f"rank{ranks.rank}", look)


def a_training(folder: str, *words: str) -> None:
    """`gradcli train` of a rank; in the folder, how many graphs it launched and sums it made."""
    sums, plain = list[int](), Sum._sum

    def count(self: Sum) -> None:
        sums.append(1)
        plain(self)

    Sum._sum = count  # type: ignore[method-assign]
    code = command_line.run(["train", *words])
    try:
        exchanges = c_long.in_dll(CDLL(NAME), "standin_nccl_exchanges").value
    except OSError:
        exchanges = 0
    counts = Counts().graph_launches, len(sums), exchanges
    Path(folder, f"rank{distributed.rank()}.json").write_text(json.dumps(counts))
    sys.exit(code)


def the_host_alone_has_no_way_between_gpus() -> None:
    """Nor has one rank, or a device that is none of CUDA's."""
    pair = Pair(0, Path())
    for group, device in ((ALONE, "cuda"), (pair, "cpu"), (pair, "metal")):
        assert way(group, device) == (None, "")


def without_nccl() -> None:
    """The sentence says what is missing."""
    with pytest.raises(DeviceError, match=r"libnccl.so.2 cannot be loaded .*gradcli\[nccl\]"):
        Communicator(Pair(0, Path()))


def what_nccl_refuses(folder: str) -> None:
    """In its own words."""
    engine.zeros(1).to("cuda")
    pair = Pair(0, Path(folder))
    pair.members = pair.members * 4  # more than the stand-in has boxes for
    with pytest.raises(DeviceError, match="a communicator of 8 ranks failed: invalid usage"):
        Communicator(pair)
