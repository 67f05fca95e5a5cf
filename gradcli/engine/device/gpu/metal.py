"""Metal: a Driver over Apple's GPUs through pyobjc; one queue, and memory that the CPU shares.

Launches are encoded one after the other and committed some dozens at a time, so that the GPU begins
early. Serial encoders run them in order. What the host writes while the GPU is busy waits its turn
in a ring, and a launch copies it from there.
"""

from __future__ import annotations

import os
import platform
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import Metal as Mtl
import objc

from gradcli.engine.device import cpu
from gradcli.engine.device.gpu.blame import failure, no_launch, no_memory, no_module
from gradcli.engine.device.gpu.driver import Address, Ready, Replayable, value_bytes
from gradcli.engine.device.gpu.launch import THREADS, KernelModule, over
from gradcli.engine.device.gpu.metal_replay import Encoded, Indirect, Prepared
from gradcli.engine.device.gpu.source import module_text, prelude_text
from gradcli.engine.device.gpu.staging import Ring, Staging
from gradcli.errors import DeviceError
from gradcli.wording import quantity

STAGING = 32 << 20  # bytes of the ring
BATCH = 50  # launches that are committed together
_MOST_COPIED = 1 << 31  # elements that one launch copies
_COPIES = KernelModule("bytes", "f32")
_LANES = 32  # of a SIMD group: kernels count on it
_MOST_BYTES = 4096  # that an argument may have by value


class MetalBuffer:
    """A block of memory: Metal's buffer, and the same bytes for the CPU."""

    def __init__(self, buffer: Any, nbytes: int) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer.contents().as_buffer(nbytes)).cast("B")

    def release(self) -> None:
        """Nobody may use it from now on; Metal keeps it until what was encoded has ended."""
        assert self.buffer is not None, "memory was freed twice"
        self.view.release()
        self.buffer = None


class Batch:
    """Launches that are committed together."""

    def __init__(self, commands: Any) -> None:
        self.commands = commands
        self.encoder: Any = None
        self.kernels: dict[str, None] = {}
        self.count = 0

    def encoding(self) -> Any:
        """An encoder that is open."""
        if self.encoder is None:
            self.encoder = self.commands.computeCommandEncoder()
        return self.encoder

    def end(self) -> None:
        """Close the encoder."""
        if self.encoder is not None:
            self.encoder.endEncoding()
            self.encoder = None


