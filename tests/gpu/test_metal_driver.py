"""The Metal driver over the stand-in for pyobjc: memory, launches, replays, errors."""

from __future__ import annotations

import gc
import struct
from array import array
from collections.abc import Iterator

import pytest
from metal_standin import api, commands
from scale_bench import N, ScaleBench

from gradcli.engine.device.gpu import metal_replay
from gradcli.engine.device.gpu.driver import Address, Ready
from gradcli.engine.device.gpu.metal import BATCH, STAGING, Metal
from gradcli.engine.device.gpu.metal_replay import Encoded, Indirect
from gradcli.engine.device.gpu.staging import MOST_MARKS
from gradcli.errors import DeviceError

FAULTY = """
KERNEL(faulty, 32, OUT(float, y), VAL(uint, n)) {
  if (TID.x < n) BARRIER();
  y[TID.x] = 0.0f;
}
"""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("METAL_LAUNCH_BLOCKING", raising=False)
    monkeypatch.delenv("GRADCLI_METAL_REPLAY", raising=False)


class Bench(ScaleBench):
    """On the device's driver."""

    def __init__(self) -> None:
        self.metal = Metal()
        super().__init__(self.metal, FAULTY)
        commands.counted.clear()


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def indirect(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("GRADCLI_METAL_REPLAY", "indirect")
    return Bench()


def counted(what: str) -> int:
    return commands.counted[what]


def test_a_device_is_described(bench: Bench) -> None:
    said = bench.metal.describe()
    assert said.startswith("stand-in for a Mac, 1.0 GiB of the Mac's memory, macOS")


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("nbytes", [0, 1, 3, 4096, STAGING // 4 - 1, STAGING + 5])
def test_what_is_written_is_read_back(bench: Bench, nbytes: int, busy: bool) -> None:
    data = (bytes(range(251)) * (nbytes // 251 + 1))[:nbytes]
    address = Address(bench.metal.allocate(nbytes + 8), 8)
    if busy:
        bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    bench.metal.write(address, data)
    back = bytearray(nbytes)
    bench.metal.read(address, memoryview(back))
    assert back == data
    bench.metal.free(address.handle)


def test_writes_wait_for_what_was_queued_before_them(bench: Bench) -> None:
    bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    data = array("f", [5.0] * N)
    bench.metal.write(bench.x, memoryview(data))
    data[:] = array("f", [7.0] * N)
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]
    assert bench.floats(bench.x) == [5.0] * N


def test_many_writes_pass_through_the_ring_unmixed(bench: Bench) -> None:
    blocks = [bench.metal.allocate(STAGING // 8) for _ in range(20)]
    bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    for number, block in enumerate(blocks):
        bench.metal.write(Address(block, 0), bytes([number]) * (STAGING // 8))
    for number, block in enumerate(blocks):
        assert bytes(block.view[:1]) in (b"\xff", bytes([number]))
        back = bytearray(STAGING // 8)
        bench.metal.read(Address(block, 0), memoryview(back))
        assert back == bytes([number]) * (STAGING // 8)


def test_two_large_blocks_are_on_their_way_at_once(bench: Bench) -> None:
    metal, size = bench.metal, STAGING // 4 * 3
    metal.stage(size)
    metal._ring._wait = pytest.fail  # type: ignore[method-assign]
    metal.launch(bench.scale(bench.x, bench.y, 2.0))
    blocks = [metal.allocate(size) for _ in range(2)]
    for number, block in enumerate(blocks):
        metal.write(Address(block, 0), bytes([number]) * size)
    assert metal.at_work()
    metal.synchronize()
    assert not metal.at_work()
    assert [bytes(block.view[-1:]) for block in blocks] == [b"\0", b"\1"]
    metal.stage(1 << 50)  # there is no such memory, and what is there goes on
    metal.write(bench.x, bytes(4))
    assert bench.floats(bench.x)[:2] == [0.0, 1.0]


def test_small_writes_keep_no_batches_that_have_run(bench: Bench) -> None:
    """A mark of the ring is a batch: few live, however many writes there were."""
    bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    for _ in range(200 * BATCH):
        bench.metal.write(bench.x, bytes(4))
    gc.collect()
    living = [one for one in gc.get_objects() if type(one) is commands.CommandBuffer]
    unfinished = [one for one in living if one.status() != api.MTLCommandBufferStatusCompleted]
    assert len(unfinished) <= commands.MOST_UNFINISHED + 1
    assert len(living) - len(unfinished) <= MOST_MARKS


def test_fresh_memory_holds_nan_and_copies_are_made_by_words_and_bytes(bench: Bench) -> None:
    assert all(value != value for value in bench.floats(bench.y))
    bench.metal.copy(Address(bench.y.handle, 8), Address(bench.x.handle, 4), 8)
    bench.metal.copy(Address(bench.y.handle, 1), Address(bench.x.handle, 6), 2)
    back = bytearray(16)
    bench.metal.read(bench.y, memoryview(back))
    assert back == b"\xff\x80\x3f\xff\xff\xff\xff\xff" + struct.pack("2f", 1.0, 2.0)
    assert counted("kernels") == 2


def test_kernels_get_places_numbers_and_structs(bench: Bench) -> None:
    bench.metal.launch(bench.scale(bench.x, bench.y, 0.5))
    assert bench.floats(bench.y) == [0.5 * i for i in range(N)]
    shift = array("f", [3.0, *[0.0] * 20]).tobytes()
    at = Address(bench.x.handle, 4)
    bench.metal.launch(Ready("scale", "shift", (2, 1, 1), 32, (at, bench.y, shift, 64)))
    assert bench.floats(bench.y)[:64] == [float(i + 4) for i in range(64)]


def test_nothing_runs_before_somebody_waits(bench: Bench) -> None:
    bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    assert (counted("launches"), counted("kernels")) == (1, 0)
    bench.metal.synchronize()
    assert counted("kernels") == 1


def test_launches_are_committed_some_dozens_at_a_time(bench: Bench) -> None:
    for _ in range(2 * BATCH + 1):
        bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    assert counted("commits") == 2
    bench.metal.synchronize()
    assert counted("commits") == 3
    assert counted("kernels") == 2 * BATCH + 1


def replays(bench: Bench) -> Iterator[list[float]]:
    """Two launches recorded once and replayed among writes and launches."""
    there, back = bench.scale(bench.x, bench.y, 2.0), bench.scale(bench.y, bench.x, 1.5)
    replay = bench.metal.record([there, back])
    bench.metal.synchronize()
    assert counted("kernels") == 0
    for _ in range(3):
        replay.replay()
    yield bench.floats(bench.x)
    bench.metal.launch(bench.scale(bench.x, bench.y, 0.0))
    replay.replay()
    bench.metal.write(bench.y, memoryview(array("f", [1.0] * N)))
    bench.metal.launch(bench.scale(bench.y, bench.x, 4.0))
    replay.replay()
    yield bench.floats(bench.x)


def test_a_replay_is_encoded_anew(bench: Bench) -> None:
    assert not bench.metal.indirect
    first, second = replays(bench)
    assert first == [27.0 * i for i in range(N)]
    assert second == [12.0] * N
    assert counted("replays") == 0


def test_an_indirect_replay_is_one_command(indirect: Bench) -> None:
    assert indirect.metal.indirect
    first, second = replays(indirect)
    assert first == [27.0 * i for i in range(N)]
    assert second == [12.0] * N
    assert counted("replays") == 5
    assert counted("launches") == 3  # two of ours, and the copy of a write


def test_indirect_replays_are_not_used_where_the_device_does_them_wrongly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRADCLI_METAL_REPLAY", "indirect")
    monkeypatch.setattr(commands.IndirectCommand, "setBarrier", lambda self: None)
    bench = Bench()
    assert not bench.metal.indirect
    replay = bench.metal.record([bench.scale(bench.x, bench.y, 2.0)])
    assert isinstance(replay, Encoded)
    replay.replay()
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]


def test_many_indirect_launches_are_several_buffers(
    indirect: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metal_replay, "_MOST_COMMANDS", 2)
    listed = [indirect.scale(indirect.x, indirect.x, 2.0)] * 5
    replay = indirect.metal.record(listed)
    assert isinstance(replay, Indirect)
    replay.replay()
    assert indirect.floats(indirect.x) == [32.0 * i for i in range(N)]
    assert counted("replays") == 3


@pytest.mark.parametrize("kind", ["bench", "indirect"])
def test_nothing_recorded_replays_as_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    bench = request.getfixturevalue(kind)
    bench.metal.record([]).replay()
    bench.metal.synchronize()
    assert counted("kernels") == 0


def test_memory_that_is_freed_serves_what_was_queued_before(bench: Bench) -> None:
    before = bench.metal.free_memory()
    bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    bench.metal.free(bench.x.handle)
    assert bench.metal.free_memory() == before
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]
    assert bench.metal.free_memory() == before + 4 * N


def test_memory_that_was_freed_is_not_used_again(bench: Bench) -> None:
    bench.metal.free(bench.x.handle)
    with pytest.raises(AssertionError, match="this memory was freed"):
        bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    with pytest.raises(AssertionError, match="freed twice"):
        bench.metal.free(bench.x.handle)


def test_memory_that_a_collected_cycle_gives_away_lives_on(bench: Bench) -> None:
    given = []

    class Giver:
        def __init__(self) -> None:
            self.block, self.itself = bench.metal.allocate(8), self

        def __del__(self) -> None:
            given.append(self.block)

    Giver()
    gc.collect()
    address = Address(given[0], 0)
    bench.metal.allocate(1 << 16)  # here the stand-in looks for what nobody has
    bench.metal.copy(address, bench.x, 8)
    back = bytearray(8)
    bench.metal.read(address, memoryview(back))
    assert struct.unpack("2f", back) == (0.0, 1.0)


def test_memory_ends_with_a_sentence_and_the_device_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STANDIN_METAL_MEMORY", str(STAGING + 1_000_000))
    monkeypatch.setattr(api.Device, "maxBufferLength", lambda self: self.memory)
    metal = Metal()
    kept = metal.allocate(600_000)
    with pytest.raises(DeviceError) as caught:
        metal.allocate(500_000)
    assert caught.value.message == (
        "no memory for 500,000 bytes on stand-in for a Mac; free: 400,000 bytes"
    )
    assert (caught.value.exit_code, caught.value.code) == (4, "E401")
    with pytest.raises(DeviceError, match="no memory for 9,223,372,036,854,775,808 bytes"):
        metal.allocate(1 << 63)
    metal.free(kept)
    metal.free(metal.allocate(1_000_000))


def test_a_buffer_may_be_too_large_though_memory_is_free(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.Device, "maxBufferLength", lambda self: 1000)
    bench.metal.allocate(1000)
    with pytest.raises(DeviceError, match="no memory for 1,001 bytes"):
        bench.metal.allocate(1001)


def test_memory_that_queued_work_held_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_METAL_MEMORY", str(STAGING + 1_000_000))
    monkeypatch.setattr(api.Device, "maxBufferLength", lambda self: self.memory)
    metal = Metal()
    blocks = [metal.allocate(400_000) for _ in range(2)]
    metal.copy(Address(blocks[0], 0), Address(blocks[1], 0), 400_000)
    for block in blocks:
        metal.free(block)
    metal.free(metal.allocate(900_000))


def test_a_launch_with_too_many_threads_names_its_kernel(bench: Bench) -> None:
    ready = Ready("scale", "scale", (3, 1, 1), 512, (bench.x, bench.y, N, 1.0))
    with pytest.raises(DeviceError) as caught:
        bench.metal.launch(ready)
    assert caught.value.message == (
        "metal: kernel 'scale' cannot be launched on 3 x 1 x 1 blocks of 512 threads: "
        "on stand-in for a Mac it may have 256"
    )
    bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    assert bench.floats(bench.y) == [2.0 * i for i in range(N)]


def test_a_kernel_that_fails_is_named_and_the_device_goes_on(bench: Bench) -> None:
    bench.metal.launch(bench.faulty())
    with pytest.raises(DeviceError) as caught:
        bench.metal.synchronize()
    assert caught.value.message.startswith("metal: kernel 'faulty' failed: thread ")
    assert caught.value.notes == ()
    bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))
    bench.metal.synchronize()


@pytest.mark.parametrize("kind", ["bench", "indirect"])
def test_of_several_kernels_all_are_named(kind: str, request: pytest.FixtureRequest) -> None:
    bench = request.getfixturevalue(kind)
    bench.metal.record([bench.scale(bench.x, bench.y, 2.0), bench.faulty()]).replay()
    with pytest.raises(DeviceError) as caught:
        bench.metal.synchronize()
    assert "metal: one of the kernels 'scale', 'faulty' failed: " in caught.value.message
    assert caught.value.notes == (
        "METAL_LAUNCH_BLOCKING=1 in the environment tells which kernel it was",
    )


def test_launches_that_block_tell_which_kernel_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METAL_LAUNCH_BLOCKING", "1")
    bench = Bench()
    replay = bench.metal.record([bench.scale(bench.x, bench.y, 2.0), bench.faulty()])
    with pytest.raises(DeviceError, match="metal: kernel 'faulty' failed: "):
        replay.replay()


def test_a_module_that_does_not_compile_says_where(bench: Bench) -> None:
    with pytest.raises(DeviceError) as caught:
        bench.metal.load("bad", "int x = y;\n")
    assert caught.value.message == (
        "metal: module 'bad' does not compile: "
        "program_source:1:9: error: use of undeclared identifier 'y'"
    )
    assert "int x = y;" in caught.value.notes[0]


def test_fast_maths_is_off_on_macos_14_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(api.MTLCompileOptions, "setMathMode_")
    Bench()
    monkeypatch.delattr(api.MTLCompileOptions, "setFastMathEnabled_")
    with pytest.raises(AttributeError):
        Bench()


def test_simd_groups_of_another_size_are_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.Pipeline, "threadExecutionWidth", lambda self: 16)
    with pytest.raises(DeviceError, match="kernel 'scale' needs SIMD groups of 32 threads"):
        bench.metal.launch(bench.scale(bench.x, bench.y, 2.0))


def test_no_device_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_METAL_DEVICES", "0")
    with pytest.raises(DeviceError, match="metal: there is no device"):
        Metal()
