"""outside.call: a function of Python inside a captured step, at its place and once a step."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import outside
from gradcli.engine.device import cpu
from tests.engine.program.replays import bits, refuse

ROWS = 12


class Exchange:
    """A weight that follows what a function makes of the step's numbers, as of other processes'."""

    def __init__(self) -> None:
        engine.manual_seed(3)
        self.weight = engine.rand(5, 4)
        self.source, self.out = engine.zeros(5, 4), engine.zeros(5, 4)
        self.calls: list[bytes] = []

    def add(self) -> None:
        """As an exchange does it: bytes are read and written behind the kernels' back."""
        self.calls.append(bytes(self.source.memoryview()))
        other = engine.frombuffer(bytearray(self.calls[-1]), dtype=engine.float32)
        self.out.copy_(other.reshape(5, 4) * 3 + len(self.calls[-1]))

    def step(self, x: Any) -> Any:
        """What comes out is used twice: by a norm of all of it, and in the update."""
        self.source.copy_((x * self.weight).tanh())
        outside.call(self.add, [self.source], [self.out])
        norm = (self.out * self.out).sum().sqrt()
        self.weight.sub_(self.out * (0.01 / (norm + 1.0)))
        return norm, self.out * 2

    def state(self) -> list[bytes]:
        """All that outlives a step."""
        return bits((self.weight, self.source, self.out))


def trained(one: Exchange, eager: bool, threads: int = 1) -> list[Any]:
    """Several steps in one go, twice, and some one by one: what they give and what they leave."""
    before = cpu.threads()
    cpu.set_threads(threads)
    try:
        engine.manual_seed(7)
        captured = engine.capture(one.step, on_refusal=refuse, eager=eager)
        given = [bits(captured.scan(engine.rand(ROWS, 5, 4))) for _ in range(2)]
        given += [bits(captured(engine.rand(5, 4))) for _ in range(3)]
        assert len(captured.programs) == (not eager)
        return [given, one.state()]
    finally:
        cpu.set_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_captured_step_has_the_bits_of_an_eager_one(threads: int) -> None:
    assert trained(Exchange(), False, threads) == trained(Exchange(), True)


def test_it_is_called_once_a_step_and_once_more_for_the_proof() -> None:
    eager, captured = Exchange(), Exchange()
    trained(eager, True)
    trained(captured, False)
    assert len(eager.calls) == 2 * ROWS + 3
    # The third call repeats the second step on the numbers that this had found.
    assert captured.calls[1] == captured.calls[2]
    assert captured.calls[:2] + captured.calls[3:] == eager.calls
