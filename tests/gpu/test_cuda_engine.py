"""The engine on CUDA's driver, over the stand-in for libcuda.so.1: memory and captured steps."""

from __future__ import annotations

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

import cuda_standin

CASES: dict[str, dict[str, object]] = {
    "the_engine_computes_on_it": {},
    "a_captured_step_is_one_launch": {},
    "a_function_of_python_cuts_it_in_two": {"variables": {"STANDIN_CUDA_CHECKED": "0"}},
    "pinned_memory_goes_back": {},
    "memory_that_nobody_uses_goes_back_to_the_driver": {},
    "a_captured_step_holds_its_memory_once": {},
    "threads_compute_at_the_same_time": {"variables": {"STANDIN_CUDA_CHECKED": "0"}},
    "memory_may_go_while_python_ends": {},
    "each_of_two_devices_computes_with_its_own_memory": {"devices": 2},
    "tensors_of_two_devices_do_not_meet": {"devices": 2},
    "a_model_is_trained_on_the_second_device": {"devices": 2},
    "a_step_over_two_devices_stays_eager": {"devices": 2},
    "a_device_that_is_not_there_is_refused": {"devices": 2},
}


@pytest.mark.parametrize("case", CASES)
def test_on_the_stand_in(case: str) -> None:
    done = cuda_standin.run("case", case, **CASES[case])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_memory_goes_back_where_there_are_no_pools() -> None:
    case = "memory_that_nobody_uses_goes_back_to_the_driver"
    done = cuda_standin.run("case", case, pools=0)
    assert done.returncode == 0, done.stderr
