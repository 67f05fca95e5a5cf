"""The ring of memory through which bytes go to a device."""

from __future__ import annotations

import random

import pytest

from gradcli.engine.device.gpu.staging import MOST_MARKS, Ring


class Way:
    """Remembers which pieces are still on their way, and checks that no new one covers them."""

    def __init__(self, nbytes: int) -> None:
        self.on_way: dict[int, tuple[int, int]] = {}
        self.waited: list[int] = []  # numbers of the pieces before which a mark stood
        self.marks: set[int] = set()  # that live
        self.most_marks = 0
        self.ring = Ring(nbytes, self._mark, self._wait)
        self._number = 0

    def _mark(self) -> int:
        assert self._number not in self.marks, "two marks for the same pieces"
        self.marks.add(self._number)
        self.most_marks = max(self.most_marks, len(self.marks))
        return self._number

    def _wait(self, mark: int) -> None:
        self.marks.remove(mark)
        for number in [n for n in self.on_way if n < mark]:
            del self.on_way[number]
        self.waited.append(mark - 1)

    def send(self, nbytes: int) -> int:
        begin = self.ring.take(nbytes)
        end = begin + nbytes
        assert 0 <= begin <= end <= self.ring.nbytes
        assert all(end <= low or high <= begin for low, high in self.on_way.values())
        self.on_way[self._number] = begin, end
        self._number += 1
        self.ring.queued()
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
@pytest.mark.parametrize("sizes", [(1, 7, 16, 33, 100, 129, 256), (4,), (4, 1280), (1, 4096)])
def test_no_piece_is_overwritten_before_it_has_left(seed: int, sizes: tuple[int, ...]) -> None:
    draw = random.Random(seed)
    way = Way(256 if max(sizes) <= 256 else 1 << 14)
    for _ in range(3000):
        way.send(draw.choice(sizes))
    assert way.waited == sorted(way.waited)
    assert len(way.waited) > 3 and way.most_marks <= MOST_MARKS


def test_small_pieces_share_marks() -> None:
    """However small they are: a step of a small model sends some hundred bytes."""
    way = Way(1 << 13)
    for _ in range(5_000):
        way.send(4)
    assert 0 < way.most_marks <= MOST_MARKS
