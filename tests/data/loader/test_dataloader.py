from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import pytest

from gradcli import data, engine
from gradcli.data import loader
from gradcli.data.loader import DataLoader, IterableDataset, TensorDataset
from gradcli.errors import DTypeError, OptionError

Pair = namedtuple("Pair", ["x", "name"])


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(7))


def rows(size: int = 10) -> TensorDataset:
    return TensorDataset(engine.arange(2 * size).reshape(size, 2), engine.arange(size))


def given(loader: Any) -> list[Any]:
    return [batch[1].tolist() for batch in loader]


def test_batches_are_stacked_in_order() -> None:
    batches = list(DataLoader(rows(), batch_size=4))
    assert [x.shape for x, _ in batches] == [(4, 2), (4, 2), (2, 2)]
    assert batches[1][0].tolist() == [[8, 9], [10, 11], [12, 13], [14, 15]]
    assert len(DataLoader(rows(), batch_size=4)) == 3
    assert len(list(DataLoader(rows(), batch_size=4, drop_last=True))) == 2


def test_each_epoch_is_shuffled_anew_and_a_seed_repeats_them() -> None:
    first, second = (DataLoader(rows(), batch_size=3, shuffle=True, seed=5) for _ in range(2))
    epochs = [given(first), given(first)]
    assert epochs[0] != epochs[1]
    assert [given(second), given(second)] == epochs
    assert sorted(i for batch in epochs[0] for i in batch) == list(range(10))


def test_a_loader_goes_on_in_the_middle_of_an_epoch() -> None:
    loader = DataLoader(rows(), batch_size=3, shuffle=True, seed=5)
    list(loader)
    whole = given(loader)
    following = given(loader)
    again = DataLoader(rows(), batch_size=3, shuffle=True, seed=5)
    list(again)
    passing = iter(again)
    next(passing), next(passing)
    state = again.state_dict()
    assert state == {"seed": 5, "epoch": 1, "position": 2}
    resumed = DataLoader(rows(), batch_size=3, shuffle=True, seed=5)
    resumed.load_state_dict(state)
    assert given(resumed) == whole[2:]
    assert resumed.state_dict() == {"seed": 5, "epoch": 2, "position": 0}
    assert given(resumed) == following


def test_a_state_of_another_seed_is_refused() -> None:
    loader = DataLoader(rows(), shuffle=True, seed=5)
    with pytest.raises(OptionError, match="of seed 6, this loader has 5"):
        loader.load_state_dict({"seed": 6, "epoch": 0, "position": 0})
    with pytest.raises(OptionError, match="no state of a DataLoader"):
        loader.load_state_dict({"epoch": 0})


def test_a_pass_that_was_left_early_leaves_nothing_behind() -> None:
    loader = DataLoader(rows(), batch_size=2)
    for _ in loader:
        break
    assert given(loader) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


def test_a_stream_is_cut_into_batches() -> None:
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(list(DataLoader(Stream(), batch_size=3, drop_last=True))) == 2
    with pytest.raises(DTypeError, match="has no length"):
        len(DataLoader(Stream()))


def test_without_a_batch_size_samples_come_one_by_one() -> None:
    assert [y.tolist() for _, y in DataLoader(rows(3), batch_size=None)] == [0, 1, 2]
    assert list(DataLoader(Stream(), batch_size=None)) == list(range(7))


def test_own_samplers_and_batches() -> None:
    assert given(DataLoader(rows(), batch_size=2, sampler=[4, 3, 9])) == [[4, 3], [9]]
    assert given(DataLoader(rows(), batch_sampler=[[1], [5, 2]])) == [[1], [5, 2]]


def test_containers_are_gone_through() -> None:
    numpy = pytest.importorskip("numpy")
    samples = [
        {"a": 1.5, "b": Pair(numpy.float32([i, 2]), f"n{i}"), "c": [True, b"x"], "d": (i,)}
        for i in range(2)
    ]
    [batch] = DataLoader(samples, batch_size=2)
    assert batch["a"].dtype is engine.float64
    assert isinstance(batch["b"], Pair)
    assert batch["b"].x.dtype is engine.float32 and batch["b"].x.tolist() == [[0, 2], [1, 2]]
    assert batch["b"].name == ("n0", "n1")
    assert batch["c"][0].dtype is engine.bool_ and batch["c"][1] == (b"x", b"x")
    assert batch["d"][0].dtype is engine.int64


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"sampler": [1], "shuffle": True},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"seed": 1, "generator": engine.Generator(2)},
    ],
)
def test_options_that_exclude_one_another_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        DataLoader(rows(), **options)


def test_a_stream_has_an_order_of_its_own() -> None:
    with pytest.raises(OptionError, match="takes no shuffle"):
        DataLoader(Stream(), shuffle=True)


def test_the_names_stand_in_the_package_and_load_the_loader_only_when_used() -> None:
    code = (
        "import sys, gradcli.data as d; assert d.__name__ + '.loader' not in sys.modules; d.Subset"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert data.DataLoader is DataLoader
    assert all(getattr(data, name) is getattr(loader, name) for name in loader.__all__)
    assert set(loader.__all__) <= set(data.__all__)
    with pytest.raises(AttributeError, match=r"gradcli\.data has no 'Loader'"):
        data.Loader  # noqa: B018
