"""The CPU: memory, and the one way to its kernels."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gradcli.engine.device.kernels import FACTS, ffi, lib, text
from gradcli.engine.dtype import DTYPES, DType, bfloat16
from gradcli.errors import (
    DeviceError,
    DTypeError,
    GradcliError,
    NumericsError,
    RangeError,
    ShapeError,
)
from gradcli.free_memory import free_memory
from gradcli.wording import quantity

KERNELS = {name: facts.number for name, facts in FACTS.items()}
INSTRUCTION_SETS = ("avx512bf16", "avx512", "avx2", "neon", "baseline")  # best first
NULL = ffi.NULL
_TENSOR = ffi.typeof("gc_tensor *")  # quicker than its name


class Storage:
    """A block of memory that arrays share; `version` counts the times it was written in place."""

    __slots__ = (
        "__weakref__",
        "_tensor",
        "data",
        "device",
        "nbytes",
        "owner",
        "version",
        "writable",
    )

    def __init__(
        self,
        data: Any,
        nbytes: int,
        owner: object = None,
        writable: bool = True,
        device: Any = None,
        tensor: Any = None,
    ) -> None:
        self.data = data
        self.device = device  # None for the CPU
        self.writable = writable
        self.nbytes = nbytes
        self.version = 0
        self.owner = owner  # keeps borrowed memory alive
        self._tensor = tensor  # keeps memory alive that came with a gc_tensor of its own


# Who looks at each new block, to know how much was in use at once: see peak.py.
looking: list[Callable[[], None]] = []


def allocate(nbytes: int) -> Storage:
    """Fresh memory, 64-byte aligned, contents undefined."""
    data = lib.gc_alloc(nbytes) if nbytes < 1 << 63 else NULL
    if not data:
        raise no_memory(nbytes)
    storage = Storage(ffi.gc(data, lib.gc_free, nbytes), nbytes)
    for look in looking:
        look()
    return storage


def no_memory(nbytes: int) -> DeviceError:
    """What to say where there is none for so many bytes."""
    size = f"{nbytes:,}" if nbytes < 1 << 80 else f"2^{nbytes.bit_length() - 1}"
    free = free_memory() or 0
    return DeviceError(
        f"no memory for {quantity(size, 'byte')} on the CPU; free: "
        f"{quantity(free, 'byte', form=',')}"
    )


def _owned(tensor: Any) -> Any:
    """A gc_tensor of C, freed with its last user; None where C gives none."""
    if not tensor:
        return None
    for look in looking:
        look()
    return ffi.gc(tensor, lib.gc_tensor_free)


def new(shape: Sequence[int], dtype: DType) -> Any:
    """The gc_tensor of a contiguous array in fresh memory, which lives as long; None: no memory."""
    try:
        return _owned(lib.gc_tensor_new(dtype.code, len(shape), shape))
    except OverflowError:
        return None


def computed(
    kernel: str,
    tensors: Sequence[Any],
    sizes: Sequence[int],
    options: Sequence[float],
    shape: Sequence[int],
    dtype: DType,
) -> Any:
    """The same, written by a kernel that reads these descriptors, in one crossing into C.

    None where anything is wrong: `run` says what.
    """
    return _owned(
        lib.gc_run_new(
            KERNELS[kernel],
            tensors,
            len(tensors),
            sizes,
            len(sizes),
            options,
            len(options),
            dtype.code,
            len(shape),
            shape,
        )
    )


def mapped(number: int, dtype: DType, a: Any, b: Any) -> Any:
    """The same by an elementwise kernel of this number; a and b, or NULL, are repeated."""
    return _owned(lib.gc_map_new(number, dtype.code, a, b))


def multiplied(a: Any, b: Any, bias: Any) -> Any:
    """The same of a matrix or row with a matrix or column, and a bias or NULL."""
    return _owned(lib.gc_product_new(KERNELS["matmul"], a, b, bias))


def pick(x: Any, indices: Sequence[Any]) -> Any:
    """The same of what vectors of places pick along the first dimensions of x."""
    numbers = KERNELS["flat_index"], KERNELS["index_select"]
    return _owned(lib.gc_pick_new(*numbers, x, indices, len(indices)))


def borrow(buffer: Any) -> Storage:
    """The memory of a bytes-like object, without a copy; writable only if the object is."""
    view = ffi.from_buffer(buffer)
    exported = memoryview(buffer)
    # Hold whose memory it is, never a memoryview: Python before 3.11.9 and 3.12.3 crashes when it
    # collects a cycle with one in it (its issue 77894).
    whole = exported.c_contiguous and _whole(exported.obj)
    owner = ffi.from_buffer(exported.obj) if whole else view
    return Storage(ffi.cast("void *", view), len(view), owner, not exported.readonly)


def _whole(exporter: Any) -> bool:
    return bool(memoryview(exporter).c_contiguous)


def doubles(storage: Storage) -> Any:
    """A block of memory as float64 numbers that Python reads and writes by index."""
    return ffi.cast("double *", storage.data)


def borrow_address(address: int, nbytes: int, owner: object) -> Storage:
    """Memory at an address, which `owner` keeps alive."""
    return Storage(ffi.cast("void *", address), nbytes, owner)


def address(storage: Storage) -> int:
    """Where the block begins."""
    return int(ffi.cast("intptr_t", storage.data))


def pointer_to(storage: Storage, offset: int) -> Any:
    """A pointer to a byte of a block."""
    return ffi.cast("char *", storage.data) + offset


def pointer(address: int) -> Any:
    """An address as C wants it."""
    return ffi.cast("void *", address)


def window(storage: Storage, start: int, nbytes: int) -> memoryview:
    """Bytes of a block as a memoryview that keeps the block alive."""
    pointer = ffi.cast("char *", storage.data) + start
    # gc() with the storage in the closure: the view must not outlive the memory it shows.
    bytes_ = ffi.buffer(ffi.gc(pointer, lambda _, keep=storage: None), nbytes)
    view = memoryview(bytes_).cast("B")
    return view if storage.writable else view.toreadonly()


def describe(
    storage: Storage, offset: int, shape: Sequence[int], strides: Sequence[int], dtype: DType
) -> Any:
    """A gc_tensor: what a kernel needs to know about an array."""
    if storage.device is not None:
        raise DeviceError(
            f"this tensor lies on {storage.device.name} and another one of the call on the CPU; "
            f"move one of them: x.to('{storage.device.name}') or x.cpu()"
        )
    return ffi.new(
        _TENSOR,
        (storage.data, storage.nbytes, offset, dtype.code, len(shape), shape, strides),
    )


def run(
    kernel: str, tensors: Sequence[Any], sizes: Sequence[int] = (), options: Sequence[float] = ()
) -> None:
    """Run one kernel on descriptors, inputs first; raises what the checked door refuses."""
    number = KERNELS[kernel]
    if lib.gc_run_kernel(number, tensors, len(tensors), sizes, len(sizes), options, len(options)):
        raise refusal(kernel, tensors, lib.gc_last_error())


def kernel_built(kernel: str, dtype: DType) -> bool:
    """Whether a kernel is built for an element type."""
    return bool(lib.gc_kernel_built(KERNELS[kernel], dtype.code))


def multiplies_bfloat16() -> frozenset[str]:
    """The products that this instruction set does on bfloat16 as it is."""
    return _multiplied_by(isa())


@cache
def _multiplied_by(_isa: str) -> frozenset[str]:
    return frozenset(k for k, facts in FACTS.items() if facts.product and kernel_built(k, bfloat16))


_DTYPE_NAMES = {dtype.code: dtype.name for dtype in DTYPES.values()}


def refusal(kernel: str, tensors: Sequence[Any], error: Any) -> Exception:
    """What the checked door or a kernel refused of a call on these descriptors, in words."""
    op = FACTS[kernel].op
    tensor = tensors[error.tensor]
    shape = tuple(tensor.shape[0 : tensor.ndim])
    if error.status in ERRORS_OF_VALUES:
        return refused_value(kernel, error.where, error.value, error.limit)
    if error.status == lib.GC_BAD_DTYPE:
        name = _DTYPE_NAMES.get(tensor.dtype, "this element type")
        return DTypeError(f"{op}: does not take {name}; change it, as in x.float()")
    if error.status == lib.GC_NO_MEMORY:
        return DeviceError(f"{op}: no memory left for the kernel's scratch space")
    expected = text(error.expected) or "another call"
    shapes = ", ".join(FACTS[kernel].shapes)
    return ShapeError(
        f"{op}: kernel '{kernel}' wanted {expected} as tensor {error.tensor}, got shape {shape}"
        + (f"; its tensors are {shapes}" if shapes else "")
    )


ERRORS_OF_VALUES = (lib.GC_BAD_INDEX, lib.GC_NOT_FINITE, lib.GC_ZERO)


def refused_value(kernel: str, where: int, value: int, limit: int) -> GradcliError:
    """What a kernel says of a number that it met: no index below the limit, not finite, or 0."""
    facts = FACTS[kernel]
    if facts.refuses == lib.GC_BAD_INDEX:
        low = -limit if facts.from_end else 0
        return RangeError(
            f"{facts.op}: index {value} at position {where} is outside {low}..{limit - 1}"
        )
    what = "0" if facts.refuses == lib.GC_ZERO else "not finite"
    return NumericsError(f"{facts.op}: the number at position {where} is {what}")


_sharers = 1


def _cgroup_cores() -> float:
    """How many cores the container may use, from cgroup 2 or 1; inf where there is no limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            folder = Path("/sys/fs/cgroup/cpu")
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return math.inf
    if quota in ("max", "-1"):
        return math.inf
    return int(quota) / int(period)


