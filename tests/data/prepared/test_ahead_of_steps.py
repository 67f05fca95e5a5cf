"""Pages of mapped samples are asked for ahead of the steps, and no number depends on it."""

from __future__ import annotations

import threading
import time
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.prepared import ahead_of_steps
from gradcli.data.prepared.ahead_of_steps import AheadOfSteps
from gradcli.data.prepared.mapped import map_file, mappings
from gradcli.data.samples import Samples, Windows
from gradcli.data.tokens import TokenSource
from gradcli.train.order import Order
from gradcli.train.pages import Pages

ROWS, WIDTH = 4000, 256
Asked = list[tuple[int, list[int], int, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    calls: Asked = []

    def note(address: int, firsts: array[int], row: int, nbytes: int) -> None:
        calls.append((address, list(firsts), row, nbytes))

    monkeypatch.setattr(ahead_of_steps, "will_need", note)
    return calls


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What was read of disks: one number that a test may add to."""
    counted = [0]
    monkeypatch.setattr(ahead_of_steps, "_read", lambda: (counted[0], 0))
    return counted


@pytest.fixture
def mapped(tmp_path: Path) -> Samples:
    path = tmp_path / "numbers"
    path.write_bytes(array("f", range(ROWS * WIDTH)).tobytes())
    inputs = map_file(path, engine.float32, (ROWS, WIDTH), 0)
    return Samples(inputs, engine.zeros(ROWS, dtype=engine.int64))


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.001)
    assert condition()


def ended() -> bool:
    return not any(thread.name == "pages" for thread in threading.enumerate())


def test_nobody_asks_for_what_lies_in_memory(mapped: Samples) -> None:
    first = engine.arange(1)
    held = replace(mapped, inputs=mapped.inputs + 1)
    assert AheadOfSteps.begin(held, first) is None
    assert AheadOfSteps.begin(object(), first) is None
    pages = Pages(held, SETTINGS, 10)
    assert pages.at_a_time(1000) == 1000
    pages.ask(0, 10)
    pages.close()


def test_samples_are_asked_for_where_they_lie(mapped: Samples, asked: Asked) -> None:
    part = mapped.part(range(1000, 4000))
    asking = AheadOfSteps.begin(part, engine.arange(1))
    assert asking is not None
    asking.ask(engine.tensor([[5, 0], [2999, 7]]))
    wait_for(lambda: asked)
    assert [(call[1], call[2], call[3]) for call in asked] == [([5, 0, 2999, 7], 1024, 1024)]
    rows = engine.tensor([3, 1, 2])
    chosen = AheadOfSteps.begin(replace(mapped, rows=rows), engine.arange(1))
    assert chosen is not None
    chosen.ask(engine.tensor([2, 0]))
    wait_for(lambda: len(asked) == 2)
    assert asked[1][1] == [2, 3] and asked[1][0] == asked[0][0] - 1000 * 1024
    asking.close()
    chosen.close()
    wait_for(ended)


def test_windows_of_tokens_are_asked_for_whole(tmp_path: Path, asked: Asked) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(bytes(10_000))
    windows = Windows(map_file(path, engine.uint8, (10_000,), 0), context=64, stride=10)
    asking = AheadOfSteps.begin(windows, engine.arange(1))
    assert asking is not None
    asking.ask(engine.tensor([3, 700]))
    wait_for(lambda: asked)
    assert asked[0][1:] == ([30, 7000], 1, 65)
    asking.close()
    wait_for(ended)


def test_tokens_of_files_are_asked_for_by_window(tmp_path: Path, asked: Asked) -> None:
    path = tmp_path / "corpus.bin"
    path.write_bytes(bytes(10_000))
    source = TokenSource(file=str(path), type="uint8", context=64, stride=10)
    asking = AheadOfSteps.begin(source.load().splits["train"], engine.arange(1))
    assert asking is not None
    asking.ask(engine.tensor([3, 700]))
    wait_for(lambda: asked)
    assert asked[0][1:] == ([30, 7000], 1, 65)
    asking.close()
    wait_for(ended)


def test_tokens_of_several_files_are_asked_for_where_each_lies(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.bin").write_bytes(bytes(10_000))
    source = TokenSource(
        file=str(tmp_path / "?.bin"), type="uint8", context=64, stride=10, split={"train": "100%"}
    )
    monkeypatch.setattr(ahead_of_steps, "free_memory", lambda: 1000)  # page by page then
    split: Any = source.load().splits["train"]
    asking = AheadOfSteps.begin(split, engine.arange(1))
    assert asking is not None
    asking.ask(engine.tensor([3, split.size - 1]))
    wait_for(lambda: asked)
    first = {one.path.name: one.address for one in mappings() if one.path.parent == tmp_path}
    ((address, firsts, row, nbytes),) = asked
    assert address == first["a.bin"] and (row, nbytes) == (1, 65)
    assert [address + at for at in firsts] == [first["a.bin"] + 30, first["b.bin"] + 9930]
    asking.close()
    wait_for(ended)


SETTINGS: Any = type("Settings", (), {"seed": 5, "batch": 16, "sampler": None})


def test_steps_are_asked_for_once_in_their_order_and_a_bounded_way_ahead(
    mapped: Samples, asked: Asked, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead_of_steps, "AHEAD", 8 * 16 * 1024)  # 8 steps
    pages = Pages(mapped, SETTINGS, ROWS // 16)
    assert pages.at_a_time(100) == 4
    end, most = 600, 0
    for done in range(0, end, 4):
        reads[0] += 1
        pages.ask(done, end)
        wait_for(lambda: pages._asking._spans.empty())  # type: ignore[union-attr]
        most = max(most, sum(len(call[1]) for call in asked) - done * 16)
    pages.close()
    wait_for(ended)
    order = Order(5, 16, ROWS, ROWS // 16)
    expected = [i for done in range(end) for i in order.rows(done, 1).flatten().tolist()]
    assert [i for call in asked for i in call[1]] == expected
    assert most <= 8 * 16


def test_it_asks_seldom_while_nothing_is_read_and_at_once_when_something_is(
    mapped: Samples, reads: list[int]
) -> None:
    asking = AheadOfSteps.begin(mapped, engine.arange(1))
    assert asking is not None
    useful = [asking.is_of_use() for _ in range(200)]
    assert useful[0] and 10 < sum(useful) < 25
    reads[0] += 1
    assert asking.is_of_use()
    asking.close()
    wait_for(ended)


def test_a_slow_disk_holds_nobody_up(mapped: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(ahead_of_steps, "will_need", lambda *_: go_on.wait(20))
    asking = AheadOfSteps.begin(mapped, engine.arange(1))
    assert asking is not None
    for _ in range(100):
        asking.ask(engine.arange(100))
    asking.close()
    go_on.set()
    wait_for(ended)


def test_the_kernel_takes_advice_of_any_place(mapped: Samples) -> None:
    asking = AheadOfSteps.begin(mapped, engine.arange(1))
    assert asking is not None
    asking.ask(engine.tensor([0, ROWS - 1, ROWS // 2]))
    asking.close()
    wait_for(ended)
    assert mapped.inputs[ROWS - 1, 0].item() == (ROWS - 1) * WIDTH
