"""RunningStatistics: update the running statistics of layers from all ranks' batches."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.distributed.group import Group
from gradcli.engine.nn.batch_norm import BatchStatistics, RunningNorm, collect_statistics
from gradcli.train.state import bytes_of

_NUMBER = struct.Struct("<q")


class RunningStatistics:
    """Collects the statistics of each micro-batch, and updates the layers once an update.

    The layers take the micro-batches of all ranks in order, those of rank 0 first, so that their
    statistics are those of one rank that computes all micro-batches.

    Args:
        models: their layers take statistics of all ranks; other layers of this rank only.
        group: the ranks.
    """

    def __init__(self, models: Iterable[nn.Module], group: Group) -> None:
        layers = (layer for model in models for layer in model.modules())
        self._layers = [
            (layer, layer.running_mean)
            for layer in layers
            if isinstance(layer, RunningNorm) and layer.running_mean is not None
        ]
        self._numbers = {id(layer): number for number, (layer, _) in enumerate(self._layers)}
        self._group = group
        self._notes: list[BatchStatistics] = []

    def collect(self) -> AbstractContextManager[object]:
        """Within a `with` block, collect statistics instead of updating layers."""
        return collect_statistics(self._notes)

    def learn(self) -> None:
        """Update the layers with the statistics of all ranks, all of which must call this."""
        notes = self._notes[:]
        self._notes.clear()
        if self._group.size > 1 and self._layers:
            own = [note for note in notes if id(note.layer) in self._numbers]
            notes = [note for note in notes if id(note.layer) not in self._numbers]
            data = b"".join(map(self._bytes, own))
            for rank in self._group.all_gather(data, "running statistics"):
                notes += self._read(memoryview(rank))
        for note in notes:
            note.layer.learn(note.mean, note.var)

    def drop(self) -> None:
        """Drop the collected statistics."""
        self._notes.clear()

    def _bytes(self, note: BatchStatistics) -> bytes:
        number = _NUMBER.pack(self._numbers[id(note.layer)])
        return number + bytes(bytes_of(note.mean)) + bytes(bytes_of(note.var))

    def _read(self, data: memoryview) -> Iterator[BatchStatistics]:
        while data:
            layer, running = self._layers[_NUMBER.unpack_from(data)[0]]
            size = running.numel() * running.dtype.size
            begin, end = _NUMBER.size, _NUMBER.size + 2 * size
            mean, var = (
                engine.frombuffer(bytearray(data[i : i + size]), dtype=running.dtype)
                for i in range(begin, end, size)
            )
            yield BatchStatistics(layer, mean.to(running.device), var.to(running.device))
            data = data[end:]
