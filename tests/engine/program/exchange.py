"""A step that calls a function of Python: for tests of outside.call."""

from __future__ import annotations

from typing import Any

from gradcli import engine
from gradcli.engine import outside
from tests.engine.program.replays import bits


class Exchange:
    """A weight that follows what a function makes of the step's numbers, as of other processes'.

    Attributes:
        calls: what the function has found, each time.
        error: is raised instead of the work, at the call of this number.
    """

    def __init__(self) -> None:
        engine.manual_seed(3)
        self.weight = engine.rand(5, 4)
        self.source, self.out = engine.zeros(5, 4), engine.zeros(5, 4)
        self.calls: list[bytes] = []
        self.error: tuple[int, Exception] | None = None

    def add(self) -> None:
        """As an exchange does it: bytes are read and written behind the kernels' back."""
        self.calls.append(bytes(self.source.memoryview()))
        if self.error is not None and self.error[0] == len(self.calls):
            raise self.error[1]
        other = engine.frombuffer(bytearray(self.calls[-1]), dtype=engine.float32)
        self.out.copy_(other.reshape(5, 4) * 3 + len(self.calls[-1]))

    def step(self, x: Any) -> Any:
        """What comes out is used twice: by a norm of all of it, and in the update."""
        self.source.copy_((x * self.weight).tanh())
        outside.call(self.add, [self.source], [self.out])
        norm = (self.out * self.out).sum().sqrt()
        self.weight.sub_(self.out * (0.01 / (norm + 1.0)))
        return norm, self.out * 2

    def twice(self, x: Any) -> Any:
        """Two calls, of which the second finds what the first has led to; nothing is between
        the second and the end."""
        norm, doubled = self.step(x)
        self.source.copy_(doubled * x + norm)
        outside.call(self.add, [self.source], [self.out])
        return norm

    def first(self, x: Any) -> Any:
        """Nothing is before the first call, and nothing between the first and the second."""
        outside.call(self.add, [self.source], [self.out])
        outside.call(self.add, [self.source], [self.out])
        self.source.add_(x * self.out)
        return self.source.sum()

    def state(self) -> list[bytes]:
        """All that outlives a step."""
        return bits((self.weight, self.source, self.out))
