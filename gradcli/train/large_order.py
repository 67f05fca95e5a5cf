"""The order of an epoch of many samples, computed for each place by itself.

The samples may be mapped, so a list of all of them could outgrow memory. So an epoch's
order is a keyed bijection: a number below n becomes a pair (left, right), as in division with
remainder, and each round adds a random function of one half to the other (a Feistel network).
That gives a number below left x right, which is hardly more than n; where it is n or more, the
rounds begin again with it until it is less (cycle walking), which keeps it a bijection. The random
functions are tables of about sqrt(n) numbers.
"""

from __future__ import annotations

from math import isqrt

from gradcli import engine
from gradcli.engine import Tensor

ROUNDS = 6
_WIDTHS = 256  # so many are tried at most, for the product that is nearest to that of samples


class LargeOrder:
    """The order of one epoch; slice it like a tensor: `order[first:last]`."""

    def __init__(self, seed: int, epoch: int, samples: int) -> None:
        generator = engine.Generator(seed, purpose="shuffle", step=epoch)
        self._samples = samples
        self.halves = halves_of(samples)
        self._tables = [
            engine.randint(self.halves[i % 2], (self.halves[1 - i % 2],), generator=generator)
            for i in range(ROUNDS)
        ]

    def __getitem__(self, positions: slice) -> Tensor:
        first, last, _ = positions.indices(self._samples)
        numbers = self._mix(engine.arange(first, last, dtype=engine.int64))
        while (outside := numbers.ge(self._samples)).device != "meta" and outside.any().item():
            numbers = engine.where(outside, self._mix(numbers), numbers)
        return numbers

    def _mix(self, numbers: Tensor) -> Tensor:
        """One pass through the rounds."""
        width = self.halves[1]
        left = numbers // width
        right = numbers - left * width
        for i, table in enumerate(self._tables):
            if i % 2 == 0:
                left = (left + engine.index_select(table, 0, right)) % self.halves[0]
            else:
                right = (right + engine.index_select(table, 0, left)) % width
        return left * width + right


def halves_of(samples: int) -> tuple[int, int]:
    """Two numbers of similar size whose product is at least `samples`, and hardly more."""
    least = isqrt(samples - 1) + 1
    widths = range(least, least + 1 + min(_WIDTHS, least // 8))
    size = min(widths, key=lambda width: -samples % width)
    return size, -(-samples // size)
