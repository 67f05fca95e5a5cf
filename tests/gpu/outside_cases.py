"""Steps on a GPU that call a function of Python: run on each stand-in, and on a device."""

from __future__ import annotations

from typing import Any

from gradcli import engine
from gradcli.engine import outside
from gradcli.errors import NumericsError

ROWS = 6


class Doubling:
    """A step whose function reads and writes the host's memory, as an exchange does."""

    def __init__(self, device: str) -> None:
        engine.manual_seed(5)
        self.device = device
        self.weight = engine.rand(3, 4).to(device)
        self.source = engine.zeros(2, 3, 4).to(device)
        self.out = engine.zeros(3, 4).to(device)
        self.there = outside.host(self.source), outside.host(self.out)
        self.calls = 0
        self.ends_at = -1

    def add(self) -> None:
        """The rows added, plus what only the host knows."""
        self.calls += 1
        if self.calls == self.ends_at:
            raise NumericsError("exchange: nothing from rank 1")
        source, out = self.there
        out.copy_(source[0] + source[1] + self.calls % 2)

    def step(self, x: Any) -> Any:
        """What comes out is used twice, the second time through the first."""
        self.source[0].copy_((x * self.weight).tanh())
        self.source[1].copy_(x - self.weight)
        outside.call(self.add, [self.source], [self.out])
        norm = (self.out * self.out).sum()
        self.weight.sub_(self.out * (0.01 / (norm + 1.0)))
        outside.call(self.add, [self.source], [self.out])
        self.weight.mul_(0.5 + self.out.mean() * 0.01)
        return norm

    def state(self) -> list[bytes]:
        """All that outlives a step."""
        return [bytes(t.cpu().memoryview()) for t in (self.weight, self.source, self.out)]


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def trained(device: str, eager: bool) -> tuple[Any, ...]:
    """Several steps at once and one more: what they give and leave."""
    one = Doubling(device)
    rows = engine.rand(ROWS, 3, 4).to(device)
    captured = engine.capture(one.step, on_fallback=refuse, eager=eager)
    given = [captured.scan(rows), captured(rows[0])]
    assert len(captured.programs) == (not eager)
    assert one.calls == 2 * (ROWS + 1)  # a proof is none
    return [bytes(t.cpu().memoryview()) for t in given], one.state()


def check_bits(device: str) -> None:
    """A captured step has the bits of an eager one."""
    assert trained(device, False) == trained(device, True)


def check_failure(device: str) -> None:
    """An error in the function of a later step ends the steps before that step's later writes."""
    rows = engine.rand(ROWS, 3, 4)
    ended = []
    for eager in (True, False):
        one = Doubling(device)
        one.ends_at = 2 * 4 + 1  # the first function of the fifth step
        captured = engine.capture(one.step, on_fallback=refuse, eager=eager)
        steps = captured.steps(rows.to(device))
        assert steps.done == 4
        assert isinstance(steps.error, NumericsError)
        ended.append((one.state(), bytes(steps.outputs[:4].cpu().memoryview())))
    assert ended[0] == ended[1]
