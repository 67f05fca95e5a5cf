"""Captured against eager: the same bits for every choice of passes and any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradcli import engine
from gradcli.engine.device import cpu
from gradcli.engine.program.passes import PASSES
from gradcli.engine.program.replay import Program

Step = Callable[..., Any]
ALL = tuple(PASSES)


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def bits(value: Any) -> list[bytes]:
    """The bytes of all tensors in tuples of tensors."""
    given = value if isinstance(value, tuple) else (value,)
    return [bytes(t.detach().contiguous().memoryview()) for t in given]


def program(make: Callable[[], Step], *args: Any, passes: Iterable[str] = ALL) -> Program:
    """The program of a step that `make` gives anew; three replays have the bits of eager steps."""
    eager_step = make()
    eager = [bits(eager_step(*args)) for _ in range(5)]
    before = cpu.threads()
    try:
        for threads in (1, 2, 3, 4):
            cpu.set_threads(threads)
            captured = engine.capture(make(), passes=passes, on_fallback=refuse)
            assert [bits(captured(*args)) for _ in range(5)] == eager
    finally:
        cpu.set_threads(before)
    (made,) = captured.programs
    return made


def kernels(make: Callable[[], Step], *args: Any, passes: Iterable[str] = ALL) -> list[str]:
    """The kernels of that program, in order."""
    return [call.kernel for call in program(make, *args, passes=passes).calls]


def pure(step: Step) -> Callable[[], Step]:
    """A step that keeps nothing from one time to the next."""
    return lambda: step
