"""What test_cuda_driver.py runs on the stand-in for NVIDIA's driver, each in its own process."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Thread
from typing import Any

import host_build
from cffi import FFI
from cuda.bindings import driver
from scale_bench import SCALE, N, ScaleBench

from gradcli.engine.device.gpu.cuda import STAGING, Cuda
from gradcli.engine.device.gpu.driver import Address, Driver, Ready
from gradcli.engine.device.gpu.source import prelude_text
from gradcli.engine.device.gpu.staging import MOST_MARKS
from gradcli.errors import DeviceError

FAULTY = f"""
KERNEL(faulty, 32, OUT(float, y), VAL(uint, n)) {{
  y[{N} + n + TID.x] = 0.0f;
}}
"""


class Bench(ScaleBench):
    """On the device's driver."""

    def __init__(self) -> None:
        self.cuda = Cuda()
        super().__init__(self.cuda, FAULTY)


class Counts:
    """What the stand-in counts."""

    def __init__(self) -> None:
        ffi = FFI()
        names = ("launches", "graph_launches", "kernels_run", "live_bytes", "events")
        ffi.cdef("".join(f"extern long standin_{name};" for name in names))
        self._library: Any = ffi.dlopen("libcuda.so.1")

    def __getattr__(self, name: str) -> int:
        return int(getattr(self._library, f"standin_{name}"))


def refused(run: Callable[[], object]) -> DeviceError:
    """The error that a call raises."""
    try:
        run()
    except DeviceError as error:
        return error
    raise AssertionError("nothing was refused")


def a_device_is_described() -> None:
    cuda = Cuda()
    assert cuda.describe() == (
        "stand-in for a GPU, 1.0 GiB, compute capability 9.0, driver for CUDA 13.0"
    )
    assert (cuda.capability, cuda.architecture, cuda.note) == ((9, 0), "sm_90", "")
    said = refused(lambda: Cuda(3)).message
    assert said == "cuda: there is no GPU 3: NVIDIA's driver shows 1 GPU, number 0"


