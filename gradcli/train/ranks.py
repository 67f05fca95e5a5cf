"""The loop's communication between ranks, and the work of rank 0 alone.

Every rank computes the same steps and takes the same decisions. What can differ, a signal or a
clock, they settle by a small exchange about every tenth of a second. A single process exchanges
nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from gradcli.engine import no_grad
from gradcli.errors import CheckpointError, NumericsError, say_once
from gradcli.train.checkpoint import checkpoint_of, file_bytes, names
from gradcli.train.elsewhere import DirectoryElsewhere, SilentReporter
from gradcli.train.safetensors_file import RawTensor
from gradcli.train.state import as_tensor, bytes_of, dtype_name

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.engine.distributed.group import Group
    from gradcli.engine.distributed.sum import How
    from gradcli.train.checkpoint import Checkpoint
    from gradcli.train.directory import RunDirectory
    from gradcli.train.report import Reporter
    from gradcli.train.signals import Signals

Answer = TypeVar("Answer")

SETTLE_SECONDS = 0.1  # between two looks at signals, clocks and the screen
DIGEST = 16  # bytes of a tensor's hash that are compared


class Word(NamedTuple):
    """The message of a rank in each exchange.

    Attributes:
        signal: the number of the signal that stops the training; 0 for none.
        pace: seconds of a step.
        busy: seconds of all steps so far, without waits.
        save: whether a checkpoint is due by its clock.
    """

    signal: int
    pace: float
    busy: float
    save: bool


_WORD = struct.Struct("<idd?")


class Ranks:
    """The common decisions of all ranks of a training, and their waits for each other.

    Attributes:
        signal: the signal that stops the training, on whichever rank.
        save: whether a checkpoint is due by the clock of rank 0.
    """

    def __init__(
        self,
        group: Group,
        signals: Signals,
        minutes: float | None = None,
        reduce: How = "exact",
    ) -> None:
        self._group = group
        self._reduce = reduce
        self._signals = signals
        self._between = math.inf if minutes is None else 60 * minutes
        self._saved = time.monotonic()
        self._horizon = 0  # the step of the next exchange
        self._began = self._waited_before = 0.0
        self._pace = math.inf
        self._seconds = self._waited = 0.0  # of steps since the latest line of the log
        self._busy = 0.0
        self._words = [Word(0, math.inf, 0.0, save=False)] * group.size
        self._logged = self._words
        self.signal: signal.Signals | None = None
        self.save = False

    # Decisions.

    def settle(self, step: int) -> None:
        """Exchange messages if it is time; `step` is the same on all ranks."""
        if step >= self._horizon or self._group.size == 1:
            self.look()
            pace = max(word.pace for word in self._words)
            self._horizon = step + max(1, int(SETTLE_SECONDS / pace))

    def look(self) -> bool:
        """Exchange messages now; returns whether a signal stops the training.

        All ranks must call this equally often, at the same places.
        """
        late = time.monotonic() - self._saved > self._between
        word = Word(self._signals.first or 0, self._pace, self._busy, late)
        self._words = [word]
        if self._group.size > 1:
            gathered = self._group.all_gather(_WORD.pack(*word), "signals")
            self._words = [Word(*_WORD.unpack(data)) for data in gathered]
        number = max(word.signal for word in self._words)
        self.signal = signal.Signals(number) if number else None
        self.save = self._words[0].save
        return self.signal is not None

    def steps_left(self, step: int) -> int:
        """How many steps come before the next exchange."""
        return self._horizon - step

    # Steps, and waiting.

    def begin(self) -> None:
        """Steps begin now."""
        self._began, self._waited_before = time.perf_counter(), self._group.waited

    def count_steps(self, steps: int) -> None:
        """Count the steps since `begin`."""
        seconds, waited = (
            time.perf_counter() - self._began,
            self._group.waited - self._waited_before,
        )
        self._pace = seconds / max(steps, 1)
        self._seconds += seconds
        self._waited += waited
        self._busy += seconds - waited

    def waiting(self) -> dict[str, object]:
        """For the log: the share of time that this rank waited, and the slowest rank.

        Both cover the time since the latest call; nothing for one rank. If sums depend on the
        number of ranks, `reduce` says so.
        """
        if self._group.size == 1:
            return {}
        pairs = zip(self._words, self._logged, strict=True)
        busy = [now.busy - before.busy for now, before in pairs]
        share = self._waited / self._seconds if self._seconds else 0.0
        self._seconds = self._waited = 0.0
        self._logged = self._words
        way = {} if self._reduce == "exact" else {"reduce": self._reduce}
        return {"wait_ranks": round(share, 4), "slowest_rank": busy.index(max(busy)), **way}

    # Checkpoints.

    def same_weights(self, tensors: Mapping[str, RawTensor], step: int) -> None:
        """Check that the tensors of a checkpoint have the same hashes on all ranks.

        Raises:
            NumericsError: E805, names the first tensor that differs.
        """
        self._saved, self.save = time.monotonic(), False
        if self._group.size == 1:
            return
        keys = sorted(tensors)
        digests = (hashlib.sha256(tensors[name].data).digest()[:DIGEST] for name in keys)
        gathered = self._group.all_gather(b"".join(digests), "hashes of the weights")
        most = Counter(gathered).most_common(1)[0][0]
        usual, differs = gathered.index(most), [data != most for data in gathered]
        if not any(differs):
            return
        rank = differs.index(True)
        offsets = range(0, len(most), DIGEST)
        first = next(i for i in offsets if gathered[rank][i : i + DIGEST] != most[i : i + DIGEST])
        raise say_once(
            NumericsError(
                f"the weights of step {step} are not the same on all ranks: "
                f"{self._group.names[rank]} has another '{keys[first // DIGEST]}' than "
                f"{self._group.names[usual]}; nothing is saved",
                code="E805",
                notes=("a rank that computes wrongly: look at its memory, its build and its core",),
            )
        )


def directory(group: Group, make: Callable[[], RunDirectory]) -> RunDirectory:
    """The run's directory: rank 0 makes it and writes there; other ranks only know its path."""
    if group.size == 1:
        return make()
    own = make() if group.rank == 0 else None
    path = group.broadcast(str(own.path).encode() if own else b"", "the run's directory")
    return own or DirectoryElsewhere(Path(path.decode()))


