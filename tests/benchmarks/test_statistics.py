"""Medians of noisy chunks, and the verdicts drawn from them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benchmarks import probe, targets
from benchmarks.medians import Chunk, furthest, geometric_mean, percentile, summary


def test_a_percentile_lies_between_its_neighbours() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0, 5.0], 10) == pytest.approx(1.4)
    assert percentile([7.0], 10) == 7.0


def test_chunks_of_bad_moments_do_not_count() -> None:
    bad = [Chunk(9.0, "one core"), Chunk(8.0, "busy"), Chunk(8.0, "busy")]
    found = summary([*(Chunk(s) for s in (1.0, 2.0, 3.0)), *bad])
    assert (found.ms, found.kept, found.noisy) == (2000.0, 3, False)
    assert found.dropped == {"one core": 1, "busy": 2}


def test_without_good_chunks_all_count_and_the_row_is_noisy() -> None:
    found = summary([Chunk(1.0, "busy"), Chunk(2.0, "busy"), Chunk(3.0)])
    assert (found.ms, found.kept, found.noisy) == (2000.0, 1, True)


def test_a_chunk_is_crowded_when_it_waited_more_than_this_competitor_needs_to() -> None:
    waits_for_itself = [Chunk(1.0, waited=0.5), Chunk(1.0, waited=0.52), Chunk(4.0, waited=0.7)]
    assert summary([*waits_for_itself, Chunk(1.0, waited=0.5)]).dropped == {"crowded": 1}


def test_losses_are_compared_relative_to_the_reference() -> None:
    assert furthest([2.0, 1.01], [2.0, 1.0]) == pytest.approx(0.01)
    assert furthest([math.nan], [1.0]) == math.inf
    assert furthest([1.0], [1.0, 1.0]) == math.inf


def test_the_geometric_mean_of_two_and_eight_is_four() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("nanoseconds", "gflops", "fault"),
    [(30.0, 100.0, "one core"), (90.0, 100.0, ""), (380.0, 99.0, ""), (90.0, 60.0, "busy")],
)
def test_a_probe_names_the_placement(nanoseconds: float, gflops: float, fault: str) -> None:
    assert probe.fault(probe.Sight(nanoseconds, gflops), best=100.0) == fault


def test_a_probe_that_cannot_be_built_drops_nothing() -> None:
    assert probe.Probe(None, "no C compiler").look() == ""


def test_ratios_take_the_best_way_of_each_side() -> None:
    rows = {
        "gradcli eager": {"ms": 4.0},
        "gradcli captured": {"ms": 2.0},
        "gradcli scan": {"ms": 1.0},
        "torch eager": {"ms": 8.0},
        "torch compile": {"ms": 6.0},
        "jax scan": {"missing": "jax is not installed"},
    }
    found = targets.compare(rows)
    assert (found["torch"], found["torch_one_call"], found["jax"]) == (6.0, 3.0, None)
    assert not found["torch_doubtful"]


def test_a_ratio_of_disturbed_moments_is_doubtful() -> None:
    rows = {"gradcli scan": {"ms": 1.0}, "torch eager": {"ms": 8.0, "noisy": True}}
    found = targets.compare(rows)
    assert found["torch_doubtful"]
    assert not found["jax_doubtful"]
    assert "?" in targets.at_least("x", 2.0, 1.0, doubtful=True).sentence()


def test_who_trained_something_else_is_not_compared() -> None:
    rows = {"gradcli scan": {"ms": 1.0, "same_course": False}, "gradcli eager": {"ms": 4.0}}
    assert targets.best(rows, targets.OURS) == 4.0


def test_peak_memory_is_our_largest_against_their_smallest() -> None:
    rows = {
        "gradcli eager": {"peak_mib": 30.0},
        "gradcli scan": {"peak_mib": 50.0},
        "torch eager": {"peak_mib": 100.0},
        "torch compile": {"peak_mib": 200.0},
    }
    (found,) = targets.of_memory({"workloads": {"W5": rows}})
    assert (found.figure, found.passed) == (0.5, False)


def test_a_target_that_was_not_measured_neither_passes_nor_fails() -> None:
    assert targets.at_least("x", None, 2.0).passed is None
    assert targets.at_least("x", 2.0, 2.0).passed
    assert not targets.at_most("x", 3.0, 2.0).passed


def product(kernel: float, call: float, torch: float, numpy: float) -> dict[str, Any]:
    times = {"gradcli c": kernel, "gradcli captured": call, "torch": torch, "numpy": numpy}
    return {"rows": {name: {"ms": ms} for name, ms in times.items()}}


def test_the_kernel_and_a_call_of_it_are_judged_apart() -> None:
    found = {
        "shapes": {"1x2x3": product(1.0, 4.0, 2.0, 3.0), "4x5x6": product(2.0, 8.0, 9.0, 16.0)}
    }
    verdicts = targets.of_matmul(found)
    assert [(v.what.removeprefix("matmul, "), v.passed) for v in verdicts] == [
        ("the kernel, the worst shape (1x2x3)", True),
        ("the kernel, geometric mean", True),
        ("one captured call, the worst shape (1x2x3)", False),
        ("one captured call, geometric mean", False),
    ]
    assert [v.figure for v in verdicts] == pytest.approx([2.0, 3.0, 0.5, 0.75])


def test_a_call_that_took_no_part_leaves_the_kernel_judged() -> None:
    shape = product(1.0, 4.0, 2.0, 3.0)
    del shape["rows"]["gradcli captured"]
    verdicts = targets.of_matmul({"shapes": {"1x2x3": shape}})
    assert [v.passed for v in verdicts] == [True, True, None, None]
    assert verdicts[2].what == "matmul, one captured call, the worst shape"


def test_disturbed_calls_do_not_make_the_kernel_doubtful() -> None:
    shape = product(1.0, 4.0, 2.0, 3.0)
    shape["rows"]["gradcli captured"]["noisy"] = True
    verdicts = targets.of_matmul({"shapes": {"1x2x3": shape}})
    assert [v.doubtful for v in verdicts] == [False, False, True, True]
