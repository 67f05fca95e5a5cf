"""Training holds no more memory at its end than after its first steps, without the collector."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.device import cpu

Build = Callable[[], tuple[nn.Module, engine.Tensor]]


def mlp() -> tuple[nn.Module, engine.Tensor]:
    layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    return layers, engine.randn(6, 4)


def cnn() -> tuple[nn.Module, engine.Tensor]:
    layers = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8, 3),
    )  # fmt: skip
    return layers, engine.randn(6, 1, 6, 6)


@pytest.mark.parametrize(("build", "steps"), [(mlp, 2000), (cnn, 500)])
def test_memory_is_flat_over_many_steps(
    build: Build, steps: int, allocated: Callable[[], int]
) -> None:
    model, x = build()
    target = engine.tensor([0, 1, 2, 0, 1, 2])
    optimizer = engine.optim.AdamW(model.parameters(), lr=1e-3)
    held: set[int] = set()
    for step in range(steps):
        engine.manual_seed(1, step=step)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        engine.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step >= 2:
            held.add(allocated())
    assert len(held) == 1


LARGE = 1 << 20


@pytest.fixture
def keeping(allocated: Callable[[], int]) -> None:
    """Nothing kept from before, in a build that keeps blocks."""
    engine.empty(LARGE)
    if not cpu.spare_bytes():
        pytest.skip("built with the address sanitizer, which wants to see each block go")
    cpu.trim()


@pytest.mark.usefixtures("keeping")
def test_a_large_block_serves_the_next_tensor_of_about_its_size() -> None:
    first = engine.empty(LARGE)
    place = cpu.address(first.array.storage)
    del first
    assert cpu.spare_bytes() >= 4 * LARGE
    again = engine.empty(LARGE - 1000)
    assert (cpu.address(again.array.storage), cpu.spare_bytes()) == (place, 0)


@pytest.mark.usefixtures("keeping")
def test_what_is_kept_makes_way_for_other_sizes() -> None:
    for numbers in range(LARGE, 40 * LARGE, LARGE):
        engine.empty(numbers)
        assert cpu.spare_bytes() <= 1.125 * 4 * numbers


@pytest.mark.usefixtures("keeping")
def test_kept_and_used_memory_are_no_more_than_was_ever_used(
    allocated: Callable[[], int],
) -> None:
    most = 0
    held: dict[int, engine.Tensor] = {}
    for number in range(300):
        size = 17_000 * (1 + number * number % 31)
        held[number % 5] = engine.empty(size)  # the one before in this place is still held
        most = max(most, allocated())
        assert cpu.spare_bytes() + sum(4 * t.numel() for t in held.values()) <= 1.5 * most


@pytest.mark.usefixtures("keeping")
def test_trim_gives_everything_back() -> None:
    engine.empty(LARGE)
    cpu.trim()
    assert cpu.spare_bytes() == 0


@pytest.mark.usefixtures("keeping")
def test_small_blocks_are_not_kept() -> None:
    engine.empty(1000)
    assert cpu.spare_bytes() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_was_forked_amid_allocations_has_memory() -> None:
    ended = threading.Event()

    def allocate() -> None:
        while not ended.is_set():
            engine.empty(LARGE)

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if not child:
                engine.empty(LARGE)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        thread.join()


@pytest.mark.usefixtures("keeping")
def test_a_fresh_block_leaves_what_is_kept_where_there_was_once_room_for_both() -> None:
    engine.empty(16 * LARGE)
    engine.empty(LARGE)  # the larger one made way for it
    kept = cpu.spare_bytes()
    other = engine.empty(4 * LARGE)
    assert (cpu.spare_bytes(), other.numel()) == (kept, 4 * LARGE)
    assert kept >= 4 * LARGE


# Two blocks of 128 MiB are kept, and the system has room for 96 once both are gone.
SCARCE = """
import resource
from pathlib import Path
from gradcli import engine
from gradcli.engine.device import cpu

MIB = (1 << 20) // 4
pair = [engine.empty(128 * MIB) for _ in range(2)]
del pair
assert cpu.spare_bytes() >= 1 << 28
status = Path("/proc/self/status").read_text()
now = int(status.partition("VmSize:")[2].split()[0]) << 10
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (now - (130 << 20), hard))
block = engine.empty(96 * MIB)
assert cpu.spare_bytes() == 0
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it says what memory there is")
@pytest.mark.usefixtures("keeping")
def test_all_that_is_kept_goes_before_memory_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCARCE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
