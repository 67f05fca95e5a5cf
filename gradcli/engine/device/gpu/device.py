"""A GPU as the engine sees it: blocks of memory, and calls that run on them.

What a call reads from the CPU is taken along: a constant once, numbers that Python or the CPU keep
up (learning rates, random states) each time. float64 becomes float32 on the way.
"""

from __future__ import annotations

import threading
import weakref
from array import array as packed
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.engine.device import cpu, scope
from gradcli.engine.device.cpu import Storage
from gradcli.engine.device.gpu import launches, source
from gradcli.engine.device.gpu.driver import Address, Driver, Handle, Ready
from gradcli.engine.device.gpu.launch import (
    LAUNCHERS,
    ON_TENSOR_CORES,
    CallSpec,
    KernelModule,
    Launch,
    LaunchList,
)
from gradcli.engine.device.gpu.report import DeviceErrorReport
from gradcli.engine.device.program import plan_call
from gradcli.engine.device.scope import DeviceArray
from gradcli.engine.dtype import DType, bfloat16, float32, float64
from gradcli.engine.shape import Shape, extent, numel
from gradcli.errors import DeviceError

del launches  # imported to fill LAUNCHERS
_ROUND = 512  # bytes: sizes of blocks, so that a block fits the next tensor too
_PAGE = 4096
_MOST_PLANS = 4096  # of calls that are remembered
_MOST_KEPT = 1 << 20  # bytes of a constant that stays on the device
MOST_COUNTED = 1 << 31  # elements that kernels count, and step over


class Memory(Storage):
    """A block of a GPU's memory; goes back to the device when nobody holds it."""

    __slots__ = ("address", "handle", "mirror", "size")

    def __init__(self, device: GPU, handle: Handle, nbytes: int, size: int, address: int) -> None:
        super().__init__(None, nbytes, device=device)
        self.handle = handle
        self.size = size  # bytes of the block
        self.address = address  # nobody else's while this lives: what checks of a call are told
        self.mirror: Storage | None = None  # memory of the CPU that is to hold the same

    def __del__(self) -> None:
        self.device.released.append((self.size, self.handle))


@dataclass(frozen=True)
class DeviceTensor:
    """A tensor of a call: what launchers read of it, and where it lies."""

    shape: Shape
    strides: Shape
    dtype: DType
    where: Address