def choose(group: Group, ask: Callable[[], Path | None]) -> Path | None:
    """The path, or None, that rank 0 chooses for all; disks may be out of step."""
    path = of_first(group, lambda: str(ask() or ""))
    return Path(path) if path else None


def recover(group: Group, directory: RunDirectory) -> tuple[str, Checkpoint, list[str]]:
    """`RunDirectory.recover`, which rank 0 does for all ranks."""
    if group.size == 1:
        return directory.recover()
    name, data = "", b""
    notes: list[str] = []
    if group.rank == 0:
        name, _, notes = directory.recover()
        data = file_bytes(directory.checkpoints / name)
    name = group.broadcast(name.encode(), "a checkpoint").decode()
    data = group.broadcast(data, "a checkpoint")
    return name, checkpoint_of(data, directory.checkpoints / name), notes


def checkpoints(group: Group, directory: Path) -> Iterator[tuple[str, Checkpoint]]:
    """The readable checkpoints of a run, newest first; rank 0 reads, and all must iterate alike."""
    readable = _readable(directory) if group.rank == 0 else iter(())
    while True:
        name, data = next(readable, ("", b""))
        if group.size > 1:
            name = group.broadcast(name.encode(), "the name of a checkpoint").decode()
            data = group.broadcast(data, "a checkpoint")
        if not name:
            return
        yield name, checkpoint_of(data, directory / name)


def _readable(directory: Path) -> Iterator[tuple[str, bytes]]:
    for name in names(directory):
        with suppress(CheckpointError):
            data = file_bytes(directory / name)
            checkpoint_of(data, directory / name)
            yield name, data


def of_first(group: Group, ask: Callable[[], Answer]) -> Answer:
    """Rank 0's answer, fit for JSON, for all ranks."""
    if group.size == 1:
        return ask()
    answer = ask() if group.rank == 0 else None
    return cast("Answer", json.loads(group.broadcast(json.dumps(answer).encode(), "the start")))


def take_from_first(group: Group, tensors: Iterable[Tensor]) -> None:
    """Overwrite tensors with those of rank 0."""
    if group.size == 1:
        return
    with no_grad():
        for tensor in tensors:
            data = group.broadcast(bytes(bytes_of(tensor)) if group.rank == 0 else b"", "weights")
            if group.rank > 0:
                source = as_tensor(RawTensor(dtype_name(tensor), tuple(tensor.shape), data))
                tensor.copy_(source.to(tensor.device))


def reporter(group: Group, own: Reporter) -> Reporter:
    """The reporter on rank 0; a silent one on the other ranks."""
    return own if group.rank == 0 else SilentReporter()
