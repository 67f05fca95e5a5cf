"""The CUDA driver under the real cuda-bindings and NVRTC, over the stand-in for libcuda.so.1."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

import cuda_standin

CASES: dict[str, dict[str, object]] = {
    "a_device_is_described": {},
    "what_is_written_is_read_back": {},
    "data_may_change_once_it_was_written": {},
    "many_writes_pass_through_the_ring_unmixed": {},
    "two_large_blocks_are_on_their_way_at_once": {},
    "small_writes_share_events": {},
    "a_slot_that_is_filled_too_early_is_seen": {},
    "a_read_that_waits_for_nothing_is_seen": {},
    "a_thread_without_the_context_is_refused": {},
    "memory_of_another_device_is_seen": {"devices": 2},
    "fresh_memory_holds_nan_and_copies_stay_on_the_device": {},
    "kernels_get_places_numbers_and_structs": {},
    "nothing_runs_before_somebody_waits": {},
    "a_replay_is_one_launch": {},
    "launches_and_replays_and_writes_keep_their_order": {},
    "a_graph_may_go_while_it_is_still_to_run": {},
    "memory_that_is_freed_serves_what_was_queued_before": {},
    "memory_that_was_freed_is_not_used_again": {},
    "memory_ends_with_a_sentence_and_the_device_goes_on": {"memory": 1_000_000},
    "a_launch_that_is_refused_names_its_kernel": {},
    "a_grid_that_is_too_high_is_refused": {},
    "a_kernel_that_fails_is_named": {},
    "of_several_kernels_all_are_named": {},
    "launches_that_block_tell_which_kernel_it_was": {"variables": {"CUDA_LAUNCH_BLOCKING": "1"}},
    "a_module_that_does_not_compile_says_where": {},
    "a_forked_child_has_no_device": {},
    "every_call_works_in_every_thread": {},
    "a_newer_device_gets_ptx_with_a_note": {"capability": "99.0"},
}
WITHOUT_POOLS = (
    "memory_that_is_freed_serves_what_was_queued_before",
    "memory_ends_with_a_sentence_and_the_device_goes_on",
)


@pytest.mark.parametrize("case", CASES)
def test_on_the_stand_in(case: str) -> None:
    done = cuda_standin.run("case", case, **CASES[case])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("case", WITHOUT_POOLS)
def test_on_a_device_without_memory_pools(case: str) -> None:
    done = cuda_standin.run("case", case, **CASES[case], pools=0)
    assert done.returncode == 0, done.stderr


def test_the_host_cannot_touch_device_memory() -> None:
    done = cuda_standin.run("case", "the_host_cannot_touch_device_memory")
    assert done.stdout == "reading\n"
    assert done.returncode == -signal.SIGSEGV


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"devices": 0}, "a GPU (none: CUDA_ERROR_NO_DEVICE); nvidia-smi lists"),
        ({"runtime": "nowhere.so"}, "a GPU (none: CUDA_ERROR_NOT_INITIALIZED)"),
    ],
)
def test_a_driver_without_a_gpu_is_told_apart_from_no_driver(
    settings: dict[str, object], expected: str
) -> None:
    done = cuda_standin.run("gradcli", "bench", "--device", "cuda", **settings)
    assert done.returncode == 4
    assert "libcuda.so.1 (for CUDA 13.0)" in done.stderr
    assert expected in done.stderr


def test_an_old_driver_is_told_what_fits_it() -> None:
    """Before anything is compiled that it would not load."""
    done = cuda_standin.run("gradcli", "gradcheck", "relu", "--device", "cuda", version=11040)
    assert done.returncode == 4
    assert "and NVIDIA's driver is one for CUDA 11.4; update it from https://" in done.stderr