def what_is_written_is_read_back() -> None:
    cuda = Cuda()
    for nbytes in (0, 1, 3, 4096, STAGING // 4 - 1, STAGING // 4 + 1, 3 * STAGING + 5):
        data = (bytes(range(251)) * (nbytes // 251 + 1))[:nbytes]
        address = Address(cuda.allocate(nbytes + 8), 8)
        cuda.write(address, data)
        back = bytearray(nbytes)
        cuda.read(address, memoryview(back))
        assert back == data
        cuda.free(address.handle)


def data_may_change_once_it_was_written() -> None:
    bench, data = Bench(), array("f", [5.0] * N)
    bench.cuda.write(bench.x, memoryview(data))
    data[:] = array("f", [7.0] * N)
    assert bench.floats(bench.x) == [5.0] * N


def many_writes_pass_through_the_ring_unmixed() -> None:
    cuda = Cuda()
    blocks = [cuda.allocate(STAGING // 8) for _ in range(20)]
    for number, block in enumerate(blocks):
        cuda.write(Address(block, 0), bytes([number]) * (STAGING // 8))
    for number, block in enumerate(blocks):
        back = bytearray(STAGING // 8)
        cuda.read(Address(block, 0), memoryview(back))
        assert back == bytes([number]) * (STAGING // 8)


def two_large_blocks_are_on_their_way_at_once() -> None:
    """Neither write waits for the one before; what is lacking of pinned memory only slows."""
    bench, size = Bench(), STAGING // 4 * 3
    cuda, waits = bench.cuda, []
    cuda.stage(size)
    wait_for = cuda._wait_for
    cuda._ring._wait = lambda event: (waits.append(event), wait_for(event))
    assert not cuda.at_work()
    blocks = [cuda.allocate(size) for _ in range(3)]
    for number, block in enumerate(blocks):
        cuda.write(Address(block, 0), bytes([number]) * size)
        assert bool(waits) is (number == 2)
    for number, block in enumerate(blocks):
        back = bytearray(size)
        cuda.read(Address(block, 0), memoryview(back))
        assert back == bytes([number]) * size
    pinned, driver.cuMemHostAlloc = driver.cuMemHostAlloc, no_memory
    cuda.stage(4 * size)
    driver.cuMemHostAlloc = pinned
    assert cuda._ring.nbytes == 2 * size
    bench.cuda.write(bench.x, bytes(4))
    assert bench.floats(bench.x)[:2] == [0.0, 1.0]


def no_memory(nbytes: int, flags: int) -> tuple[object, None]:
    """In place of a function of the driver."""
    del nbytes, flags
    return driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None


def small_writes_share_events() -> None:
    """As the steps of a small model send them: a few numbers, then a batch of indices."""
    bench, counts = Bench(), Counts()
    sent = 0
    while sent < 3 * STAGING:
        bench.cuda.write(bench.x, bytes(4))
        bench.cuda.write(bench.y, bytes(1200))
        sent += 1204
    assert 0 < counts.events <= MOST_MARKS
    assert bench.floats(bench.x)[:2] == [0.0, 1.0]


def a_slot_that_is_filled_too_early_is_seen() -> None:
    """The stand-in reads pinned memory as late as a GPU may: without waits bytes get mixed."""
    Cuda._wait_for = lambda self, event: None  # type: ignore[method-assign]
    try:
        many_writes_pass_through_the_ring_unmixed()
    except AssertionError:
        return
    raise AssertionError("the stand-in did not see it")


def a_read_that_waits_for_nothing_is_seen() -> None:
    """The stand-in copies to the host as late as a GPU may."""
    bench, early = Bench(), array("f", bytes(4 * N))
    bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0))
    wait, Cuda.synchronize = Cuda.synchronize, lambda self: None  # type: ignore[method-assign]
    bench.cuda.read(bench.y, memoryview(early))
    seen = early.tolist()
    Cuda.synchronize = wait  # type: ignore[method-assign]
    bench.cuda.synchronize()
    assert seen == [0.0] * N
    assert early.tolist() == [2.0 * i for i in range(N)]


def a_thread_without_the_context_is_refused() -> None:
    """By the stand-in, as by a driver."""
    Cuda()
    found: list[str] = []
    thread = Thread(target=lambda: found.append(driver.cuMemAlloc(16)[0].name))
    thread.start()
    thread.join()
    assert found == ["CUDA_ERROR_INVALID_CONTEXT"]


def memory_of_another_device_is_seen() -> None:
    bench = Bench()
    theirs = Address(Cuda(1).allocate(4 * N), 0)
    bench.cuda.launch(bench.scale(theirs, bench.y, 2.0))
    assert "is no memory of device 0" in refused(bench.cuda.synchronize).message


def fresh_memory_holds_nan_and_copies_stay_on_the_device() -> None:
    bench = Bench()
    assert all(value != value for value in bench.floats(bench.y))
    bench.cuda.copy(Address(bench.y.handle, 8), Address(bench.x.handle, 4), 8)
    assert bench.floats(bench.y)[2:4] == [1.0, 2.0]


def kernels_get_places_numbers_and_structs() -> None:
    bench = Bench()
    bench.cuda.launch(bench.scale(bench.x, bench.y, 0.5))
    assert bench.floats(bench.y) == [0.5 * i for i in range(N)]
    shift = array("f", [3.0, *[0.0] * 20]).tobytes()
    at = Address(bench.x.handle, 4)
    bench.cuda.launch(Ready("scale", "shift", (2, 1, 1), 32, (at, bench.y, shift, 64)))
    assert bench.floats(bench.y)[:64] == [float(i + 4) for i in range(64)]


def nothing_runs_before_somebody_waits() -> None:
    bench, counts = Bench(), Counts()
    bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0))
    assert (counts.launches, counts.kernels_run) == (1, 0)
    bench.cuda.synchronize()
    assert (counts.launches, counts.kernels_run) == (1, 1)


def a_replay_is_one_launch() -> None:
    bench, counts = Bench(), Counts()
    there = bench.scale(bench.x, bench.y, 2.0)
    back = bench.scale(bench.y, bench.x, 1.0)
    graph = bench.cuda.record([there, back])
    bench.cuda.synchronize()
    assert counts.kernels_run == 0
    before = counts.launches
    for _ in range(5):
        graph.replay()
    assert (counts.launches, counts.graph_launches) == (before, 5)
    assert bench.floats(bench.x) == [32.0 * i for i in range(N)]
    assert counts.kernels_run == 10


def launches_and_replays_and_writes_keep_their_order() -> None:
    bench = Bench()
    graph = bench.cuda.record([bench.scale(bench.x, bench.y, 3.0)])
    graph.replay()
    bench.cuda.launch(bench.scale(bench.y, bench.x, 2.0))
    graph.replay()
    bench.cuda.write(bench.x, memoryview(array("f", [0.0] * N)))
    assert bench.floats(bench.y) == [18.0 * i for i in range(N)]
    assert bench.floats(bench.x) == [0.0] * N


def a_graph_may_go_while_it_is_still_to_run() -> None:
    bench = Bench()
    graph = bench.cuda.record([bench.scale(bench.x, bench.y, 2.0)])
    graph.replay()
    del graph
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]


def memory_that_is_freed_serves_what_was_queued_before() -> None:
    bench, counts = Bench(), Counts()
    before = counts.live_bytes
    bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0))
    bench.cuda.free(bench.x.handle)
    assert counts.live_bytes == before - 4 * N
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]


def memory_that_was_freed_is_not_used_again() -> None:
    bench = Bench()
    bench.cuda.free(bench.x.handle)
    bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0))
    said = refused(bench.cuda.synchronize).message
    assert "kernel 'scale' failed" in said
    assert "was freed" in said


