"""How many parts a batch has on several ranks, and where that is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import TinyData, TinySplit, tiny_job

from gradcli.engine import nn
from gradcli.errors import ConfigError
from gradcli.train.division import check_parts, divide_batches


def cut(ranks: int, size: int = 48, **settings: Any) -> tuple[Any, list[str]]:
    notes: list[str] = []
    norm = settings.pop("norm", None)
    job = tiny_job(settings=settings, dataset=TinyData({"train": TinySplit(size, 1)}))
    if norm is not None:
        job.model[1] = norm
    return divide_batches(job, ranks, notes.append), notes


@pytest.mark.parametrize(("batch", "ranks", "portion"), [(8, 2, 4), (8, 3, 3), (16, 16, 1)])
def test_the_ranks_choose_the_parts_where_the_config_does_not(
    batch: int, ranks: int, portion: int
) -> None:
    job, notes = cut(ranks, batch=batch)
    assert job.settings.micro_batch == job.resolved["train"]["micro_batch"] == portion
    assert notes == [
        f"{ranks} ranks, a part of the batch each: one rank gives the same bits with "
        f"-s train.micro_batch={portion}"
    ]


def test_a_config_that_says_so_and_one_rank_keep_what_they_have() -> None:
    job, notes = cut(2, batch=8, micro_batch=2)
    assert (job.settings.micro_batch, notes) == (2, [])
    job, notes = cut(1, batch=8)
    assert (job.settings.micro_batch, notes) == (None, [])


def test_ranks_that_have_less_to_do_are_named() -> None:
    _, notes = cut(3, batch=8, micro_batch=2)
    assert notes == [
        "4 parts of a batch on 3 ranks: 33% of their time is idle; train.micro_batch decides how "
        "many parts there are"
    ]


def test_a_sum_whose_bits_depend_on_the_ranks_is_named() -> None:
    _, notes = cut(2, batch=8, reduce="library")
    assert "same bits" not in notes[0]
    assert notes[1:] == [
        "train.reduce: library: the last bits of the weights depend on the number of ranks"
    ]
    assert cut(1, batch=8, reduce="library")[1] == []


def test_few_samples_under_batch_norm_are_a_warning() -> None:
    _, notes = cut(2, batch=8, norm=nn.BatchNorm1d(8))
    assert "warning: batch norm sees parts of 4 samples" in notes[-1]
    assert "group norm" in notes[-1]
    _, notes = cut(2, batch=32, norm=nn.BatchNorm1d(8))
    assert len(notes) == 1


def test_a_part_of_one_sample_under_batch_norm_is_refused() -> None:
    """45 = 5 x 8 + 5, and 5 = 4 + 1."""
    norm = nn.BatchNorm1d(8)
    with pytest.raises(ConfigError, match="1 sample has no variance for batch norm") as caught:
        cut(2, size=45, batch=8, norm=norm)
    assert caught.value.code == "E802"
    assert "batches have 8 samples, the last of an epoch 5" in caught.value.message
    cut(2, size=45, batch=8, norm=norm, drop_last=True)
    cut(2, size=48, batch=8, norm=norm)


def test_a_run_of_whole_batches_goes_on_with_one_rank_alone() -> None:
    job, _ = cut(1, batch=8)
    with pytest.raises(ConfigError, match="a batch of 8 samples is one part, and there are 2"):
        check_parts(job, 2, print)
