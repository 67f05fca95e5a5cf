from __future__ import annotations

import pytest

from gradcli.data.split import cut, shuffled
from gradcli.errors import ConfigError, DataError


def test_counts_follow_each_other() -> None:
    assert cut({"val": 5000, "train": 55000}, 60000) == {
        "train": range(55000),
        "val": range(55000, 60000),
    }


def test_percents_use_every_sample() -> None:
    parts = cut({"train": "80%", "val": "10%", "test": "10%"}, 344)
    assert [len(part) for part in parts.values()] == [275, 35, 34]
    assert parts["test"].stop == 344


def test_fractions_of_a_percent_are_exact() -> None:
    assert cut({"train": "99.9%", "val": "0.1%"}, 1000)["val"] == range(999, 1000)


def test_one_sample_can_be_trained_on() -> None:
    assert cut({"train": "100%"}, 1) == {"train": range(1)}


@pytest.mark.parametrize("split", [{"train": 3, "val": 0}, {"train": "99%", "val": "1%"}])
def test_an_empty_side_is_refused_with_counts(split: dict[str, int | str]) -> None:
    with pytest.raises(DataError, match="split leaves val empty: train 3, val 0 of 3 samples"):
        cut(split, 3)


def test_more_than_there_is_is_refused_with_counts() -> None:
    with pytest.raises(DataError, match=r"asks for 12 samples .*, the data has 10"):
        cut({"train": 8, "val": 4}, 10)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({"val": 3}, "no 'train'"),
        ({"train": 3, "dev": 1}, "split has 'dev'"),
        ({"train": 3, "val": "10%"}, "mixes counts and percents"),
        ({"train": "80%", "val": "30%"}, "adds up to 110%"),
        ({"train": -1}, "expected a count"),
        ({"train": "most"}, "expected a count"),
        ({"train": "1e2%"}, "expected a count"),
    ],
)
def test_an_impossible_split_is_a_config_error(split: dict[str, int | str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cut(split, 10)


def test_a_count_beyond_64_bits_is_refused_with_counts() -> None:
    with pytest.raises(DataError, match=f"split asks for .* samples .train {10**30}, val 2."):
        cut({"train": 10**30, "val": 2}, 20)


def test_the_shuffle_depends_on_the_seed_alone() -> None:
    assert shuffled(10, 0) == [9, 6, 4, 5, 2, 8, 3, 1, 7, 0]
    assert sorted(shuffled(100, 1)) == list(range(100))
    assert shuffled(100, 1) != shuffled(100, 2)
