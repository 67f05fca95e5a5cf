"""A function of Python in a step on a GPU, over the host build of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import outside_cases
import pytest
from on_host import gpu as gpu

from gradcli import engine
from gradcli.engine import outside
from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.distributed import ALONE, Sum
from gradcli.errors import RangeError


@pytest.mark.parametrize("check", [outside_cases.check_bits, outside_cases.check_failure])
def test_a_step_calls_a_function_of_python(gpu: GPU, check: Callable[[str], None]) -> None:
    check("cuda")


def test_a_tensor_has_one_place_on_the_host(gpu: GPU) -> None:
    x = engine.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).to("cuda")
    column, all_of_it = outside.host(x[:, 1]), outside.host(x)
    assert all_of_it.device == column.device == "cpu"
    assert outside.host(all_of_it) is all_of_it
    outside.call(lambda: all_of_it.mul_(10), [x], [])  # an input stays as it was
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    outside.call(lambda: column.add_(0.5), [], [x[:, 1]])  # no input comes to the host
    assert x.tolist() == [[1.0, 20.5, 30.0], [40.0, 50.5, 6.0]]


def test_a_refused_value_is_found_before_the_function(gpu: GPU) -> None:
    """Kernels behind the function see nothing of a step that was refused."""
    table, row = engine.rand(4, 3).to("cuda"), engine.zeros(1, 3).to("cuda")
    total, calls = engine.zeros(1, 3).to("cuda"), list[int]()

    def count() -> None:
        calls.append(1)

    def counted(index: Any) -> Any:
        row.copy_(engine.nn.functional.embedding(index, table))
        outside.call(count, [row], [row])
        total.add_(row)
        return total

    captured = engine.capture(counted, on_fallback=outside_cases.refuse)
    steps = captured.steps(engine.tensor([[0], [1], [2], [7], [3]]).to("cuda"))
    assert steps.done == 3
    assert isinstance(steps.error, RangeError)
    assert len(calls) == 3
    assert total.cpu().tolist() == [(table[0] + table[1] + table[2]).tolist()]


def test_a_function_that_shares_memory_with_the_cpus_part_stays_eager(gpu: GPU) -> None:
    """The CPU's part of a step runs before all the rest."""
    x, count = engine.ones(3).to("cuda"), engine.zeros(1)
    why: list[str] = []

    def add() -> None:
        count.add_(1)

    def step() -> Any:
        outside.call(add, [], [count])
        count.mul_(2)
        x.add_(1)
        return x

    captured = engine.capture(step, on_fallback=why.append)
    for _ in range(4):
        captured()
    assert "add' and kernels use the same memory of the CPU" in why[0]
    assert count.tolist() == [30.0]


def test_a_sum_over_ranks_takes_rows_of_a_device(gpu: GPU) -> None:
    """It adds on the host, where the rows come once a step."""
    total = engine.zeros(6).to("cuda")
    one = Sum(3, 6, group=ALONE, device="cuda")
    fetched: list[str] = []
    fetch = gpu.driver.read

    def read(address: Any, into: memoryview) -> None:
        if into.nbytes == 24:
            fetched.append(address.handle)
        fetch(address, into)

    def step(x: Any) -> Any:
        one.source[0].copy_(x * 2)
        one.sum()
        total.add_(one.out)
        return one.out * 3

    captured = engine.capture(step, on_fallback=outside_cases.refuse)
    rows = engine.rand(4, 6)
    captured.scan(rows[:2].to("cuda"))
    gpu.driver.read = read
    given = captured.scan(rows.to("cuda"))
    assert (one.count, len(fetched)) == (2 + 4, 4)
    assert given.cpu().tolist() == (rows * 6).tolist()
