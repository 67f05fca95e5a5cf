"""Python threads, over captured steps and eager ops: everybody gets the right answers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import partial
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine.op import composing
from gradcli.engine.walk import _watching


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def together(functions: list[Callable[[], object]]) -> None:
    """Each in a thread; Python changes from one to the next as often as it can."""
    threads = [threading.Thread(target=one) for one in functions]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)


BLOCKS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "no_grad": (engine.no_grad, engine.is_grad_enabled),
    "inference_mode": (engine.inference_mode, engine.is_grad_enabled),
    "enable_grad": (engine.enable_grad, engine.is_grad_enabled),
    "set_grad_enabled": (lambda: engine.set_grad_enabled(False), engine.is_grad_enabled),
    "autocast": (engine.autocast, lambda: (engine.ones(2, 2) @ engine.ones(2, 2)).dtype),
    "composed": (engine.composed, composing),
    "detect_anomaly": (engine.detect_anomaly, _watching.get),
}


def test_the_table_has_every_block() -> None:
    public = {name for name in engine.__all__ if isinstance(getattr(engine, name), type)}
    blocks = {name for name in public if issubclass(getattr(engine, name), ContextDecorator)}
    assert blocks == set(BLOCKS)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("decorated", [True, False], ids=["decorator", "with"])
def test_a_block_that_threads_share_leaves_each_as_it_was(name: str, decorated: bool) -> None:
    make, state = BLOCKS[name]
    shared = make()
    found: list[bool] = []
    entered, both, left = threading.Event(), threading.Event(), threading.Event()

    def inside(function: Callable[[], object]) -> None:
        before = state()
        if decorated:
            shared(function)()
        else:
            with shared:
                function()
        found.append(state() == before)

    def hold(mine: threading.Event, other: threading.Event) -> None:
        mine.set()
        other.wait(10)

    def first() -> None:
        inside(partial(hold, entered, both))
        left.set()

    def second() -> None:
        with make():  # so that it finds another state than the first
            entered.wait(10)
            inside(partial(hold, both, left))

    together([first, second])
    assert found == [True, True]


def test_no_two_threads_make_the_same_draw() -> None:
    generator = engine.Generator(3)
    drawn: list[Any] = []

    def draw() -> Any:
        return engine.rand(2, generator=generator)

    def many(ways: list[Callable[[], Any]]) -> None:
        drawn.extend(tuple(ways[i % len(ways)]().tolist()) for i in range(900))

    captured: list[Callable[[], Any]] = [engine.capture(draw, on_refusal=refuse) for _ in "ab"]
    for _ in range(3):
        drawn.extend(tuple(step().tolist()) for step in captured)
    late = engine.capture(draw, on_refusal=lambda _: None)  # others draw while it is recorded
    ways: list[list[Callable[[], Any]]] = [[draw], [*captured, draw], [draw, late], captured]
    together([partial(many, each) for each in ways])
    assert len(drawn) == 3606
    assert len(set(drawn)) == len(drawn)
