"""Driver: what a GPU, or what stands in for one, must be able to do. Knows no op and no call.

`cuda.py` and `metal.py` are the two; tests have a third, which runs the kernels' host build.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gradcli.dataclass import dataclass

Handle = Any  # of a block of device memory


@dataclass(frozen=True)
class Address:
    """An address in device memory."""

    handle: Handle
    offset: int  # bytes


@dataclass(frozen=True)
class Ready:
    """A launch whose memory is known: what the driver is told.

    `args` are addresses, whole numbers (32 bits, unsigned), floats, and bytes of a struct. `work`,
    where there is some, queues kernels of a library instead: it is told CUDA's stream.
    """

    module: str  # the key it was loaded under
    kernel: str
    grid: tuple[int, int, int]
    threads: int
    args: tuple[Address | int | float | bytes, ...]
    work: Callable[[int], object] | None = None


def value_bytes(arg: int | float | bytes) -> bytes:
    """An argument by value as it lies in memory."""
    if isinstance(arg, bytes):
        return arg
    return struct.pack("I" if isinstance(arg, int) else "f", arg)


class Replayable(Protocol):
    """Launches that were made ready once."""

    def replay(self) -> None:
        """Queue all of them."""
        ...


class Driver(Protocol):
    """One device. What is queued runs in order; a read waits for what was queued before it."""

    name: str  # "cuda", "cuda:1", "metal"
    target: str  # of the source: "cuda" or "metal"
    tensor_cores: bool  # those of CUDA's compute capability 8.0 and newer

    def describe(self) -> str:
        """The device in words: its name and memory."""
        ...

    def product(self) -> str:
        """What its maker calls it: "NVIDIA H200"."""
        ...

    def allocate(self, nbytes: int) -> Handle:
        """Fresh memory, 256-byte aligned; raises DeviceError when there is none."""
        ...

    def free(self, handle: Handle) -> None:
        """Give memory back; queued work may still use it."""
        ...

    def trim(self) -> None:
        """Give what was freed back to the system, once everything queued is done."""
        ...

    def free_memory(self) -> int:
        """Bytes that could still be allocated."""
        ...

    def pinned(self, nbytes: int) -> Any:
        """A pointer to memory of the host that copies are quick from and to, while it is held."""
        ...

    def write(self, address: Address, data: bytes | memoryview) -> None:
        """Queue a copy from the host; `data` may change once this returns."""
        ...

    def stage(self, nbytes: int) -> None:
        """Let two writes of so many bytes be on their way at once, if there is memory for that."""
        ...

    def at_work(self) -> bool:
        """Whether something that is queued has not run yet; the device begins with all of it."""
        ...

    def read(self, address: Address, into: memoryview) -> None:
        """Copy to the host, after everything queued."""
        ...

    def copy(self, to: Address, source: Address, nbytes: int) -> None:
        """Queue a copy within the device."""
        ...

    def load(self, key: str, source: str) -> None:
        """Compile a module under a key; raises DeviceError with the compiler's words."""
        ...

    def launch(self, ready: Ready) -> None:
        """Queue one launch."""
        ...

    def record(self, launches: Sequence[Ready]) -> Replayable:
        """Make launches ready to be queued again and again, with their arguments as they are."""
        ...

    def synchronize(self) -> None:
        """Wait for everything queued; raises DeviceError that names the kernel that failed."""
        ...
