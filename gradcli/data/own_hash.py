"""The numbers of an own dataset's split, hashed; large ones in mapped files in the background."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any

from gradcli.data import files
from gradcli.data.hashes import PendingHash
from gradcli.engine import Tensor

BLOCK = 1 << 20  # bytes that are hashed at once


def sha256_of_tensors(split: str, tensors: Sequence[Tensor], *, mapped: bool) -> str | PendingHash:
    """One hash of the numbers of tensors, one behind the other."""
    size = sum(tensor.numel() * tensor.dtype.size for tensor in tensors)
    reading = TensorReading(split, tensors, size)
    if not mapped or size <= files.LARGE:
        reading.read()
        return reading.result()
    threading.Thread(target=reading.read, daemon=True, name="hashes").start()
    return reading


class TensorReading(PendingHash):
    """The hash of tensors while a thread reads them."""

    def __init__(self, split: str, tensors: Sequence[Tensor], size: int) -> None:
        super().__init__(f"hashing split '{split}'", size)
        self._unread: list[memoryview[Any]] = [tensor.memoryview().cast("B") for tensor in tensors]

    def read(self) -> None:
        """Read them to the end."""
        digest = hashlib.sha256()
        try:
            for numbers in self._unread:
                for begin in range(0, len(numbers), BLOCK):
                    block = numbers[begin : begin + BLOCK]
                    digest.update(block)  # lets other threads run
                    self._bytes += len(block)
            self._sha256 = digest.hexdigest()
        except Exception as error:  # raised where the hash is awaited
            self.fault = error
        finally:
            self._unread = []
            self._end.set()