def memory_ends_with_a_sentence_and_the_device_goes_on() -> None:
    cuda = Cuda()
    kept = cuda.allocate(600_000)
    freed = cuda.allocate(300_000)
    cuda.free(freed)
    again = cuda.allocate(350_000)  # the pool gives back what was freed, and the driver takes it
    cuda.free(again)
    error = refused(lambda: cuda.allocate(500_000))
    assert error.message == (
        "no memory for 500,000 bytes on stand-in for a GPU; free: 400,000 bytes"
    )
    assert (error.exit_code, error.code) == (4, "E401")
    assert cuda.free_memory() == 400_000
    assert (
        "no memory for 9,223,372,036,854,775,808 bytes"
        in refused(lambda: cuda.allocate(1 << 63)).message
    )
    cuda.free(kept)
    assert cuda.free_memory() == 1_000_000
    cuda.free(cuda.allocate(1_000_000))


def a_launch_that_is_refused_names_its_kernel() -> None:
    bench = Bench()
    ready = Ready("scale", "scale", (1, 1, 70000), 512, (bench.x, bench.y, N, 1.0))
    assert refused(lambda: bench.cuda.launch(ready)).message == (
        "cuda: kernel 'scale' cannot be launched on 1 x 1 x 70000 blocks of 512 threads: "
        "invalid argument (CUDA_ERROR_INVALID_VALUE)"
    )
    rows = Ready("scale", "scale", (1, 70000, 1), 256, (bench.x, bench.y, N, 1.0))
    assert "1 x 70000 x 1 blocks" in refused(lambda: bench.cuda.launch(rows)).message
    refused(lambda: bench.cuda.record([ready]))
    bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0))
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]


def a_grid_that_is_too_high_is_refused() -> None:
    bench = Bench()
    for grid in ((1, 70_000, 1), (1, 1, 70_000)):
        ready = Ready("scale", "scale", grid, 32, (bench.x, bench.y, N, 1.0))
        assert "CUDA_ERROR_INVALID_VALUE" in refused(partial(bench.cuda.launch, ready)).message


