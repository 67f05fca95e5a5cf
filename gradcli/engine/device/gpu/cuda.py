"""CUDA: a Driver over NVIDIA's own Python package (cuda-bindings), one context and one stream.

Memory comes from the stream's pool, so that what is freed may still be used by what was queued
before. Bytes go to the device through a ring of pinned memory. Launches that are recorded become
a graph, which is queued with one call.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver

from gradcli.devices import name_of, too_high
from gradcli.engine.device.gpu import nvrtc
from gradcli.engine.device.gpu.arguments import KernelParams, address_of
from gradcli.engine.device.gpu.blame import failure, no_launch, no_memory
from gradcli.engine.device.gpu.driver import Address, Ready, Replayable
from gradcli.engine.device.gpu.staging import Ring, Staging
from gradcli.engine.device.kernels import ffi
from gradcli.errors import DeviceError
from gradcli.wording import quantity

STAGING = 32 << 20  # bytes of pinned memory
_ALWAYS_KEEP = 2**64 - 1  # memory that is free again stays in the pool
_OUT_OF_MEMORY, _BAD_VALUE, _NO_SUCH_NAME, _NOT_READY = 2, 1, 500, 600
_OF_A_KERNEL = {700, 702, 710, *range(714, 720)}  # after these the device is lost to a process

_Attribute = driver.CUdevice_attribute
_Pool = driver.CUmemPool_attribute


class _Thread(threading.local):
    """What a thread has of the driver's."""

    context: Any = None  # its current one, as far as it was set here


_thread = _Thread()
# A child begins with what its parent's thread had, and can use none of it.
os.register_at_fork(after_in_child=lambda: vars(_thread).clear())


