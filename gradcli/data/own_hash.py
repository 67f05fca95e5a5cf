"""The numbers of an own dataset's split, hashed; large ones in mapped files in the background."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any

from gradcli.data import files
from gradcli.data.hashes import Later
from gradcli.engine import Tensor

BLOCK = 1 << 20  # bytes that are hashed at once
_PATIENCE = 0.1  # seconds between two looks of whoever waits


def sha256_of_tensors(split: str, tensors: Sequence[Tensor], *, mapped: bool) -> str | Later:
    """One hash of the numbers of tensors, one behind the other."""
    size = sum(tensor.numel() * tensor.dtype.size for tensor in tensors)
    reading = TensorReading(split, tensors, size)
    if not mapped or size <= files.LARGE:
        reading.read()
        return reading.result()
    threading.Thread(target=reading.read, daemon=True, name="hashes").start()
    return reading


class TensorReading:
    """The hash of tensors while a thread reads them.

    Attributes:
        fault: what went wrong, as far as they were read.
    """

    def __init__(self, split: str, tensors: Sequence[Tensor], size: int) -> None:
        self.fault: Exception | None = None
        self._split, self._size = split, size
        self._bytes: list[memoryview[Any]] = [one.memoryview().cast("B") for one in tensors]
        self._done = 0
        self._sha256 = ""
        self._ended = threading.Event()

    @property
    def ready(self) -> bool:
        """Whether the end was reached."""
        return self._ended.is_set()

    def read(self) -> None:
        """Read them to the end."""
        digest = hashlib.sha256()
        try:
            for numbers in self._bytes:
                for begin in range(0, len(numbers), BLOCK):
                    block = numbers[begin : begin + BLOCK]
                    digest.update(block)  # lets other threads run
                    self._done += len(block)
            self._sha256 = digest.hexdigest()
        except Exception as error:  # whoever waits for the hash is told
            self.fault = error
        finally:
            self._bytes = []
            self._ended.set()

    def result(self) -> str:
        """The hash; whoever waits for it tells how far it is."""
        if not self._ended.is_set():
            self._wait()
        if self.fault is not None:
            raise self.fault
        return self._sha256

    def _wait(self) -> None:
        from gradcli.data.prepared.progress import Progress  # nobody waits for small data

        with Progress(f"hashing split '{self._split}'", self._size, "B") as progress:
            progress.advance(0)  # begins it
            while not self._ended.wait(_PATIENCE):
                progress.advance(self._done - progress.done)