def share_cores(processes: int) -> None:
    """Leave the others their part of the cores, where so many processes compute on them."""
    global _sharers
    _sharers = processes
    set_threads(available_threads())


def sharers() -> int:
    """How many processes compute on the cores of this one, itself among them."""
    return _sharers


def available_cores() -> int:
    """Cores this process may use: its affinity, cut by the container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return math.ceil(min(cores or 1, _cgroup_cores()))


def available_threads() -> int:
    """The part of those cores that is this process's own; at least one."""
    return max(1, available_cores() // _sharers)


def set_threads(threads: int) -> int:
    """Use this many threads; returns how many the machine granted."""
    return int(lib.gc_set_threads(threads))


def threads() -> int:
    """How many threads the kernels use."""
    return int(lib.gc_threads())


def isa() -> str:
    """The instruction set chosen for this machine."""
    return text(lib.gc_isa())


def set_isa(name: str) -> bool:
    """Choose another instruction set; False where the machine lacks it."""
    return bool(lib.gc_set_isa(name.encode()))


def usable_isas() -> tuple[str, ...]:
    """The instruction sets that this machine has, best first."""
    before = isa()
    usable = tuple(name for name in INSTRUCTION_SETS if set_isa(name))
    set_isa(before)
    return usable


def allocated() -> int:
    """Bytes now held by arrays."""
    return int(lib.gc_allocated())


def spare_bytes() -> int:
    """Bytes of large blocks that no array uses, kept for the next arrays."""
    return int(lib.gc_kept())


def trim() -> None:
    """Give memory that nobody uses back to the system."""
    lib.gc_trim()


def fill_on_alloc(on: bool) -> None:
    """Fill fresh memory with NaN patterns, so that a test sees what a kernel left unwritten."""
    lib.gc_fill_on_alloc(on)


set_threads(available_threads())
