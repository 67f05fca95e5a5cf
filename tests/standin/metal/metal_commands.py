"""Stand-in for Metal's queue, command buffers, encoders and indirect command buffers.

Nothing runs before somebody waits for it. Only then are kernels given their arguments' places, but
what they are given by value is what it was when it was encoded.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import objc
from host_build import ffi

MOST_BUFFERS, MOST_BYTES = 31, 4096
MOST_UNFINISHED = 64  # command buffers of a queue; who wants another one waits
CONCURRENT_DISPATCH = 32
ALIGNED = 256  # bytes: where a value by reference may begin
FAILS = os.environ.get("STANDIN_METAL_FAILS", "no kernel")  # how the names of such kernels begin
Size = tuple[int, int, int]

counted: Counter[str] = Counter()  # launches, commits, kernels, replays


class Misuse(AssertionError):
    """What Metal would refuse by ending the process, or do wrongly."""


class Bound:
    """The arguments of a launch."""

    def __init__(self) -> None:
        self.at: dict[int, tuple[Any, int]] = {}  # a buffer and an offset, or bytes

    def put(self, index: int, what: Any, offset: int = 0) -> None:
        if not 0 <= index < MOST_BUFFERS:
            raise Misuse(f"there is no argument {index}")
        if not isinstance(what, bytes) and not 0 <= offset < what.length():
            raise Misuse(f"argument {index} begins outside its buffer")
        self.at[index] = what, offset

    def buffers(self) -> list[Any]:
        return [what for what, _ in self.at.values() if not isinstance(what, bytes)]


class Command:
    """One launch with all it needs."""

    def __init__(self, pipeline: Any, bound: Bound, grid: Size, threads: Size) -> None:
        self.pipeline, self.grid, self.threads = pipeline, tuple(grid), tuple(threads)
        name = pipeline.name
        if self.threads[1:] != (1, 1) or min(self.grid) < 1:
            raise Misuse(f"{name}: a grid of {self.grid} blocks of {self.threads} threads")
        if not 0 < self.threads[0] <= pipeline.maxTotalThreadsPerThreadgroup():
            raise Misuse(f"{name}: blocks of {self.threads[0]} threads")
        self.arguments = [
            self._argument(index, kind, size, bound)
            for index, (kind, size) in enumerate(pipeline.parameters)
        ]
        if len(bound.at) > len(self.arguments):
            raise Misuse(f"{name}: {len(bound.at)} arguments are bound")

    def _argument(self, index: int, kind: str, size: int, bound: Bound) -> tuple[Any, int, bool]:
        name = self.pipeline.name
        if index not in bound.at:
            raise Misuse(f"{name}: missing buffer binding at index {index}")
        what, offset = bound.at[index]
        pointer = kind in "rw"
        if isinstance(what, bytes):
            if pointer or len(what) != size:
                raise Misuse(f"{name}: argument {index} cannot be {len(what)} bytes")
        elif offset % (size if pointer else ALIGNED):
            raise Misuse(f"{name}: argument {index} begins at byte {offset}")
        elif not pointer and what.length() - offset < size:
            raise Misuse(f"{name}: argument {index} has no {size} bytes")
        return what, offset, pointer

    def run(self, runtime: Any) -> str:
        """Runs it; what went wrong, if anything."""
        slots = [self._slot(*argument) for argument in self.arguments]
        listed = ffi.new("void *[]", [ffi.cast("void *", slot) for slot in slots] or 1)
        counted["kernels"] += 1
        if self.pipeline.name.startswith(FAILS):
            return f"Caused GPU Address Fault Error in {self.pipeline.name}"
        runtime.gc_host_configure(0, 0)
        if runtime.gc_host_launch(self.pipeline.kernel, listed, *self.grid, self.threads[0]):
            return str(ffi.string(runtime.gc_host_error()).decode())
        return ""

    @staticmethod
    def _slot(what: Any, offset: int, pointer: bool) -> Any:
        if isinstance(what, bytes):
            return ffi.new("char[]", what)
        at = ffi.cast("char *", what.data) + offset
        return ffi.new("char **", at) if pointer else at


class Encoder:
    """A compute encoder; what it was told holds for the launch that follows, and no longer."""

    def __init__(self, commands: CommandBuffer) -> None:
        self._commands = commands
        self.open = True
        self._pipeline: Any = None
        self._bound = Bound()
        self._resources: list[Any] = []
        self._seen: list[Any] = []  # pipelines

    def setComputePipelineState_(self, pipeline: Any) -> None:
        self._must_be_open()
        self._pipeline, self._bound = pipeline, Bound()

    def setBuffer_offset_atIndex_(self, buffer: Any, offset: int, index: int) -> None:
        self._must_be_open()
        self._bound.put(index, buffer, offset)

    def setBytes_length_atIndex_(self, data: bytes, length: int, index: int) -> None:
        self._must_be_open()
        if not 0 < length <= MOST_BYTES or length > len(data):
            raise Misuse(f"{length} bytes by value, of {len(data)}")
        self._bound.put(index, bytes(data[:length]))

    def dispatchThreadgroups_threadsPerThreadgroup_(self, grid: Size, threads: Size) -> None:
        self._must_be_open()
        if self._pipeline is None:
            raise Misuse("a launch without a pipeline")
        self._seen.append(self._pipeline)
        if tuple(grid) == tuple(threads) == (0, 0, 0):
            return
        counted["launches"] += 1
        command = Command(self._pipeline, self._bound, grid, threads)
        self._commands.work.append(command.run)
        self._pipeline = None

    def useResources_count_usage_(self, resources: Sequence[Any], count: int, usage: int) -> None:
        self._must_be_open()
        if usage != 3:
            raise Misuse("resources are read and written")
        self._resources = list(resources[:count])  # in place of those of an earlier call

    def executeCommandsInBuffer_withRange_(
        self, indirect: IndirectCommandBuffer, part: tuple[int, int]
    ) -> None:
        self._must_be_open()
        counted["replays"] += 1
        for command in indirect.in_order(*part):
            if not any(command.pipeline is one for one in self._seen):
                raise Misuse(f"an M1 has not seen the pipeline of {command.pipeline.name}")
            for what, _, _ in command.arguments:
                if not any(what is one for one in self._resources):
                    raise Misuse(f"{command.pipeline.name}: a buffer that useResources left out")
            self._commands.work.append(command.run)

    def endEncoding(self) -> None:
        self._must_be_open()
        self.open = False
        self._bound, self._resources, self._seen = Bound(), [], []

    def _must_be_open(self) -> None:
        if not self.open:
            raise Misuse("this encoder has ended")


class CommandBuffer:
    """Work that is committed together."""

    def __init__(self, queue: CommandQueue) -> None:
        self._queue = queue
        self._encoder: Encoder | None = None
        self.work: list[Callable[[Any], str]] = []
        self._status = 0
        self._error: Any = None

    def computeCommandEncoder(self) -> Encoder:
        _in_a_pool()
        if self._encoder is not None and self._encoder.open:
            raise Misuse("a command encoder is already encoding to this command buffer")
        if self._status:
            raise Misuse("this command buffer was committed")
        self._encoder = Encoder(self)
        return self._encoder

    def commit(self) -> None:
        if self._status or self._encoder is None or self._encoder.open:
            raise Misuse("a command buffer that is committed twice, or while it is encoded")
        counted["commits"] += 1
        self._status = 2
        self._queue.unfinished.append(self)

    def waitUntilCompleted(self) -> None:
        if not self._status:
            raise Misuse("waiting for what was not committed")
        while self._status == 2:
            self._queue.unfinished.pop(0).run()

    def status(self) -> int:
        return self._status

    def error(self) -> Any:
        return self._error

    def run(self) -> None:
        self._status = 4
        for work in self.work:
            said = work(self._queue.runtime)
            if said:
                self._status, self._error = 5, self._queue.error(said)
                break
        self.work.clear()


class CommandQueue:
    """Command buffers in the order in which they were committed."""

    def __init__(self, runtime: Any, error: Callable[[str], Any]) -> None:
        self.runtime, self.error = runtime, error
        self.unfinished: list[CommandBuffer] = []

    def commandBuffer(self) -> CommandBuffer:
        _in_a_pool()
        if len(self.unfinished) == MOST_UNFINISHED:
            self.unfinished.pop(0).run()
        return CommandBuffer(self)


class MTLIndirectCommandBufferDescriptor:
    """What indirect commands may be."""

    @classmethod
    def alloc(cls) -> MTLIndirectCommandBufferDescriptor:
        return cls()

    def init(self) -> MTLIndirectCommandBufferDescriptor:
        self.types, self.inherits, self.most = 0, True, MOST_BUFFERS
        return self

    def setCommandTypes_(self, types: int) -> None:
        self.types = types

    def setInheritBuffers_(self, inherits: bool) -> None:
        self.inherits = inherits

    def setInheritPipelineState_(self, inherits: bool) -> None:
        self.inherits = self.inherits or inherits

    def setMaxKernelBufferBindCount_(self, most: int) -> None:
        self.most = most


class IndirectCommand:
    """One of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pipeline: Any = None
        self._bound = Bound()
        self.command: Command | None = None
        self.waits = False

    def setComputePipelineState_(self, pipeline: Any) -> None:
        if not pipeline.indirect:
            raise Misuse(f"the pipeline of {pipeline.name} is not for indirect commands")
        self._pipeline = pipeline

    def setKernelBuffer_offset_atIndex_(self, buffer: Any, offset: int, index: int) -> None:
        if offset >= 1 << 32 or index >= self._most:
            raise Misuse(f"argument {index} at byte {offset} of an indirect command")
        self._bound.put(index, buffer, offset)

    def concurrentDispatchThreadgroups_threadsPerThreadgroup_(
        self, grid: Size, threads: Size
    ) -> None:
        self.command = Command(self._pipeline, self._bound, grid, threads)

    def setBarrier(self) -> None:
        self.waits = True


class IndirectCommandBuffer:
    """Launches that the GPU reads from memory."""

    def __init__(self, descriptor: MTLIndirectCommandBufferDescriptor, count: int) -> None:
        if descriptor.types != CONCURRENT_DISPATCH or descriptor.inherits:
            raise Misuse("indirect commands are dispatches that inherit nothing")
        self._commands = [IndirectCommand(descriptor.most) for _ in range(count)]

    def indirectComputeCommandAtIndex_(self, index: int) -> IndirectCommand:
        return self._commands[index]

    def in_order(self, first: int, count: int) -> list[Command]:
        """As a GPU may run them: what does not wait comes before what stands before it."""
        ordered: list[Command] = []
        begin = 0
        for one in self._commands[first : first + count]:
            if one.command is None:
                raise Misuse("an indirect command that says nothing")
            if one.waits:
                begin = len(ordered)
            ordered.insert(begin, one.command)
        return ordered


def _in_a_pool() -> None:
    if not objc.thread.pools:
        raise Misuse("nobody would ever release this object: there is no autorelease pool")
