"""The largest batch that fits: few rehearsals lead to it, and the next one does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trusting import load

from gradcli.config import Config, largest
from gradcli.config.rehearsal import Usage
from gradcli.engine.device import cpu

CONFIGS = Path(__file__).parents[2] / "configs"
MB = 10**6


@pytest.mark.parametrize(
    ("name", "megabytes"),
    [("mnist_cnn", 5), ("mnist_cnn", 936), ("mnist_cnn", 3000), ("mnist", 120), ("penguins", 9)],
)
def test_few_rehearsals_find_a_size_that_fits_before_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch, name: str, megabytes: int
) -> None:
    config, rehearse = load(CONFIGS / f"{name}.yaml"), largest.rehearse_training
    needs: dict[int, int] = {}
    cpu.set_threads(2)  # some calls have scratch for each thread

    def counted(changed: Config, device: str, free: int) -> tuple[Usage, str]:
        found = rehearse(changed, device=device, free=free)
        needs[changed.train.batch] = found[0].most
        return found

    monkeypatch.setattr(largest, "rehearse_training", counted)
    found = largest.largest_batch(config, megabytes * MB)
    assert found is not None and len(needs) <= 7
    assert found.size == 0 or needs[found.size] <= megabytes * MB
    after = max(found.size + 1, found.least)
    assert found.most or needs[after] > megabytes * MB
    again = largest.largest_batch(config, megabytes * MB, {after: needs.get(after, 0)})
    assert found.most or again == found  # also who knows that one already


def sawtooth(samples: int) -> int:
    """As with a program for whole batches and one for the rest."""
    return 1000 + 7 * (samples + 1000 % samples) + 3 * (300 % samples)


def bent(samples: int) -> int:
    """As where something else is the most from some size on."""
    return max(2000 + 5 * samples, 20 * samples - 4000, samples**2 // 20)


@pytest.mark.parametrize("free", [1, 1006, 1007, 2500, 3333, 4711, 7999, 8000, 10**6])
@pytest.mark.parametrize("need", [sawtooth, bent])
def test_a_bad_guess_costs_rehearsals_and_nothing_else(
    free: int, need: Callable[[int], int]
) -> None:
    search = largest.Search(need, lambda size: (size + 1000 % size,), free, 1, 1000)
    size = search.largest()
    assert size == 0 or need(size) <= free
    assert size == 1000 or need(size + 1) > free


def test_least_squares_solve_what_can_be_solved() -> None:
    assert largest.least_squares([[1, 2, 8], [1, 5, 17]]) == pytest.approx([2, 3])
    assert largest.least_squares([[0, 2, 8]]) == pytest.approx([0, 4])
    rows = [[1, 0, 1], [1, 1, 2], [1, 2, 6]]
    assert largest.least_squares(rows) == pytest.approx([0.5, 2.5])