class Metal(Staging):
    """The GPU of a Mac, for one thread of one process."""

    name = target = "metal"
    tensor_cores = False

    def __init__(self) -> None:
        self._device = Mtl.MTLCreateSystemDefaultDevice()
        if self._device is None:
            raise DeviceError("metal: there is no device")
        self._queue = self._device.newCommandQueue()
        self._batch: Batch | None = None
        self._running: deque[Batch] = deque()
        self._libraries: dict[str, Any] = {}
        self._pipelines: dict[tuple[str, str], Any] = {}
        self._blocking = os.environ.get("METAL_LAUNCH_BLOCKING") == "1"  # errors name one kernel
        self._staging: Any = None
        self._stage_through(STAGING)
        self.indirect = os.environ.get("GRADCLI_METAL_REPLAY") == "indirect"
        self.load(str(_COPIES), module_text(_COPIES, prelude_text("metal")))
        self.indirect = self.indirect and self._indirect_works()

    def describe(self) -> str:
        """The device in words: its name, the memory it may use, and the system."""
        memory = self._device.recommendedMaxWorkingSetSize() / 2**30
        system = platform.mac_ver()[0]
        return f"{self.product()}, {memory:.1f} GiB of the Mac's memory, macOS {system}"

    def product(self) -> str:
        """The name of the device."""
        return str(self._device.name())

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> MetalBuffer:
        """Fresh memory; the device need not be able to have more than it is said to work with."""
        size = max(nbytes, 1)
        for may_retry in (True, False):
            if size <= min(self.free_memory(), self._device.maxBufferLength()):
                with objc.autorelease_pool():
                    buffer = self._device.newBufferWithLength_options_(
                        size, Mtl.MTLResourceStorageModeShared
                    )
                if buffer is not None:
                    return MetalBuffer(buffer, size)
            if may_retry and self._busy():
                self.synchronize()  # what was freed may have been waited for
        raise no_memory(nbytes, self.product(), self.free_memory())

    def free(self, handle: MetalBuffer) -> None:
        """Give memory back; queued work may still use it."""
        handle.release()

    def trim(self) -> None:
        """Wait: memory that was freed goes back when what uses it has run."""
        self.synchronize()

    def free_memory(self) -> int:
        """Bytes that could still be allocated."""
        most = int(self._device.recommendedMaxWorkingSetSize())
        return max(0, most - int(self._device.currentAllocatedSize()))

    def pinned(self, nbytes: int) -> Any:
        """Memory of the host: the GPU's is no other."""
        return cpu.allocate(nbytes).data

    def write(self, address: Address, data: bytes | memoryview) -> None:
        """Put bytes there, now or when the GPU has come so far; `data` may change then."""
        view = memoryview(data)
        if not view.nbytes:
            return
        view = view.cast("B")
        if not self._busy():
            address.handle.view[address.offset : address.offset + len(view)] = view
            return
        for first, begin, piece in self._ring.pieces(data):
            self._staging.view[begin : begin + len(piece)] = piece
            staged = Address(self._staging, begin)
            self.copy(Address(address.handle, address.offset + first), staged, len(piece))

    def _stage_through(self, nbytes: int) -> None:
        before, self._staging = self._staging, self.allocate(nbytes)
        self._ring = Ring(nbytes, self._newest, self._wait_for)
        if before is not None:
            self.free(before)

    def at_work(self) -> bool:
        """Whether something that is queued has not run yet; the GPU begins with all of it."""
        self._commit()
        end_states = (Mtl.MTLCommandBufferStatusCompleted, Mtl.MTLCommandBufferStatusError)
        return bool(self._running) and self._running[-1].commands.status() not in end_states

    def read(self, address: Address, into: memoryview) -> None:
        """Copy to the host, after everything queued."""
        self.synchronize()
        if into.nbytes:
            end = address.offset + into.nbytes
            into.cast("B")[:] = address.handle.view[address.offset : end]

    def copy(self, to: Address, source: Address, nbytes: int) -> None:
        """Queue a copy within the device."""
        words = not (to.offset | source.offset | nbytes) % 4
        kernel, size = ("copy_words", 4) if words else ("copy_bytes", 1)
        for first in range(0, nbytes // size, _MOST_COPIED):
            count = min(nbytes // size - first, _MOST_COPIED)
            ends = [Address(end.handle, end.offset + first * size) for end in (source, to)]
            self.launch(Ready(str(_COPIES), kernel, over(count), THREADS, (*ends, count)))

    # -- kernels -------------------------------------------------------------------------------

    def load(self, key: str, source: str) -> None:
        """Compile a module under a key; Metal itself keeps what it has compiled before."""
        with objc.autorelease_pool():
            options = Mtl.MTLCompileOptions.alloc().init()
            options.setLanguageVersion_(Mtl.MTLLanguageVersion3_1)
            if hasattr(options, "setMathMode_"):  # from macOS 15 on
                options.setMathMode_(Mtl.MTLMathModeSafe)
            else:
                options.setFastMathEnabled_(False)
            library, error = self._device.newLibraryWithSource_options_error_(source, options, None)
            if library is None:
                log = str(error.localizedDescription())
                raise no_module("metal", key, log, "the compiler does not say why")
        self._libraries[key] = library

    def launch(self, ready: Ready) -> None:
        """Queue one launch."""
        self.encode(self.prepared(ready))

    def record(self, launches: Sequence[Ready]) -> Replayable:
        """Launches to be encoded again and again, or one command that stands for all of them."""
        prepared = [self.prepared(ready) for ready in launches]
        if self.indirect and prepared and not self._blocking:
            return Indirect(self, self._device, prepared)
        return Encoded(self, prepared)

    def prepared(self, ready: Ready) -> Prepared:
        """A launch as it is encoded."""
        pipeline = self._pipeline(ready.module, ready.kernel)
        most = pipeline.maxTotalThreadsPerThreadgroup()
        if ready.threads > most:
            raise DeviceError(f"metal: {no_launch(ready)}: on {self.product()} it may have {most}")
        addresses, values = [], []
        for index, arg in enumerate(ready.args):
            if isinstance(arg, Address):
                assert arg.handle.buffer is not None, "this memory was freed"
                addresses.append((arg.handle.buffer, arg.offset, index))
            else:
                data = value_bytes(arg)
                assert len(data) <= _MOST_BYTES, (
                    f"{ready.kernel}: {quantity(len(data), 'byte')} by value"
                )
                values.append((data, len(data), index))
        size = Mtl.MTLSizeMake(*ready.grid), Mtl.MTLSizeMake(ready.threads, 1, 1)
        return Prepared(ready.kernel, pipeline, tuple(addresses), tuple(values), *size)

    def encode(self, launch: Prepared) -> None:
        """Queue a launch that was prepared."""
        batch = self._open()
        encoder = batch.encoding()
        encoder.setComputePipelineState_(launch.pipeline)
        for buffer, offset, index in launch.addresses:
            encoder.setBuffer_offset_atIndex_(buffer, offset, index)
        for data, length, index in launch.values:
            encoder.setBytes_length_atIndex_(data, length, index)
        encoder.dispatchThreadgroups_threadsPerThreadgroup_(launch.grid, launch.threads)
        batch.kernels[launch.kernel] = None
        batch.count += 1
        if self._blocking:
            self.synchronize()
        elif batch.count >= BATCH:
            self._commit()

    def encode_indirect(self, replay: Indirect) -> None:
        """Queue all launches of a replay."""
        batch = self._open()
        batch.end()
        replay.encode(batch.encoding())
        batch.kernels.update(dict.fromkeys(replay.kernels))
        self._commit()

    def synchronize(self) -> None:
        """Wait for everything queued."""
        self._commit()
        failed = None
        while self._running:
            batch = self._running.popleft()
            batch.commands.waitUntilCompleted()
            if failed is None and batch.commands.status() == Mtl.MTLCommandBufferStatusError:
                failed = batch
        if failed is not None:
            reason = str(failed.commands.error().localizedDescription())
            raise failure("metal", failed.kernels, reason)

    def _busy(self) -> bool:
        """Whether anything is queued that was not waited for."""
        return self._batch is not None or bool(self._running)

    def _open(self) -> Batch:
        """The batch that takes launches."""
        if self._batch is None:
            with objc.autorelease_pool():
                self._batch = Batch(self._queue.commandBuffer())
                self._batch.encoding()
        return self._batch

    def _commit(self) -> None:
        """Let the GPU begin with what was encoded, and forget what it has done."""
        if self._batch is None:
            return
        with objc.autorelease_pool():
            self._batch.end()
            self._batch.commands.commit()
        self._running.append(self._batch)
        self._batch = None
        completed = Mtl.MTLCommandBufferStatusCompleted
        while self._running[0].commands.status() == completed and len(self._running) > 1:
            self._running.popleft()

    def _newest(self) -> Batch | None:
        """The batch after which all that was encoded has run; None where all of it has."""
        if self._batch is None and self._running:
            return self._running[-1]
        return self._batch

    def _wait_for(self, batch: Batch | None) -> None:
        """Wait until a batch has run; whoever synchronizes is told of its errors."""
        if batch is None:
            return
        if batch is self._batch:
            self._commit()
        batch.commands.waitUntilCompleted()

    def _pipeline(self, module: str, kernel: str) -> Any:
        pipeline = self._pipelines.get((module, kernel))
        if pipeline is None:
            pipeline = self._pipelines[module, kernel] = self._new_pipeline(module, kernel)
        return pipeline

    def _new_pipeline(self, module: str, kernel: str) -> Any:
        with objc.autorelease_pool():
            function = self._libraries[module].newFunctionWithName_(kernel)
            assert function is not None, f"module '{module}' has no kernel '{kernel}'"
            description = Mtl.MTLComputePipelineDescriptor.alloc().init()
            description.setComputeFunction_(function)
            description.setSupportIndirectCommandBuffers_(self.indirect)
            results = self._device.newComputePipelineStateWithDescriptor_options_reflection_error_(
                description, 0, None, None
            )
            pipeline, error = results[0], results[-1]
            if pipeline is None:
                message = error.localizedDescription()
                raise DeviceError(f"metal: kernel '{kernel}' is refused by the driver: {message}")
        lanes = pipeline.threadExecutionWidth()
        if lanes != _LANES:
            raise DeviceError(
                f"metal: kernel '{kernel}' needs SIMD groups of {_LANES} threads, "
                f"{self.product()} has {lanes}"
            )
        return pipeline

    def _indirect_works(self) -> bool:
        """Two copies, one of the other, as one command: not every machine does that rightly."""
        blocks = [Address(self.allocate(64), 0) for _ in range(3)]
        count = 16
        launches = [
            Ready(str(_COPIES), "copy_words", (1, 1, 1), THREADS, (*pair, count))
            for pair in pairwise(blocks)
        ]
        data, read_back = bytes(range(64)), bytearray(64)
        self.write(blocks[0], data)
        try:
            self.record(launches).replay()
            self.read(blocks[2], memoryview(read_back))
        except (DeviceError, objc.error):
            return False
        return read_back == data
