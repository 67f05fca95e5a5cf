"""Splits by class and by group."""

from __future__ import annotations

import random

import pytest

from gradcli import engine
from gradcli.data.cuts import grouped, stratified
from gradcli.data.dataset import DataSpec
from gradcli.data.image_source import splits_of
from gradcli.data.samples import Samples
from gradcli.data.split import cut, shuffled, stratify_of
from gradcli.errors import ConfigError, DataError


def order_of(count: int, seed: int = 3) -> engine.Tensor:
    return engine.tensor(shuffled(count, seed))


@pytest.mark.parametrize("seed", range(20))
def test_each_class_has_its_share_and_the_sizes_stay(seed: int) -> None:
    chance = random.Random(seed)
    count, classes = chance.randint(20, 400), chance.randint(1, 9)
    labels = [min(int(chance.expovariate(0.5)), classes - 1) for _ in range(count)]
    parts = cut({"train": "70%", "val": "20%"}, count)
    found = stratified(parts, order_of(count), engine.tensor(labels), list("abcdefghi"[:classes]))
    assert found.parts == parts
    assert len(set(found.order.tolist())) == found.order.shape[0]
    for name, part in parts.items():
        own = [labels[at] for at in found.indices(name).tolist()]
        for label in range(classes):
            share = labels.count(label) * len(part) / count
            assert abs(own.count(label) - share) < 2


def test_samples_of_a_part_stay_in_their_order() -> None:
    order = order_of(60)
    place = {sample: at for at, sample in enumerate(order.tolist())}
    labels = engine.tensor([at % 3 for at in range(60)])
    found = stratified(cut({"train": "50%", "val": "50%"}, 60), order, labels, "abc")
    for name in found.parts:
        places = [place[sample] for sample in found.indices(name).tolist()]
        assert places == sorted(places)


def test_classes_that_are_too_small_are_named_with_their_counts() -> None:
    labels = engine.tensor([0] * 50 + [1] * 50 + [2, 2] + [4])
    parts = cut({"train": "80%", "val": "10%", "test": "10%"}, 103)
    (note,) = stratified(parts, order_of(103), labels, ["a", "b", "rare", "absent", "one"]).notes
    assert note == (
        "warning: split.stratify: 2 classes have too few samples for a share in each of train, "
        "val, test: 'rare' (2), 'one' (1)"
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_group_lies_in_one_part(seed: int) -> None:
    chance = random.Random(seed)
    groups = chance.randint(3, 40)
    numbers = [*range(groups), *(chance.randrange(groups) for _ in range(300))]
    parts = cut({"train": "80%", "val": "10%", "test": "10%"}, len(numbers))
    found = grouped(
        parts, order_of(len(numbers)), engine.tensor(numbers), groups, seed, "visits.csv"
    )
    inside = [{numbers[at] for at in found.indices(name).tolist()} for name in parts]
    assert sum(map(len, inside)) == len(set[int]().union(*inside)) == groups
    assert all(inside)
    assert sorted(found.order.tolist()) == list(range(len(numbers)))


def test_groups_of_one_sample_give_the_sizes_that_were_asked_for() -> None:
    parts = cut({"train": 70, "val": 20}, 100)
    found = grouped(parts, order_of(100), engine.arange(100), 100, 1, "visits.csv")
    assert found.parts == parts


def test_another_seed_sends_other_groups() -> None:
    parts = cut({"train": "50%", "val": "50%"}, 40)
    numbers = engine.arange(40) // 4
    trained = [
        sorted(grouped(parts, engine.arange(40), numbers, 10, seed, "a").indices("train").tolist())
        for seed in (1, 1, 2)
    ]
    assert trained[0] == trained[1] != trained[2]


def test_fewer_groups_than_parts_are_refused() -> None:
    parts = cut({"train": "80%", "val": "10%", "test": "10%"}, 20)
    with pytest.raises(DataError, match=r"visits.csv: split.group: 2 groups are too few for"):
        grouped(parts, order_of(20), engine.arange(20) % 2, 2, 0, "visits.csv")


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({"train": 5, "stratify": "yes"}, "stratify must be true or false, got 'yes'"),
        ({"train": True}, "expected a count such as 5000"),
        ({"train": 5, "group": "patient"}, "group names a column of a table"),
        ({"train": 5, "stratfy": True}, "did you mean 'stratify'"),
    ],
)
def test_wrong_keys_of_a_split_are_refused(
    split: dict[str, int | str | bool], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        cut(split, 10)


def test_false_is_as_if_nothing_were_written() -> None:
    assert not stratify_of({"train": 5, "stratify": False})
    assert cut({"train": 5, "stratify": False}, 10) == {"train": range(5)}


def test_samples_are_chosen_where_they_lie() -> None:
    whole = Samples(engine.arange(20).reshape(10, 2), engine.arange(10) // 5)
    facts = DataSpec((2,), "float", (), 2, None, (), {"train": 6, "val": 4})
    split = {"train": 6, "val": 4, "stratify": True}
    splits, notes = splits_of(whole, cut(split, 10), split, facts)
    assert not notes
    assert splits["val"].inputs is whole.inputs
    assert splits["val"].size == 4
    assert splits["train"].stored_targets.tolist() == [0, 0, 0, 1, 1, 1]
    inputs, targets = splits["val"].batch(engine.tensor([3, 0]))
    assert inputs.tolist() == [[18, 19], [6, 7]]
    assert targets.tolist() == [1, 0]
    again = splits["val"].gathered().batch(engine.tensor([3, 0]))
    assert again[0].tolist() == inputs.tolist()
