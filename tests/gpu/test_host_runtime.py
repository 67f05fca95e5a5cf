"""The host build of kernels finds what it is there to find: each test plants one mistake."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from typing import Any

import cuda_text
import pytest
from host_build import COMPILER, HOST, ffi, fma_flags
from host_driver import ORDERS, HostDriver

from gradcli.engine.device.gpu.driver import Address, Ready
from gradcli.engine.device.gpu.source import prelude_text
from gradcli.errors import DeviceError

SWAPS = """
KERNEL(swap_neighbours, 64, INOUT(float, x), VAL(uint, n)) {
  SHARED(float, kept, 64);
  kept[TID.x] = x[BID.x * 64u + TID.x];
  %s
  x[BID.x * 64u + TID.x] = kept[TID.x ^ 1u];
}
"""
REPLACED = """
KERNEL(probe, 64, INOUT(float, x), INOUT(int, k), VAL(uint, n)) {
  SHARED(float, part, 64);
  SHARED(int, count, 64);
  (void)part, (void)count, (void)x, (void)k, (void)n;
  %s
}
"""


class Bench:
    """A driver with one module, 128 floats that count from 0, and 128 whole numbers."""

    def __init__(self, text: str, **options: Any) -> None:
        self.driver = HostDriver(**options)
        self.driver.load("m", prelude_text("cuda") + text)
        self.x = Address(self.driver.allocate(512), 0)
        self.k = Address(self.driver.allocate(512), 0)
        self.driver.write(self.x, struct.pack("128f", *range(128)))
        self.driver.write(self.k, struct.pack("128i", *range(128)))

    def run(self, kernel: str, args: Sequence[Any], blocks: int = 2, threads: int = 64) -> None:
        self.driver.launch(Ready("m", kernel, (blocks, 1, 1), threads, tuple(args)))
        self.driver.synchronize()

    def floats(self) -> tuple[float, ...]:
        data = bytearray(512)
        self.driver.read(self.x, memoryview(data))
        return struct.unpack("128f", data)


def probed(body: str, order: str = "forward", **options: Any) -> Bench:
    bench = Bench(REPLACED % body, order=order, **options)
    bench.run("probe", (bench.x, bench.k, 128))
    return bench


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("checked", [True, False])
def test_threads_meet_at_a_barrier(order: str, checked: bool) -> None:
    bench = Bench(SWAPS % "BARRIER();", order=order, checked=checked)
    bench.run("swap_neighbours", (bench.x, 128))
    assert bench.floats() == tuple(float(i ^ 1) for i in range(128))


@pytest.mark.parametrize("order", ORDERS)
def test_lanes_of_a_warp_exchange_values(order: str) -> None:
    body = "x[BID.x * 64u + TID.x] = warp_xor((float)TID.x, 1u) + warp_shfl((float)LANE, 3u);"
    assert probed(body, order).floats() == tuple(float((i % 64 ^ 1) + 3) for i in range(128))


@pytest.mark.parametrize("order", ORDERS)
def test_collectives_in_a_loop_keep_apart(order: str) -> None:
    """A lane that runs ahead must not overwrite what others have yet to read."""
    body = """
    float v = (float)LANE;
    for (uint mask = 16; mask > 0; mask >>= 1) v += warp_xor(v, mask);
    x[BID.x * 64u + TID.x] = v;"""
    assert set(probed(body, order).floats()) == {496.0}


PLANTED = {
    "x[BID.x * 64u + TID.x + 1u] = 0;": "out of bounds: writes element 128 of parameter 0",
    "if (TID.x == 0) x[(int)BID.x] = x[(int)TID.x - 1];": "out of bounds: reads element -1 of",
    "if (BID.x == 0) k[200] += 1;": "reads element 200 of parameter 1, which has 128",
    "part[TID.x + 1u] = 0;": "out of bounds: writes element 64 of shared array part",
    "if (BID.x == 0) x[TID.x] = x[TID.x ^ 1u];": "race: .* of parameter 0, which a thread",
    "x[TID.x] = 1;": "race: .* parameter 0, which another block writes",
    "if (TID.x == 0) x[64u * BID.x] = x[64];": "race: .* element .* which another block",
    "part[TID.x] = 1; x[BID.x * 64u + TID.x] = part[TID.x ^ 32u];": (
        "(unset|race): .* shared array part"
    ),
    "part[0] = 1;": "race: this writes element 0 of shared array part, which",
    # Lanes of one warp read, and one of them writes: only WARP_SYNC would order that.
    "part[TID.x] = 1; BARRIER(); part[TID.x] = warp_xor((float)part[TID.x | 1u], 1u);": (
        "race: .* shared array part"
    ),
    "x[BID.x * 64u + TID.x] = part[TID.x];": "unset: reads element .* of shared array part",
    "k[BID.x * 64u + TID.x] = count[TID.x];": "unset: reads element .* of shared array count",
    "if (BID.x == 0) part[TID.x] = 1; if (BID.x == 1) x[TID.x] = part[TID.x];": "unset: reads",
    "if (TID.x < 40) { BARRIER(); } else { BARRIER(); }": "threads .* wait at different barriers",
    "if (TID.x < 40) BARRIER();": "thread .* ended while thread .* waits at a barrier",
    "if (TID.x == 5) return; BARRIER();": "thread .* ended while thread .* waits at a barrier",
    "if (TID.x < 40) (void)warp_xor(1.0f, 1u); BARRIER();": "warp 1: 8 of 32 lanes came",
    "if (LANE < 7) (void)warp_xor(1u, 1u);": "7 of 32 lanes came to a collective",
    "if (LANE < 7) (void)warp_xor(1u, 1u); else (void)warp_xor(2u, 1u);": "different collectives",
    "if (LANE < 7) (void)warp_shfl(1.0f, 0u); else WARP_SYNC();": "in different collectives",
    "if (WARP == 0) { WARP_SYNC(); if (LANE == 3) return; WARP_SYNC(); }": "31 of 32 lanes came",
    "(void)warp_shfl(1.0f, 32u);": "a warp has 32 lanes, this asks for number 32",
    "float own[4]; own[TID.x % 4] = 1; x[BID.x * 64u + TID.x] = own[TID.x % 5];": (
        r"out of bounds: element 4 of an array of type 'float \[4\]'"
    ),
    "k[BID.x * 64u + TID.x] = 7 / ((int)n - 128);": "division of a number of type 'int' by 0",
    "k[BID.x * 64u + TID.x] = 7 << (n / 4);": "shift of a number of type 'int' by 32 bits",
    "k[BID.x * 64u + TID.x] = (int)(3e9f + n);": "a number of type 'float' that no 'int' holds",
    "SHARED(float, much, 12200); (void)much;": "brings the block to 49312 bytes of shared memory",
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("body", PLANTED)
def test_a_planted_mistake_is_found(body: str, order: str) -> None:
    with pytest.raises(DeviceError, match=PLANTED[body]) as caught:
        probed(body, order)
    assert "(kernel probe, block " in str(caught.value)
    assert ", thread " in str(caught.value)


ALLOWED = [
    "part[TID.x] = 1; BARRIER(); x[BID.x * 64u + TID.x] = part[TID.x ^ 32u];",
    "part[TID.x] = 1; WARP_SYNC(); x[BID.x * 64u + TID.x] = part[TID.x ^ 1u];",
    # All read one element, and after a barrier one of them writes it.
    "if (TID.x == 9) part[0] = 1; BARRIER(); float v = part[0]; BARRIER(); part[TID.x] = v;",
    "part[TID.x] = 1; WARP_SYNC(); float v = part[TID.x | 1u]; WARP_SYNC(); part[TID.x] = v;",
    "if (BID.x == 0) { x[TID.x] += 1; x[TID.x] *= 2; }",
    "if (TID.x < 32) (void)warp_xor(1.0f, 1u); BARRIER(); if (TID.x >= 32) WARP_SYNC();",
    "if (TID.x >= 32) return; WARP_SYNC();",
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("body", ALLOWED)
def test_what_is_right_is_let_through(body: str, order: str) -> None:
    probed(body, order)


def test_a_race_of_one_launch_is_none_of_the_next() -> None:
    bench = probed("if (BID.x == 0) x[TID.x] = 1;")
    bench.run("probe", (bench.x, bench.k, 128))


def test_without_race_checks_unset_shared_memory_is_nan() -> None:
    bench = probed("x[BID.x * 64u + TID.x] = part[TID.x];", races=False)
    assert all(v != v for v in bench.floats())


def test_after_a_failure_the_next_launch_is_clean() -> None:
    bench = Bench(SWAPS % "if (n) BARRIER();")
    with pytest.raises(DeviceError, match="unset"):
        bench.run("swap_neighbours", (bench.x, 0))
    bench.driver.write(bench.x, struct.pack("128f", *range(128)))
    bench.run("swap_neighbours", (bench.x, 1))
    assert bench.floats()[:2] == (1.0, 0.0)


@pytest.mark.parametrize(("compiler", "checked"), [("clang++-19", True), (COMPILER, False)])
def test_the_other_compiler_takes_it_too(compiler: str, checked: bool) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    texts = (
        cuda_text.host_text(prelude_text("cuda"), SWAPS % "BARRIER();", checked=checked),
        *(f'#include "{path}"' for path in sorted(HOST.glob("*.cpp"))),
    )
    for text in texts:
        command = [compiler, "-std=c++14", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
        command += ["-Wno-unused-parameter", "-Wno-unused-function"]
        command += [f"-I{HOST}", *fma_flags(), "-xc++", "-"]
        subprocess.run(command, input=text, text=True, check=True)


# -- the driver ----------------------------------------------------------------------------------


@pytest.fixture
def bench() -> Bench:
    return Bench(SWAPS % "BARRIER();")


def test_nothing_runs_before_somebody_waits(bench: Bench) -> None:
    bench.driver.synchronize()
    bench.driver.launch(Ready("m", "swap_neighbours", (2, 1, 1), 64, (bench.x, 128)))
    now = ffi.cast("float *", bench.x.handle.data)
    assert now[0] == 0.0
    bench.driver.synchronize()
    assert now[0] == 1.0


def test_written_bytes_are_copied_at_once(bench: Bench) -> None:
    data = bytearray(struct.pack("128f", *[7.0] * 128))
    bench.driver.write(bench.x, memoryview(data))
    data[:] = bytes(512)
    assert set(bench.floats()) == {7.0}


def test_fresh_memory_is_poisoned_and_counted() -> None:
    driver = HostDriver(memory=1000)
    handle = driver.allocate(600)
    data = bytearray(600)
    driver.read(Address(handle, 0), memoryview(data))
    assert set(data) == {0xFF}
    with pytest.raises(DeviceError, match="no memory for 600 bytes on cuda; free: 400"):
        driver.allocate(600)
    driver.free(handle)
    driver.synchronize()
    assert driver.free_memory() == 1000


def test_queued_work_may_use_memory_that_was_given_back(bench: Bench) -> None:
    bench.driver.launch(Ready("m", "swap_neighbours", (2, 1, 1), 64, (bench.x, 128)))
    bench.driver.free(bench.x.handle)
    bench.driver.synchronize()


def test_recorded_launches_run_again_and_again(bench: Bench) -> None:
    ready = Ready("m", "swap_neighbours", (2, 1, 1), 64, (bench.x, 128))
    replay = bench.driver.record([ready])
    replay.replay()
    assert bench.floats()[:2] == (1.0, 0.0)
    replay.replay()
    replay.replay()
    replay.replay()
    assert bench.floats()[:2] == (0.0, 1.0)
    bench.driver.copy(Address(bench.x.handle, 8), bench.x, 8)
    assert bench.floats()[:4] == (0.0, 1.0, 0.0, 1.0)


WRONG_ARGUMENTS = {
    "1 arguments for 2 parameters": lambda b: (b.x,),
    "parameter 0 takes an address of 4 bytes, got 3": lambda b: (3, 128),
    "parameter 1 takes a whole number of 4 bytes, got 1.0": lambda b: (b.x, 1.0),
    "parameter 1 takes a whole number of 4 bytes, got -1": lambda b: (b.x, -1),
    "parameter 1 takes a whole number of 4 bytes, got 4 bytes": lambda b: (b.x, b"abcd"),
    "parameter 0 is not aligned": lambda b: (Address(b.x.handle, 2), 1),
}


@pytest.mark.parametrize("match", WRONG_ARGUMENTS)
def test_arguments_that_do_not_fit_are_refused(bench: Bench, match: str) -> None:
    with pytest.raises(DeviceError, match=match):
        bench.run("swap_neighbours", WRONG_ARGUMENTS[match](bench))


@pytest.mark.parametrize("threads", [0, 33, 96])
def test_a_block_of_a_wrong_size_is_refused(bench: Bench, threads: int) -> None:
    with pytest.raises(DeviceError, match=f"{threads} threads a block"):
        bench.run("swap_neighbours", (bench.x, 128), threads=threads)


@pytest.mark.parametrize("grid", [(1, 70_000, 1), (1, 1, 70_000), (0, 1, 1)])
def test_a_grid_that_no_gpu_takes_is_refused(bench: Bench, grid: tuple[int, int, int]) -> None:
    bench.driver.launch(Ready("m", "swap_neighbours", grid, 64, (bench.x, 128)))
    with pytest.raises(DeviceError, match="a grid of {} {} {} blocks".format(*grid)):
        bench.driver.synchronize()


def test_an_unknown_kernel_and_a_wrong_text_are_refused(bench: Bench) -> None:
    with pytest.raises(DeviceError, match="module m has no kernel other"):
        bench.run("other", ())
    with pytest.raises(DeviceError, match=r"does not compile for the host:[\s\S]*nonsense"):
        bench.driver.load("bad", prelude_text("cuda") + "nonsense")
