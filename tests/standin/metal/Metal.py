"""Stand-in for pyobjc's module Metal: the device, its memory and its compiler.

Names of calls, what they take and what they give are pyobjc's; metal_commands.py has what a GPU is
told to do. It is strict: what Metal's own validation refuses, or what a Mac would let pass and then
do wrongly, is a Misuse. STANDIN_METAL_MEMORY bytes are all it has.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import host_build
import metal_host
from host_build import HostModule, ffi
from metal_commands import (
    CommandQueue,
    IndirectCommandBuffer,
    Misuse,
    MTLIndirectCommandBufferDescriptor,
)

MTLResourceStorageModeShared = 0
MTLResourceUsageRead = 1
MTLResourceUsageWrite = 2
MTLLanguageVersion3_1 = 196609
MTLMathModeSafe = 0
MTLIndirectCommandTypeConcurrentDispatch = 32
MTLCommandBufferStatusCompleted = 4
MTLCommandBufferStatusError = 5
MTLGPUFamilyApple7 = 1007
_MINE = 2  # references to a buffer that only Device.held knows: a name there, and an argument


class MTLSize(NamedTuple):
    """Sizes of a grid or a block."""

    width: int
    height: int
    depth: int


def MTLSizeMake(width: int, height: int, depth: int) -> MTLSize:
    return MTLSize(width, height, depth)


def MTLCreateSystemDefaultDevice() -> Device | None:
    return Device() if os.environ.get("STANDIN_METAL_DEVICES") != "0" else None


class NSError:
    """An error in words."""

    def __init__(self, text: str) -> None:
        self._text = text

    def localizedDescription(self) -> str:
        return self._text


class Made:
    """What is made with alloc() and init()."""

    @classmethod
    def alloc(cls) -> Any:
        return cls.__new__(cls)

    def init(self) -> Any:
        return self


class MTLCompileOptions(Made):
    """How a text is compiled."""

    def init(self) -> MTLCompileOptions:
        self.version, self.fast = 0, True
        return self

    def setLanguageVersion_(self, version: int) -> None:
        self.version = version

    def setFastMathEnabled_(self, fast: bool) -> None:
        self.fast = fast

    def setMathMode_(self, mode: int) -> None:  # only from macOS 15 on
        self.fast = mode != MTLMathModeSafe


class MTLComputePipelineDescriptor(Made):
    """What a pipeline is made of."""

    def init(self) -> MTLComputePipelineDescriptor:
        self.function: Any = None
        self.indirect = False
        return self

    def setComputeFunction_(self, function: Function) -> None:
        self.function = function

    def setSupportIndirectCommandBuffers_(self, wanted: bool) -> None:
        self.indirect = wanted


class VarList:
    """A pointer whose length only the reader knows."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def as_buffer(self, count: int) -> memoryview:
        return memoryview(ffi.buffer(self._data, count))


class Buffer:
    """A block of memory, full of 0xff."""

    def __init__(self, device: Device, data: Any, length: int) -> None:
        self.data, self.device, self._length = data, device, length

    def length(self) -> int:
        return self._length

    def contents(self) -> VarList:
        return VarList(self.data)


_buffers: list[Buffer] = []  # of all devices


class Function:
    """A kernel of a library."""

    def __init__(self, module: HostModule, kernel: Any) -> None:
        self.module, self.kernel = module, kernel


class Library:
    """What a text was compiled to."""

    def __init__(self, module: HostModule) -> None:
        self._module = module

    def newFunctionWithName_(self, name: str) -> Function | None:
        kernel = self._module.kernels.get(name)
        return None if kernel is None else Function(self._module, kernel)


class Pipeline:
    """A kernel that is ready to run."""

    def __init__(self, function: Function, indirect: bool) -> None:
        self.kernel, self.indirect = function.kernel, indirect
        self._module = function.module
        self.name = ffi.string(self.kernel.name).decode()
        self.parameters = [
            (p.kind.decode(), p.size) for p in self.kernel.parameters[0 : self.kernel.nparameters]
        ]

    def maxTotalThreadsPerThreadgroup(self) -> int:
        return int(self.kernel.most_threads)

    def threadExecutionWidth(self) -> int:
        return 32


class Device:
    """The GPU."""

    def __init__(self) -> None:
        self.runtime = host_build.runtime()
        self.memory = int(os.environ.get("STANDIN_METAL_MEMORY", 1 << 30))

    @property
    def held(self) -> int:
        """Bytes of all buffers; those that nobody has any more are freed now.

        Not by a __del__ of theirs: Python also calls it for what a collected cycle gives away, and
        the engine keeps such blocks for the next tensors.
        """
        there = _buffers[:]
        _buffers.clear()
        while there:
            buffer = there.pop()
            if sys.getrefcount(buffer) > _MINE:
                _buffers.append(buffer)
            else:
                self.runtime.gc_host_free(buffer.data)
        return sum(buffer.length() for buffer in _buffers if buffer.device is self)

    def name(self) -> str:
        return "stand-in for a Mac"

    def supportsFamily_(self, family: int) -> bool:
        return family <= int(os.environ.get("STANDIN_METAL_FAMILY", MTLGPUFamilyApple7))

    def recommendedMaxWorkingSetSize(self) -> int:
        return self.memory

    def currentAllocatedSize(self) -> int:
        return self.held

    def maxBufferLength(self) -> int:
        return self.memory * 15 // 16

    def newCommandQueue(self) -> CommandQueue:
        return CommandQueue(self.runtime, NSError)

    def newBufferWithLength_options_(self, length: int, options: int) -> Buffer | None:
        if not length or options != MTLResourceStorageModeShared:
            raise Misuse(f"a buffer of {length} bytes with options {options}")
        if length > self.maxBufferLength() or length > self.memory - self.held:
            return None
        _buffers.append(Buffer(self, self.runtime.gc_host_allocate(length), length))
        return _buffers[-1]

    def newLibraryWithSource_options_error_(
        self, source: str, options: MTLCompileOptions, error: None
    ) -> tuple[Library | None, NSError | None]:
        if options.version < MTLLanguageVersion3_1 or options.fast:
            raise Misuse("kernels need MSL 3.1, and fast maths off")
        try:
            return Library(HostModule(metal_host.compiled(source))), None
        except metal_host.Refused as refused:
            return None, NSError(str(refused))

    def newComputePipelineStateWithDescriptor_options_reflection_error_(
        self, descriptor: MTLComputePipelineDescriptor, options: int, reflection: None, error: None
    ) -> tuple[Pipeline | None, NSError | None]:
        if options or descriptor.function is None:
            raise Misuse("a pipeline without a function, or with options")
        return Pipeline(descriptor.function, descriptor.indirect), None

    def newIndirectCommandBufferWithDescriptor_maxCommandCount_options_(
        self, descriptor: MTLIndirectCommandBufferDescriptor, count: int, options: int
    ) -> IndirectCommandBuffer:
        if not 0 < count <= 16384 or options != MTLResourceStorageModeShared:
            raise Misuse(f"{count} indirect commands with options {options}")
        return IndirectCommandBuffer(descriptor, count)
