"""Replays on Metal: launches that are encoded anew each time, or one command for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import Metal as Mtl
import objc

from gradcli.dataclass import dataclass

if TYPE_CHECKING:
    from gradcli.engine.device.gpu.metal import Metal

_MOST_COMMANDS = 16384  # of an indirect command buffer
_ALIGNED = 256  # bytes: where a value by reference may begin on every Mac


@dataclass(frozen=True)
class Prepared:
    """A launch as an encoder wants it."""

    kernel: str
    pipeline: Any
    addresses: tuple[tuple[Any, int, int], ...]  # buffer, offset, index
    values: tuple[tuple[bytes, int, int], ...]  # bytes, how many, index
    grid: Any
    threads: Any


class Encoded:
    """Launches that are encoded anew with every replay."""

    def __init__(self, metal: Metal, launches: Sequence[Prepared]) -> None:
        self._metal = metal
        self._launches = tuple(launches)

    def replay(self) -> None:
        """Queue all of them."""
        with objc.autorelease_pool():
            for launch in self._launches:
                self._metal.encode(launch)


class Indirect:
    """Launches in indirect command buffers: the GPU reads there what it is to do.

    An argument by value has to lie in memory for that.
    """

    def __init__(self, metal: Metal, device: object, launches: Sequence[Prepared]) -> None:
        self.kernels = tuple(dict.fromkeys(launch.kernel for launch in launches))
        self._metal = metal
        self._values = metal.allocate(sum(_padded(launch) for launch in launches))
        self._pipelines = _each(launch.pipeline for launch in launches)
        buffers = [buffer for launch in launches for buffer, _, _ in launch.addresses]
        self._resources = _each([*buffers, self._values.buffer])
        self._filled = 0
        self._commands = [
            (self._new(device, part), len(part))
            for part in (
                launches[first : first + _MOST_COMMANDS]
                for first in range(0, len(launches), _MOST_COMMANDS)
            )
        ]

    def replay(self) -> None:
        """Queue all of them."""
        with objc.autorelease_pool():
            self._metal.encode_indirect(self)

    def encode(self, encoder: Any) -> None:
        """Say what is used, then what is to be done."""
        usage = Mtl.MTLResourceUsageRead | Mtl.MTLResourceUsageWrite
        # Once, with all: a second call would take the place of the first.
        encoder.useResources_count_usage_(self._resources, len(self._resources), usage)
        nothing = Mtl.MTLSizeMake(0, 0, 0)
        for pipeline in self._pipelines:  # M1 and M2 must have seen them
            encoder.setComputePipelineState_(pipeline)
            encoder.dispatchThreadgroups_threadsPerThreadgroup_(nothing, nothing)
        for commands, count in self._commands:
            encoder.executeCommandsInBuffer_withRange_(commands, (0, count))

    def _new(self, device: Any, launches: Sequence[Prepared]) -> Any:
        with objc.autorelease_pool():
            description = Mtl.MTLIndirectCommandBufferDescriptor.alloc().init()
            description.setCommandTypes_(Mtl.MTLIndirectCommandTypeConcurrentDispatch)
            description.setInheritBuffers_(False)
            description.setInheritPipelineState_(False)
            most = max(len(launch.addresses) + len(launch.values) for launch in launches)
            description.setMaxKernelBufferBindCount_(most)
            commands = device.newIndirectCommandBufferWithDescriptor_maxCommandCount_options_(
                description, len(launches), Mtl.MTLResourceStorageModeShared
            )
            for number, launch in enumerate(launches):
                self._encode(commands.indirectComputeCommandAtIndex_(number), launch)
        return commands

    def _encode(self, command: Any, launch: Prepared) -> None:
        command.setComputePipelineState_(launch.pipeline)
        for buffer, offset, index in launch.addresses:
            command.setKernelBuffer_offset_atIndex_(buffer, offset, index)
        for data, length, index in launch.values:
            self._values.view[self._filled : self._filled + length] = data
            command.setKernelBuffer_offset_atIndex_(self._values.buffer, self._filled, index)
            self._filled += -(-length // _ALIGNED) * _ALIGNED
        command.concurrentDispatchThreadgroups_threadsPerThreadgroup_(launch.grid, launch.threads)
        command.setBarrier()  # waits for the commands before


def _padded(launch: Prepared) -> int:
    """The bytes that the values of a launch take."""
    return sum(-(-length // _ALIGNED) * _ALIGNED for _, length, _ in launch.values)


def _each(things: Any) -> list[Any]:
    """Each of them once."""
    return list({id(thing): thing for thing in things}.values())
