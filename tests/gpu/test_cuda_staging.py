"""The ring of memory through which bytes go to a device."""

from __future__ import annotations

import random

import pytest

from gradcli.engine.device.gpu.staging import Ring


class Way:
    """Remembers which pieces are still on their way, and checks that no new one covers them."""

    def __init__(self, nbytes: int) -> None:
        self.on_way: dict[int, tuple[int, int]] = {}
        self.waited: list[int] = []
        self.ring = Ring(nbytes, self._wait)
        self._number = 0

    def _wait(self, mark: int) -> None:
        del self.on_way[mark]
        self.waited.append(mark)

    def send(self, nbytes: int) -> int:
        begin = self.ring.take(nbytes)
        end = begin + nbytes
        assert 0 <= begin <= end <= self.ring.nbytes
        assert all(end <= low or high <= begin for low, high in self.on_way.values())
        self.on_way[self._number] = begin, end
        self.ring.left(begin, self._number)
        self._number += 1
        return begin


def test_pieces_follow_one_another_until_the_ring_is_full() -> None:
    way = Way(64)
    assert [way.send(16) for _ in range(4)] == [0, 16, 32, 48]
    assert way.waited == []
    assert way.send(16) == 0
    assert way.waited == [0]


def test_pieces_begin_at_multiples_of_16() -> None:
    way = Way(64)
    assert [way.send(1), way.send(17), way.send(1)] == [0, 16, 48]


def test_a_piece_that_does_not_fit_at_the_end_waits_for_all_it_passes() -> None:
    way = Way(64)
    for _ in range(3):
        way.send(16)
    assert way.send(32) == 0
    assert way.waited == [0, 1]
    assert way.send(16) == 32
    assert way.waited == [0, 1, 2]


def test_a_piece_as_large_as_the_ring_waits_for_everything() -> None:
    way = Way(64)
    way.send(40)
    way.send(8)
    assert way.send(64) == 0
    assert way.waited == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_no_piece_is_overwritten_before_it_has_left(seed: int) -> None:
    draw = random.Random(seed)
    way = Way(256)
    for _ in range(300):
        way.send(draw.choice([1, 7, 16, 33, 100, 129, 256]))
    assert way.waited == sorted(way.waited)
