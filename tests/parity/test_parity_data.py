"""Datasets, samplers and the DataLoader: torch's batches from torch's arguments."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from torch.utils import data as their_data  # noqa: E402

from gradcli import data as our_data  # noqa: E402
from gradcli import engine  # noqa: E402

pytestmark = pytest.mark.parity
SIZES = (7, 0, 1, 12)


def both_sets(size: int) -> tuple[Any, Any]:
    rows = [[float(3 * i + j) for j in range(3)] for i in range(size)]
    ours = engine.tensor(rows, dtype=engine.float32).reshape(size, 3)
    mine = our_data.TensorDataset(ours, engine.arange(size))
    other = their_data.TensorDataset(torch.tensor(rows).reshape(size, 3), torch.arange(size))
    return mine, other


def leaves(value: Any) -> list[Any]:
    """What a batch holds, in order; its containers are compared by `shape_of`."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def shape_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape_of(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape_of(each) for each in value]
    return "tensor" if hasattr(value, "dtype") else value


def compare(agree: Any, name: str, mine: Any, other: Any) -> None:
    assert shape_of(mine) == shape_of(other)
    for ours, theirs in zip(leaves(mine), leaves(other), strict=True):
        if hasattr(ours, "dtype"):
            agree(name, ours, theirs)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": 20},
        {"batch_size": None},
        {"batch_size": 2, "sampler": []},
        {"batch_sampler": []},
    ],
)
def test_the_loader_gives_torchs_batches(agree: Any, size: int, options: dict[str, Any]) -> None:
    mine, other = both_sets(size)
    loaders = our_data.DataLoader(mine, **options), their_data.DataLoader(other, **options)
    assert len(loaders[0]) == len(loaders[1])
    compare(agree, "data.DataLoader", *map(list, loaders))


@pytest.mark.parametrize(
    "samples",
    [
        [1, 2, 3],
        [0.5, 1.5],
        [True, False],
        ["a", "b"],
        [b"x", b"y"],
        [(1, 2.0, "c"), (3, 4.0, "d")],
        [[1, [2, 3]], [4, [5, 6]]],
        [{"a": 1, "b": (2.0, "t")}, {"a": 3, "b": (4.0, "u")}],
    ],
)
def test_samples_are_collated_as_torch_does(agree: Any, samples: list[Any]) -> None:
    mine, other = our_data.default_collate(samples), their_data.default_collate(samples)
    compare(agree, "data.default_collate", mine, other)


@pytest.mark.parametrize("size", [10, 11, 3, 1])
@pytest.mark.parametrize("lengths", [[0.5, 0.5], [0.33, 0.33, 0.34], [0.9, 0.1], [0.1] * 10])
def test_fractions_make_parts_of_torchs_sizes(size: int, lengths: list[float]) -> None:
    ours = our_data.random_split(list(range(size)), lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # torch warns of empty parts
        theirs = their_data.random_split(list(range(size)), lengths)
    assert [len(part) for part in ours] == [len(part) for part in theirs]


@pytest.mark.parametrize("index", [0, 3, 6, 7, 9, -1, -3, -4, -10])
def test_joined_datasets_have_torchs_samples(agree: Any, index: int) -> None:
    parts = [both_sets(size) for size in (7, 1, 2)]
    mine = our_data.ConcatDataset([ours for ours, _ in parts])
    other = their_data.ConcatDataset([theirs for _, theirs in parts])
    assert len(mine) == len(other)
    compare(agree, "data.ConcatDataset", mine[index], other[index])
    subsets = our_data.Subset(mine, [index, 2]), their_data.Subset(other, [index, 2])
    compare(agree, "data.Subset", subsets[0][0], subsets[1][0])


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_samplers_give_torchs_batches_of_indices(size: int, drop_last: bool) -> None:
    made = [
        module.BatchSampler(module.SequentialSampler(range(size)), 4, drop_last)
        for module in (our_data, their_data)
    ]
    assert list(made[0]) == list(made[1])
    assert len(made[0]) == len(made[1])
