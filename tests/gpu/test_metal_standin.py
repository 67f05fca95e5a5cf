"""The stand-in for Metal refuses what Metal refuses, and what a Mac would do wrongly in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from metal_standin import api, commands, objc

from gradcli.engine.device.gpu.source import prelude_text

TEXT = (
    prelude_text("metal")
    + """
KERNEL(add, 64, IN(float, x), OUT(float, y), VAL(float, by)) {
  y[TID.x] = x[TID.x] + by;
}
"""
)
ONE, BLOCK = (1, 1, 1), (64, 1, 1)


class Bench:
    """A device, its queue, two buffers, and pipelines with and without indirect commands."""

    def __init__(self) -> None:
        self.device = api.MTLCreateSystemDefaultDevice()
        self.queue = self.device.newCommandQueue()
        self.x, self.y = (self.device.newBufferWithLength_options_(512, 0) for _ in range(2))
        options = api.MTLCompileOptions.alloc().init()
        options.setLanguageVersion_(api.MTLLanguageVersion3_1)
        options.setMathMode_(api.MTLMathModeSafe)
        library, _ = self.device.newLibraryWithSource_options_error_(TEXT, options, None)
        self.function = library.newFunctionWithName_("add")
        self.plain, self.pipeline = self.made(False), self.made(True)
        with objc.autorelease_pool():
            self.commands = self.queue.commandBuffer()
            self.encoder = self.commands.computeCommandEncoder()

    def made(self, indirect: bool) -> Any:
        wanted = api.MTLComputePipelineDescriptor.alloc().init()
        wanted.setComputeFunction_(self.function)
        wanted.setSupportIndirectCommandBuffers_(indirect)
        make = self.device.newComputePipelineStateWithDescriptor_options_reflection_error_
        return make(wanted, 0, None, None)[0]

    def bind(self, *left_out: int, bytes_at: int = 2) -> None:
        self.encoder.setComputePipelineState_(self.pipeline)
        for index, buffer in enumerate((self.x, self.y)):
            if index not in left_out:
                self.encoder.setBuffer_offset_atIndex_(buffer, 0, index)
        if bytes_at not in left_out:
            self.encoder.setBytes_length_atIndex_(bytes(4), 4, bytes_at)

    def dispatch(self, grid: Any = ONE, threads: Any = BLOCK) -> None:
        self.encoder.dispatchThreadgroups_threadsPerThreadgroup_(grid, threads)

    def indirect(self, most: int = 3) -> Any:
        wanted = api.MTLIndirectCommandBufferDescriptor.alloc().init()
        wanted.setCommandTypes_(api.MTLIndirectCommandTypeConcurrentDispatch)
        wanted.setInheritBuffers_(False)
        wanted.setInheritPipelineState_(False)
        wanted.setMaxKernelBufferBindCount_(most)
        make = self.device.newIndirectCommandBufferWithDescriptor_maxCommandCount_options_
        return make(wanted, 1, 0)

    def filled(self) -> Any:
        made = self.indirect()
        command = made.indirectComputeCommandAtIndex_(0)
        command.setComputePipelineState_(self.pipeline)
        for index, buffer in enumerate((self.x, self.y, self.x)):
            command.setKernelBuffer_offset_atIndex_(buffer, 0, index)
        command.concurrentDispatchThreadgroups_threadsPerThreadgroup_(ONE, BLOCK)
        return made


def uses(bench: Bench, *buffers: Any) -> None:
    bench.encoder.useResources_count_usage_(list(buffers), len(buffers), 3)


def seen(bench: Bench) -> None:
    bench.encoder.setComputePipelineState_(bench.pipeline)
    bench.dispatch((0, 0, 0), (0, 0, 0))


def unbound(bench: Bench) -> None:
    bench.bind(1)
    bench.dispatch()


def bound_for_the_launch_before(bench: Bench) -> None:
    bench.bind()
    bench.dispatch()
    bench.encoder.setComputePipelineState_(bench.pipeline)
    bench.dispatch()


def undeclared(bench: Bench) -> None:
    seen(bench)
    uses(bench, bench.x)
    bench.encoder.executeCommandsInBuffer_withRange_(bench.filled(), (0, 1))


def declared_twice(bench: Bench) -> None:
    seen(bench)
    uses(bench, bench.x, bench.y)
    uses(bench, bench.y)
    bench.encoder.executeCommandsInBuffer_withRange_(bench.filled(), (0, 1))


def unseen(bench: Bench) -> None:
    uses(bench, bench.x, bench.y)
    bench.encoder.executeCommandsInBuffer_withRange_(bench.filled(), (0, 1))


def not_for_indirect(bench: Bench) -> None:
    command = bench.indirect().indirectComputeCommandAtIndex_(0)
    command.setComputePipelineState_(bench.plain)


def more_than_was_said(bench: Bench) -> None:
    command = bench.indirect(2).indirectComputeCommandAtIndex_(0)
    command.setKernelBuffer_offset_atIndex_(bench.x, 0, 2)


def second_encoder(bench: Bench) -> None:
    with objc.autorelease_pool():
        bench.commands.computeCommandEncoder()


def committed_open(bench: Bench) -> None:
    bench.commands.commit()


def waited_for_nothing(bench: Bench) -> None:
    bench.commands.waitUntilCompleted()


def after_its_end(bench: Bench) -> None:
    bench.encoder.endEncoding()
    bench.bind()


def without_a_pool(bench: Bench) -> None:
    bench.queue.commandBuffer()


def too_many_bytes(bench: Bench) -> None:
    bench.encoder.setBytes_length_atIndex_(bytes(5000), 5000, 0)


def wrong_bytes(bench: Bench) -> None:
    bench.bind(2)
    bench.encoder.setBytes_length_atIndex_(bytes(8), 8, 2)
    bench.dispatch()


def bytes_for_a_pointer(bench: Bench) -> None:
    bench.bind(0)
    bench.encoder.setBytes_length_atIndex_(bytes(4), 4, 0)
    bench.dispatch()


def crooked(bench: Bench) -> None:
    bench.bind(0)
    bench.encoder.setBuffer_offset_atIndex_(bench.x, 2, 0)
    bench.dispatch()


def outside(bench: Bench) -> None:
    bench.encoder.setBuffer_offset_atIndex_(bench.x, 512, 0)


def crowded(bench: Bench) -> None:
    bench.bind()
    bench.dispatch(threads=(128, 1, 1))


def empty(bench: Bench) -> None:
    bench.bind()
    bench.dispatch((0, 1, 1))


def fast(bench: Bench) -> None:
    options = api.MTLCompileOptions.alloc().init()
    options.setLanguageVersion_(api.MTLLanguageVersion3_1)
    bench.device.newLibraryWithSource_options_error_(TEXT, options, None)


MISUSES = {
    unbound: "add: missing buffer binding at index 1",
    bound_for_the_launch_before: "add: missing buffer binding at index 0",
    undeclared: "add: a buffer that useResources left out",
    declared_twice: "add: a buffer that useResources left out",
    unseen: "an M1 has not seen the pipeline of add",
    not_for_indirect: "the pipeline of add is not for indirect commands",
    more_than_was_said: "argument 2 at byte 0 of an indirect command",
    second_encoder: "a command encoder is already encoding",
    committed_open: "committed twice, or while it is encoded",
    waited_for_nothing: "waiting for what was not committed",
    after_its_end: "this encoder has ended",
    without_a_pool: "there is no autorelease pool",
    too_many_bytes: "5000 bytes by value",
    wrong_bytes: "add: argument 2 cannot be 8 bytes",
    bytes_for_a_pointer: "add: argument 0 cannot be 4 bytes",
    crooked: "add: argument 0 begins at byte 2",
    outside: "argument 0 begins outside its buffer",
    crowded: "add: blocks of 128 threads",
    empty: "add: a grid of",
    fast: "kernels need MSL 3.1, and fast maths off",
}


@pytest.mark.parametrize("misuse", MISUSES, ids=lambda one: one.__name__)
def test_a_misuse_is_refused(misuse: Callable[[Bench], None]) -> None:
    with pytest.raises(commands.Misuse, match=MISUSES[misuse]):
        misuse(Bench())


def test_a_selector_that_is_none_is_no_method() -> None:
    with pytest.raises(AttributeError):
        Bench().encoder.setBuffer_atIndex_offset_(None, 0, 0)


def test_what_is_right_runs_once_it_is_waited_for() -> None:
    bench = Bench()
    bench.x.contents().as_buffer(512)[:] = bytes(512)
    bench.bind()
    bench.dispatch()
    bench.encoder.endEncoding()
    bench.commands.commit()
    assert bytes(bench.y.contents().as_buffer(4)) == b"\xff" * 4
    bench.commands.waitUntilCompleted()
    assert bench.commands.status() == api.MTLCommandBufferStatusCompleted
    assert bytes(bench.y.contents().as_buffer(256)) == bytes(256)


def test_indirect_commands_that_do_not_wait_overtake() -> None:
    bench = Bench()
    made = bench.filled()
    assert len(made.in_order(0, 1)) == 1
    two = commands.IndirectCommandBuffer.__new__(commands.IndirectCommandBuffer)
    first, second = (bench.filled().indirectComputeCommandAtIndex_(0) for _ in range(2))
    two._commands = [first, second]
    assert two.in_order(0, 2) == [second.command, first.command]
    second.setBarrier()
    assert two.in_order(0, 2) == [first.command, second.command]
