from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.loader import (
    ConcatDataset,
    Dataset,
    SplitDataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)
from gradcli.data.prepared.mapped import map_file
from gradcli.data.samples import Samples
from gradcli.errors import DataError, DTypeError, OptionError, RangeError, ShapeError


class Squares(Dataset[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __getitem__(self, index: int) -> int:
        return index * index

    def __len__(self) -> int:
        return self.size


def test_tensors_give_their_rows() -> None:
    data = TensorDataset(engine.arange(6).reshape(3, 2), engine.tensor([7, 8, 9]))
    assert len(data) == 3
    x, y = data[-1]
    assert (x.tolist(), y.item()) == ([4, 5], 9)


def test_tensors_of_other_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"one length, got shapes \(3,\), \(2,\)"):
        TensorDataset(engine.zeros(3), engine.zeros(2))


def test_datasets_follow_each_other() -> None:
    both = Squares(3) + Squares(1) + ConcatDataset([Squares(2)])
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 0, 0, 1]
    assert both[-3] == 0 and both[-4] == 4
    with pytest.raises(RangeError, match="index 6 of 6"):
        both[6]


def test_a_subset_takes_what_it_is_told() -> None:
    part = Subset(Squares(9), [8, 2])
    assert (len(part), part[0], part[1]) == (2, 64, 4)


def test_a_random_split_is_a_partition_that_the_generator_fixes() -> None:
    parts = [
        random_split(Squares(10), [7, 3], generator=engine.Generator(4))[0].indices
        for _ in range(2)
    ]
    assert parts[0] == parts[1] and len(parts[0]) == 7
    whole = random_split(Squares(10), [7, 3], generator=engine.Generator(5))
    assert sorted([*whole[0].indices, *whole[1].indices]) == list(range(10))


def test_fractions_leave_their_rest_to_the_first_parts() -> None:
    parts = random_split(Squares(10), [0.33, 0.33, 0.34])
    assert [len(part) for part in parts] == [4, 3, 3]
    assert [len(part) for part in random_split(Squares(4), [0.5, 0.5])] == [2, 2]


@pytest.mark.parametrize("lengths", [[5, 4], [0.5, 0.6], [-1, 11], [], [2.5, 7.5]])
def test_lengths_that_do_not_add_up_are_refused(lengths: Any) -> None:
    with pytest.raises(OptionError, match="random_split: "):
        random_split(Squares(10), lengths)


def test_a_split_of_a_config_is_a_dataset() -> None:
    images = engine.tensor([[0, 51], [102, 255], [1, 2]], dtype=engine.uint8)
    data = SplitDataset(Samples(images, engine.tensor([3, 4, 5]), 255.0))
    inputs, target = data[-2]
    assert inputs.tolist() == engine.tensor([102.0, 255.0]).div(255).tolist()
    assert target.item() == 4
    with pytest.raises(RangeError, match="index 3 of 3"):
        data[3]


def test_zeros_of_a_file_that_was_cut_off_are_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "pixels"
    path.write_bytes(bytes([7]) * 40_000)
    pixels = map_file(path, engine.uint8, (40_000, 1), 0)
    data = SplitDataset(Samples(pixels, engine.zeros(40_000, dtype=engine.int64)))
    assert data[39_999][0].item() == 7
    os.truncate(path, 100)
    with pytest.raises(DataError, match="pixels' was changed while it was in use"):
        data[39_999]


def test_a_sample_without_a_rule_needs_a_collate_fn() -> None:
    with pytest.raises(DTypeError, match="got object; give DataLoader a collate_fn"):
        default_collate([object()])


def test_many_samples_at_once_are_the_samples_one_by_one() -> None:
    data = TensorDataset(engine.arange(12).reshape(4, 3), engine.tensor([7, 8, 9, 6]))
    for many in (data, Subset(data, [3, 0, 2]), Subset(Subset(data, [1, 2]), [1, 0])):
        wanted = default_collate([many[i] for i in (1, 0, -1)])
        found = default_collate(many.__getitems__([1, 0, -1]))
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
    with pytest.raises(RangeError, match="TensorDataset: index 4 of 4 samples"):
        data.__getitems__([4])


def test_tensors_of_other_shapes_make_no_batch() -> None:
    with pytest.raises(ShapeError, match=r"one shape and type, got int64 \(2,\), int64 \(3,\)"):
        default_collate([engine.arange(3), engine.arange(2)])
    views = [engine.arange(6).reshape(2, 3).t()[1:], engine.zeros(2, 2, dtype=engine.int64)]
    assert default_collate(views).tolist() == engine.stack(views).tolist()
    assert default_collate([engine.zeros(0, 3)] * 2).shape == (2, 0, 3)


def test_samples_of_other_lengths_make_no_batch() -> None:
    with pytest.raises(ShapeError, match=r"samples of \[1, 2\] parts"):
        default_collate([(1,), (1, 2)])