class Cuda(Staging):
    """One NVIDIA GPU, for one process: its threads may call it one at a time.

    Attributes:
        patience: where it is set, waits for what is queued until its argument says True, or raises.
            The driver waits without a limit, and what is queued may need other processes.
    """

    target = "cuda"

    def __init__(self, index: int = 0) -> None:
        self.name = name_of("cuda", index)
        self.patience: Callable[[Callable[[], bool]], object] | None = None
        self._queued: dict[str | Graph, None] = {}  # what a failure may come from
        self._first_failure = ""  # which kernel failed, once one did
        self._blocking = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"  # errors name one kernel
        self._process = os.getpid()
        self._modules: dict[str, Any] = {}
        self._functions: dict[tuple[str, str], Any] = {}
        self._events: list[Any] = []
        self._unpinned: deque[Any] = deque()  # memory of the host that nobody holds any more
        self._check(driver.cuInit(0), "the driver does not start")
        self._device = self._find(index)
        self._context = self._check(driver.cuDevicePrimaryCtxRetain(self._device), "no context")
        self._bind()
        non_blocking = driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value
        self._stream = self._check(driver.cuStreamCreate(non_blocking))
        self._pool = self._own_pool()
        self.capability = (
            self._attribute(_Attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self._attribute(_Attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.tensor_cores = self.capability >= (8, 0)
        made_for = nvrtc.target_for(self.capability)
        self.architecture, self.note = made_for.architecture, made_for.note
        self._staging: Any = None
        self._stage_through(STAGING)

    def _bind(self) -> None:
        """Let this thread's calls mean this device: the driver asks that of each thread."""
        if _thread.context is self._context:
            return
        if os.getpid() != self._process:
            raise DeviceError(
                "cuda: a forked process cannot use the GPU that its parent has opened; let "
                "multiprocessing start it with 'spawn'"
            )
        self._check(driver.cuCtxSetCurrent(self._context))
        _thread.context = self._context

    def describe(self) -> str:
        """The device in words: its name, memory, architecture, and the driver's version."""
        total = self._check(driver.cuDeviceTotalMem(self._device))
        major, rest = divmod(self._check(driver.cuDriverGetVersion()), 1000)
        return (
            f"{self.product()}, {total / 2**30:.1f} GiB, compute capability "
            f"{self.capability[0]}.{self.capability[1]}, driver for CUDA {major}.{rest // 10}"
        )

    def product(self) -> str:
        """The name of the device."""
        name = self._check(driver.cuDeviceGetName(128, self._device))
        return str(name.partition(b"\0")[0].decode())

    def uuid(self) -> str:
        """What names this device and no other, also where processes count theirs differently."""
        return str(self._check(driver.cuDeviceGetUuid(self._device)).bytes.hex())

    def allocate(self, nbytes: int) -> int:
        """Fresh memory: its address on the device."""
        self._bind()
        if nbytes < 1 << 63:
            for clear in (self.trim, None):
                status, address = self._allocate(max(nbytes, 1))
                if not status.value:
                    return int(address)
                if status.value != _OUT_OF_MEMORY:
                    raise self._failure(status, "no memory could be allocated")
                if clear:
                    clear()
        raise no_memory(nbytes, self.product(), self.free_memory())

    def free(self, handle: int) -> None:
        """Give memory back; queued work may still use it."""
        if os.getpid() != self._process:
            return  # a forked child has no device
        self._bind()
        if self._pool is None:
            driver.cuStreamSynchronize(self._stream)  # an error in it is told by whoever waits
            status = driver.cuMemFree(handle)[0]
        else:
            status = driver.cuMemFreeAsync(handle, self._stream)[0]
        assert status.value != _BAD_VALUE, "memory was freed that was not allocated"

    def trim(self) -> None:
        """Let the pool give what was freed back to the device, where other processes see it."""
        self._bind()
        self.synchronize()
        if self._pool is not None:
            self._check(driver.cuMemPoolTrimTo(self._pool, 0))

    def free_memory(self) -> int:
        """Bytes that could still be allocated: free ones, and those that the pool keeps."""
        self._bind()
        free, _ = self._check(driver.cuMemGetInfo())
        if self._pool is None:
            return int(free)
        return (
            int(free)
            + self._pool_bytes(_Pool.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
            - self._pool_bytes(_Pool.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        )

    def pinned(self, nbytes: int) -> Any:
        """Memory of the host that stays where it is, so that the device itself copies it."""
        self._bind()
        while self._unpinned:
            self._check(driver.cuMemFreeHost(address_of(self._unpinned.popleft())))
        failure_text = f"no {quantity(nbytes, 'byte')} of the host's memory could be pinned"
        at = self._check(driver.cuMemHostAlloc(max(nbytes, 1), 0), failure_text)
        # Python may let go of it in the midst of anything: it is given back with the next one.
        return ffi.gc(ffi.cast("void *", at), self._unpinned.append, nbytes)

    def write(self, address: Address, data: bytes | memoryview) -> None:
        """Queue a copy from the host; `data` may change once this returns."""
        self._bind()
        to = address.handle + address.offset
        for first, begin, piece in self._ring.pieces(data):
            ffi.memmove(self._staging + begin, piece, len(piece))
            source = address_of(self._staging + begin)
            self._check(driver.cuMemcpyHtoDAsync(to + first, source, len(piece), self._stream))

    def _stage_through(self, nbytes: int) -> None:
        before, at = self._staging, self._check(driver.cuMemHostAlloc(nbytes, 0))
        self._staging = ffi.cast("char *", at)
        self._ring = Ring(nbytes, self._mark, self._wait_for)
        if before is not None:
            self._check(driver.cuMemFreeHost(address_of(before)))

    def at_work(self) -> bool:
        """Whether something that is queued has not run yet."""
        self._bind()
        return bool(driver.cuStreamQuery(self._stream)[0].value == _NOT_READY)

    def read(self, address: Address, into: memoryview) -> None:
        """Copy to the host, after everything queued."""
        self._bind()
        if into.nbytes:
            to = address_of(ffi.from_buffer(into, require_writable=True))
            source = address.handle + address.offset
            self._check(driver.cuMemcpyDtoHAsync(to, source, into.nbytes, self._stream))
        self.synchronize()

    def copy(self, to: Address, source: Address, nbytes: int) -> None:
        """Queue a copy within the device."""
        self._bind()
        if nbytes:
            ends = to.handle + to.offset, source.handle + source.offset
            self._check(driver.cuMemcpyDtoDAsync(*ends, nbytes, self._stream))

    def load(self, key: str, source: str) -> None:
        """Compile a module under a key, or take it from the cache on disk."""
        self._bind()
        module = nvrtc.compiled(key, source, self.architecture)
        self._modules[key] = self._check(
            driver.cuModuleLoadData(module.image), f"module '{key}' does not load"
        )

    def launch(self, ready: Ready) -> None:
        """Queue one launch."""
        self._bind()
        if ready.work is not None:
            self._queued[ready.kernel] = None
            ready.work(int(self._stream))
            return
        function = self._function(ready.module, ready.kernel)
        arguments = KernelParams(ready.args)
        self._queued[ready.kernel] = None
        result = driver.cuLaunchKernel(
            function, *ready.grid, ready.threads, 1, 1, 0, self._stream, arguments.address, 0
        )
        if result[0].value:
            self._refuse(ready, result[0])
        if self._blocking:
            self.synchronize()

    def record(self, launches: Sequence[Ready]) -> Replayable:
        """Launches as a graph; one by one where errors shall name one kernel."""
        self._bind()
        if self._blocking:
            return _OneByOne(self, launches)
        for ready in launches:  # before the capture: finding one may load it
            if ready.work is None:
                self._function(ready.module, ready.kernel)
        queued = dict(self._queued)
        of_this_thread = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._check(driver.cuStreamBeginCapture(self._stream, of_this_thread))
        try:
            for ready in launches:
                self.launch(ready)
        finally:
            capture = driver.cuStreamEndCapture(self._stream)
            self._queued = queued  # nothing of it runs before it is replayed
        captured = self._check(capture, "launches could not be recorded")
        instance = driver.cuGraphInstantiate(captured, 0)
        driver.cuGraphDestroy(captured)
        return Graph(self, self._check(instance, "recorded launches cannot be replayed"), launches)

    def queue(self, graph: Graph) -> None:
        """Queue a graph."""
        self._bind()
        self._queued[graph] = None
        self._check(driver.cuGraphLaunch(graph.handle, self._stream))

    def synchronize(self) -> None:
        """Wait for everything queued."""
        self._bind()
        if self.patience is not None:
            self.patience(lambda: driver.cuStreamQuery(self._stream)[0].value != _NOT_READY)
        self._check(driver.cuStreamSynchronize(self._stream))
        self._queued.clear()

    def _find(self, index: int) -> Any:
        missing = too_high(index, self._check(driver.cuDeviceGetCount()), "NVIDIA's driver")
        if missing:
            raise DeviceError(f"cuda: {missing}")
        return self._check(driver.cuDeviceGet(index))

    def _attribute(self, which: object) -> int:
        return int(self._check(driver.cuDeviceGetAttribute(which, self._device)))

    def _own_pool(self) -> Any:
        """The device's pool of memory; None where it has none."""
        if not self._attribute(_Attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED):
            return None
        pool = self._check(driver.cuDeviceGetDefaultMemPool(self._device))
        keep = driver.cuuint64_t(_ALWAYS_KEEP)
        threshold = _Pool.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        self._check(driver.cuMemPoolSetAttribute(pool, threshold, keep))
        return pool

    def _pool_bytes(self, which: object) -> int:
        return int(self._check(driver.cuMemPoolGetAttribute(self._pool, which)))

    def _allocate(self, nbytes: int) -> tuple[Any, Any]:
        allocation = (
            driver.cuMemAlloc(nbytes)
            if self._pool is None
            else driver.cuMemAllocAsync(nbytes, self._stream)
        )
        return allocation[0], allocation[1]

    def _mark(self) -> Any:
        """An event behind everything queued."""
        event = self._events.pop() if self._events else self._event()
        self._check(driver.cuEventRecord(event, self._stream))
        return event

    def _event(self) -> Any:
        untimed = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value
        return self._check(driver.cuEventCreate(untimed))

    def _wait_for(self, event: object) -> None:
        if self.patience is not None:
            self.patience(lambda: driver.cuEventQuery(event)[0].value != _NOT_READY)
        self._check(driver.cuEventSynchronize(event))
        self._events.append(event)

    def _function(self, module: str, kernel: str) -> Any:
        function = self._functions.get((module, kernel))
        if function is None:
            result = driver.cuModuleGetFunction(self._modules[module], kernel.encode())
            assert result[0].value != _NO_SUCH_NAME, f"module '{module}' has no kernel '{kernel}'"
            function = self._functions[module, kernel] = self._check(result)
        return function

    def _refuse(self, ready: Ready, status: Any) -> None:
        if status.value in _OF_A_KERNEL:
            raise self._failure(status, "")
        del self._queued[ready.kernel]
        raise self._failure(status, no_launch(ready))

    def _check(self, result: tuple[Any, ...], doing: str = "") -> Any:
        """What a call of the driver gives after its status."""
        status, *values = result
        if status.value:
            raise self._failure(status, doing)
        return values[0] if len(values) == 1 else tuple(values)

    def _failure(self, status: Any, doing: str) -> DeviceError:
        """An error of the driver in words, with the kernel that it may come from."""
        text = driver.cuGetErrorString(status)[1]
        message = f"{text.decode() if text else 'unknown error'} ({status.name})"
        if status.value not in _OF_A_KERNEL:
            return DeviceError(f"cuda: {doing or 'the driver refused a call'}: {message}")
        names = [name for item in self._queued for name in _names(item)]
        error = failure("cuda", names, message)
        self._first_failure = self._first_failure or error.message
        return DeviceError(self._first_failure, notes=error.notes)


class Graph:
    """Launches that the driver keeps; their arguments are as they were when they were recorded."""

    def __init__(self, cuda: Cuda, handle: object, launches: Sequence[Ready]) -> None:
        self.handle = handle
        self.kernels = tuple(dict.fromkeys(ready.kernel for ready in launches))
        self._cuda = cuda
        # The driver keeps a graph that is still running until it has ended.
        weakref.finalize(self, driver.cuGraphExecDestroy, handle)

    def replay(self) -> None:
        """Queue all of them with one call."""
        self._cuda.queue(self)


class _OneByOne:
    """Launches that are queued one after another, each waited for."""

    def __init__(self, cuda: Cuda, launches: Sequence[Ready]) -> None:
        self._cuda, self._launches = cuda, tuple(launches)

    def replay(self) -> None:
        for ready in self._launches:
            self._cuda.launch(ready)


def _names(queued: str | Graph) -> tuple[str, ...]:
    """The kernels of what was queued."""
    return (queued,) if isinstance(queued, str) else queued.kernels
