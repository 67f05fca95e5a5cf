"""Where random numbers come from: pure numbers that name a draw, no hidden state of its own.

The bits of a draw are Philox4x32-10 (csrc/cpu/random/random_philox.h) of seed, purpose, step and
the number of the draw within the step. Whoever knows these can make any draw again, on any device
and in any order.
"""

from __future__ import annotations

import os
from threading import RLock

from gradcli.dataclass import dataclass
from gradcli.errors import OptionError

_BITS_64 = (1 << 64) - 1
_drawing = RLock()  # no two threads make the same draw
# Nobody is in the middle of one when a process forks, or the child would wait for it forever.
os.register_at_fork(
    before=_drawing.acquire, after_in_parent=_drawing.release, after_in_child=_drawing.release
)


def _signed(number: int) -> int:
    """The same 64 bits as a number of two's complement."""
    number &= _BITS_64
    return number - (1 << 64) if number >> 63 else number


def purpose_number(purpose: str) -> int:
    """A fixed 64-bit number for a purpose (FNV-1a); 0 for none. Python's hash() differs per run."""
    if not purpose:
        return 0
    number = 0xCBF29CE484222325
    for byte in purpose.encode("utf-8"):
        number = (number ^ byte) * 0x100000001B3 & _BITS_64
    return number


@dataclass(frozen=True)
class Draw:
    """One draw: what the kernels are told, all int64."""

    key: int
    step: int
    number: int


class Generator:
    """Names one draw after the other: seed and purpose give the key, then step, then a count.

    Two purposes under one seed ("shuffle", "dropout") share no numbers.
    """

    def __init__(self, seed: int = 0, purpose: str = "", step: int = 0) -> None:
        if not isinstance(purpose, str):
            raise OptionError(f"Generator: purpose must be a text, got {type(purpose).__name__}")
        self.purpose = purpose
        self.manual_seed(seed, step)

    def __repr__(self) -> str:
        return f"Generator(seed={self.seed}, purpose={self.purpose!r}, step={self.step})"

    def manual_seed(self, seed: int, step: int = 0) -> Generator:
        """Begin again with another seed; returns the generator itself."""
        for name, value in (("seed", seed), ("step", step)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise OptionError(f"Generator: {name} must be a whole number, got {value!r:.60}")
        self.seed = seed
        self.key = _signed(seed ^ purpose_number(self.purpose))
        self.set_step(step)
        return self

    def set_step(self, step: int) -> None:
        """Go to a step; its draws are counted from 0."""
        self.step = step
        self._draws = 0

    def initial_seed(self) -> int:
        """The seed."""
        return self.seed

    def get_state(self) -> tuple[int, int, int]:
        """The key, the step, and how many draws of it were made."""
        return self.key, _signed(self.step), self._draws

    def set_state(self, key: int, step: int, draws: int) -> None:
        """Go on where another generator of the same purpose stood."""
        self.key, self.step, self._draws = key, step, draws

    def next_draw(self) -> Draw:
        """The name of the next draw of this step."""
        return Draw(*self.take(1))

    def take(self, draws: int) -> tuple[int, int, int]:
        """The state before so many draws, which are made with that."""
        with _drawing:
            state = self.get_state()
            self._draws += draws
        return state


default_generator = Generator()


def manual_seed(seed: int, step: int = 0) -> Generator:
    """Seed the default generator, which everything uses that is given no other."""
    return default_generator.manual_seed(seed, step)