def a_kernel_that_fails_is_named() -> None:
    bench = Bench()
    bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0))
    bench.cuda.synchronize()
    bench.cuda.launch(bench.faulty())
    error = refused(bench.cuda.synchronize)
    assert error.message.startswith(
        "cuda: kernel 'faulty' failed: an illegal memory access was encountered: out of bounds"
    )
    assert error.message.endswith("(CUDA_ERROR_ILLEGAL_ADDRESS)")
    assert error.notes == ()
    later = refused(lambda: bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0)))
    assert later.message == error.message
    bench.cuda.free(bench.x.handle)


def of_several_kernels_all_are_named() -> None:
    bench = Bench()
    graph = bench.cuda.record([bench.scale(bench.x, bench.y, 2.0), bench.faulty()])
    graph.replay()
    error = refused(bench.cuda.synchronize)
    assert "cuda: one of the kernels 'scale', 'faulty' failed: " in error.message
    assert error.notes == ("CUDA_LAUNCH_BLOCKING=1 in the environment tells which kernel it was",)


def launches_that_block_tell_which_kernel_it_was() -> None:
    bench = Bench()
    graph = bench.cuda.record([bench.scale(bench.x, bench.y, 2.0), bench.faulty()])
    assert "cuda: kernel 'faulty' failed: " in refused(graph.replay).message


def a_module_that_does_not_compile_says_where() -> None:
    cuda = Cuda()
    said = refused(lambda: cuda.load("bad", "int x = y;\n")).message
    assert said == (
        "cuda: module 'bad' does not compile: bad.cu(1): error: identifier \"y\" is undefined"
    )


def a_forked_child_has_no_device() -> None:
    bench, counts = Bench(), Counts()
    before = counts.live_bytes
    child = os.fork()
    if not child:
        bench.cuda.free(bench.x.handle)
        said = refused(lambda: bench.cuda.write(bench.x, bytes(4))).message
        right = counts.live_bytes == before and "multiprocessing start it with 'spawn'" in said
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    bench.cuda.free(bench.x.handle)


def a_newer_device_gets_ptx_with_a_note() -> None:
    bench = Bench()
    assert bench.cuda.architecture.startswith("compute_")
    assert "compute capability 99.0 is newer than NVRTC" in bench.cuda.note
    bench.cuda.launch(bench.scale(bench.x, bench.y, 2.0))
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]


def every_call_works_in_every_thread() -> None:
    """The driver asks for a context in each thread; the device was opened in another one."""
    bench = Bench()
    cuda, data = bench.cuda, bytes(4 * N)
    calls: dict[str, Callable[[], object]] = {
        "describe": cuda.describe,
        "product": cuda.product,
        "allocate": lambda: cuda.allocate(8),
        "free": lambda: cuda.free(cuda.allocate(8)),
        "trim": cuda.trim,
        "free_memory": cuda.free_memory,
        "pinned": lambda: cuda.pinned(8),
        "write": lambda: cuda.write(bench.x, data),
        "stage": lambda: cuda.stage(STAGING),
        "at_work": cuda.at_work,
        "read": lambda: cuda.read(bench.x, memoryview(bytearray(data))),
        "copy": lambda: cuda.copy(bench.y, bench.x, len(data)),
        "load": lambda: cuda.load("again", prelude_text("cuda") + SCALE),
        "launch": lambda: cuda.launch(bench.scale(bench.x, bench.y, 2.0)),
        "record": lambda: cuda.record([bench.scale(bench.x, bench.y, 2.0)]).replay(),
        "synchronize": cuda.synchronize,
    }
    assert set(calls) == {name for name in vars(Driver) if not name.startswith("_")}
    for name, call in calls.items():
        with ThreadPoolExecutor(1) as thread:
            error = thread.submit(call).exception()
            assert error is None, f"{name}: {error}"


def the_host_cannot_touch_device_memory() -> None:
    at = Cuda().allocate(8)
    sys.stdout.write("reading\n")
    sys.stdout.flush()
    sys.stdout.write(str(host_build.ffi.cast("int *", at)[0]))