class GPU:
    """One device under a driver.

    Attributes:
        lock: held by whoever queues: what one call or one replay queues stays together.
        released: blocks (bytes, handle) that nobody holds any more. Python may say so in the midst
            of anything, in any thread, and while it ends: so nothing but this is done then.
    """

    has_float64 = False
    widens_bfloat16 = False  # but in chains, which passes make

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.lock = threading.RLock()
        self.released: deque[tuple[int, Handle]] = deque()
        self.name = driver.name
        self.multiplies_bfloat16 = ON_TENSOR_CORES if driver.tensor_cores else frozenset[str]()
        self._prelude = source.prelude_text(driver.target)
        self.loaded: set[KernelModule] = set()
        self._pool: dict[int, list[Handle]] = {}
        self._used_bytes = 0
        self._addresses = _PAGE
        self._constants: dict[int, tuple[weakref.ref[Storage], Memory]] = {}
        self._plans: dict[Any, LaunchList] = {}
        self.report = DeviceErrorReport(driver)
        scope.register(self)

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> Memory:
        """Fresh memory, contents undefined."""
        size = -(-max(nbytes, 1) // _ROUND) * _ROUND
        with self.lock:
            self._collect()
            free = self._pool.get(size)
            handle = free.pop() if free else self._fresh(size)
            self._used_bytes += size
            self._addresses += size + _PAGE
            return Memory(self, handle, nbytes, size, self._addresses - size)

    def _fresh(self, size: int) -> Handle:
        try:
            return self.driver.allocate(size)
        except DeviceError:
            self.trim()
            return self.driver.allocate(size)

    def _collect(self) -> None:
        """Keep released blocks for the next tensors of their size: what is queued may read them."""
        while self.released:
            size, handle = self.released.popleft()
            self._used_bytes -= size
            self._pool.setdefault(size, []).append(handle)

    def trim(self) -> None:
        """Give memory that nobody uses back to the system."""
        with self.lock:
            self._collect()
            for handles in self._pool.values():
                while handles:
                    self.driver.free(handles.pop())
            self._pool.clear()
            self.driver.trim()

    def allocated(self) -> int:
        """Bytes now held by arrays."""
        with self.lock:
            self._collect()
            return self._used_bytes

    def read(self, storage: Storage, start: int, nbytes: int) -> bytes:
        """Bytes of a block, once everything queued is done; raises what kernels have refused."""
        assert isinstance(storage, Memory)
        data = bytearray(nbytes)
        with self.lock:
            if nbytes:
                self.driver.read(Address(storage.handle, start), memoryview(data))
            self.report.check()
        return bytes(data)

    def elements(self, array: DeviceArray) -> bytes:
        """The bytes of a contiguous array, as the CPU has them."""
        dtype = on_device(array.dtype)
        count = numel(array.shape)
        data = self.read(array.storage, array.offset * dtype.size, count * dtype.size)
        if array.dtype is not float64:
            return data
        floats: Any = memoryview(data).cast("f")
        return packed("d", floats).tobytes()

    def write(self, storage: Storage, start: int, data: bytes | memoryview) -> None:
        """Put bytes into a block, after everything queued."""
        assert isinstance(storage, Memory)
        if len(data):
            with self.lock:
                self.driver.write(Address(storage.handle, start), data)

    def stage(self, nbytes: int) -> None:
        """Let two writes of so many bytes be on their way at once."""
        with self.lock:
            self.driver.stage(nbytes)

    def mirror(self, storage: Storage) -> Storage:
        """Memory of the CPU for the bytes of a block: the same one each time."""
        assert isinstance(storage, Memory)
        if storage.mirror is None:
            with self.lock:
                storage.mirror = Storage(self.driver.pinned(storage.nbytes), storage.nbytes)
        return storage.mirror

    def fetch(self, array: DeviceArray) -> None:
        """Bring an array to its mirror, once everything queued is done; raises what was refused."""
        address, data = self._both(array)
        with self.lock:
            self.driver.read(address, data)
            self.report.check()

    def send(self, array: DeviceArray) -> None:
        """Put what the mirror holds of an array into the array, after everything queued."""
        address, data = self._both(array)
        if len(data):
            with self.lock:
                self.driver.write(address, data)

    def _both(self, array: DeviceArray) -> tuple[Address, memoryview]:
        """Where the bytes of an array lie here, and in its mirror."""
        assert isinstance(array.storage, Memory)
        size = array.dtype.size
        low, high = extent(array.offset, array.shape, array.strides)
        data = cpu.window(self.mirror(array.storage), low * size, (high - low) * size)
        return Address(array.storage.handle, low * size), data

    # -- calls ---------------------------------------------------------------------------------

    def run(
        self,
        kernel: str,
        arrays: Sequence[DeviceArray],
        sizes: Sequence[int],
        options: Sequence[float],
    ) -> None:
        """Run one call: checked as on the CPU, then queued."""
        check(kernel, arrays, sizes, options)
        with self.lock:
            self._queue(kernel, arrays, sizes, options)

    def queue(self, name: str, work: Callable[[int], object]) -> None:
        """Queue kernels of a library: `work` is told CUDA's stream."""
        with self.lock:
            self.driver.launch(of_library(name, work))

    def _queue(
        self,
        kernel: str,
        arrays: Sequence[DeviceArray],
        sizes: Sequence[int],
        options: Sequence[float],
    ) -> None:
        copies: list[Memory] = []  # until the launches are queued
        tensors = [self._on_device(array, copies) for array in arrays]
        plan = self._plan(kernel, tensors, sizes, options)
        scratch = self.allocate(plan.scratch) if plan.scratch else None
        begin = None if scratch is None else Address(scratch.handle, 0)
        addresses = [tensor.where for tensor in tensors]
        for launch in plan.launches:
            self.driver.launch(self.ready(kernel, launch, addresses, begin))

    def _plan(
        self,
        kernel: str,
        tensors: Sequence[DeviceTensor],
        sizes: Sequence[int],
        options: Sequence[float],
    ) -> LaunchList:
        key = (
            kernel,
            tuple((tensor.shape, tensor.strides, tensor.dtype) for tensor in tensors),
            tuple(sizes),
            tuple(options),
        )
        plan = self._plans.get(key)
        if plan is None:
            plan = self.plan_call(CallSpec(kernel, tensors, tuple(sizes), tuple(options)))
            if len(self._plans) > _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def plan_call(self, call: CallSpec) -> LaunchList:
        """The launches of a call, their modules loaded."""
        with self.lock:
            return self._launches(call)

    def _launches(self, call: CallSpec) -> LaunchList:
        if call.kernel not in LAUNCHERS:
            raise DeviceError(f"{call.kernel}: this kernel is not written for {self.name} yet")
        _countable(call)
        plan = LAUNCHERS[call.kernel](replace(call, tensor_cores=self.driver.tensor_cores))
        for launch in plan.launches:
            if launch.module not in self.loaded:
                text = source.module_text(launch.module, self._prelude)
                self.driver.load(str(launch.module), text)
                self.loaded.add(launch.module)
        return plan

    def ready(
        self, kernel: str, launch: Launch, tensors: Sequence[Address], scratch: Address | None
    ) -> Ready:
        """A launch of a call of this kernel, with its memory."""
        report = self.report
        return launch.ready(
            str(launch.module), tensors, scratch, lambda: (report.address, report.code(kernel))
        )

    def _on_device(self, array: DeviceArray, copies: list[Memory]) -> DeviceTensor:
        storage = array.storage
        if isinstance(storage, Memory):
            if storage.device is not self:
                raise DeviceError(
                    f"this tensor lies on {storage.device.name} and another one of the call on "
                    f"{self.name}; move one of them: x.to('{self.name}')"
                )
            dtype = on_device(array.dtype)
            at = Address(storage.handle, array.offset * dtype.size)
            return DeviceTensor(array.shape, array.strides, dtype, at)
        low, high = extent(array.offset, array.shape, array.strides)
        constant = not storage.writable and storage.nbytes <= _MOST_KEPT
        if constant:
            low, high = 0, storage.nbytes // array.dtype.size
        memory = self._constant(storage) if constant else None
        if memory is None:
            data = on_gpu(storage, low, high, array.dtype)
            memory = self.allocate(len(data))
            self.write(memory, 0, data)
            copies.append(memory)
            if constant:
                self._keep(storage, memory)
        dtype = on_device(array.dtype)
        at = Address(memory.handle, (array.offset - low) * dtype.size)
        return DeviceTensor(array.shape, array.strides, dtype, at)

    def _keep(self, storage: Storage, memory: Memory) -> None:
        """For the next call that reads this block, as long as somebody has it."""
        key = id(storage)

        def forget(_: weakref.ref[Storage]) -> None:
            self._constants.pop(key, None)

        self._constants[key] = weakref.ref(storage, forget), memory

    def _constant(self, storage: Storage) -> Memory | None:
        """The device's copy of a block that never changes; None where there is none."""
        _, memory = self._constants.get(id(storage), (None, None))
        return memory


def _countable(call: CallSpec) -> None:
    """Refuse tensors in which 32 bits do not say which element is meant."""
    for tensor in call.tensors:
        low, high = extent(0, tensor.shape, tensor.strides)
        if max(numel(tensor.shape), high - low) > MOST_COUNTED:
            raise DeviceError(
                f"{call.kernel}: a tensor of shape {tensor.shape} reaches over more elements than "
                f"the {MOST_COUNTED:,} that kernels of GPUs count; use a smaller batch"
            )


def of_library(name: str, work: Callable[[int], object]) -> Ready:
    """What a library queues, as a launch."""
    return Ready("", name, (1, 1, 1), 1, (), work)


def on_device(dtype: DType) -> DType:
    """How a GPU keeps a type: it has no float64, and carries such numbers as float32."""
    return float32 if dtype is float64 else dtype


def on_gpu(storage: Storage, low: int, high: int, dtype: DType) -> bytes | memoryview:
    """Elements of the CPU's memory as a GPU has them: float64 as float32, others where they lie."""
    window = cpu.window(storage, low * dtype.size, (high - low) * dtype.size)
    if dtype.name == "float64":
        doubles: Any = window.cast("d")
        return packed("f", doubles).tobytes()
    return window


def check(
    kernel: str, arrays: Sequence[DeviceArray], sizes: Sequence[int], options: Sequence[float]
) -> None:
    """Refuse what the CPU's door refuses: bounds, overlaps, types and shapes of a call.

    It knows no products of bfloat16: those are checked as the same call in float32.
    """
    wide = kernel in ON_TENSOR_CORES and all(a.dtype is bfloat16 for a in arrays)
    plan_call(kernel, arrays, sizes, options, wide=wide)
