"""Every GPU kernel, on every call that the engine's own samples make of it: a new launcher needs
no new test. Kernels run on the CPU here (tests/standin/host), with each access watched."""

from __future__ import annotations

import re
from collections.abc import Iterator

import bounds
import pytest
from calls import Call
from host_build import HOST
from host_driver import HostDriver
from missing import CPU_ONLY, MISSING
from other_calls import other_calls
from replayed import Bench, Outcome, difference, on_cpu, plan_of
from sampled_calls import sampled_calls

from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import launch
from gradcli.engine.device.gpu.launch import LAUNCHERS
from gradcli.engine.device.gpu.source import families, prelude_text


@pytest.fixture(scope="module")
def calls() -> dict[str, list[Call]]:
    """All calls to be tried, by kernel."""
    found: dict[str, list[Call]] = {}
    for some in (sampled_calls(LAUNCHERS.__contains__), other_calls(LAUNCHERS.__contains__)):
        for kernel, listed in some.items():
            found.setdefault(kernel, []).extend(listed)
    for kernel in bounds.DRAWS & set(found):  # float64 draws other numbers, and never on a GPU
        found[kernel] = [
            call
            for call in found[kernel]
            if all(one.dtype.name != "float64" for one in call.tensors)
        ]
    return found


@pytest.fixture(scope="module")
def driver() -> HostDriver:
    return HostDriver()


@pytest.fixture(scope="module")
def bench(driver: HostDriver) -> Bench:
    return Bench(driver)


def other_orders(call: Call, driver: HostDriver, bench: Bench) -> Iterator[tuple[str, Outcome]]:
    """The call in other orders of its threads, which must not matter for a bit."""
    for order in ("reverse", "scrambled"):
        driver.order = order
        yield order, bench.run(call)
    driver.order = "forward"


@pytest.mark.parametrize("kernel", sorted(LAUNCHERS))
def test_kernel_equals_float64_on_the_cpu(
    kernel: str,
    calls: dict[str, list[Call]],
    driver: HostDriver,
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert calls.get(kernel), "no sample of any op calls this kernel"
    driver.order = "forward"
    for call in calls[kernel]:
        plan = plan_of(call)
        bound = bounds.bound(kernel, {one.module.family for one in plan.launches})
        wanted = on_cpu(call, in_float64=kernel not in bounds.DRAWS)
        found = bench.run(call)
        where = f"{call}, made by {call.source}"
        assert (found.refused is None) == (wanted.refused is None), (where, wanted.refused)
        if found.refused is None:
            assert difference(found, wanted, bound) == "", where
            for order, other in other_orders(call, driver, bench):
                assert other.blocks == found.blocks, f"{where}: other bits in {order} order"
        with monkeypatch.context() as patched:
            # Few blocks, so that the loops over a grid turn more than once.
            patched.setattr(launch, "MOST_BLOCKS", 2)
            if plan_of(call) != plan and found.refused is None:
                assert difference(bench.run(call), wanted, bound) == "", where


def test_what_is_missing_is_listed() -> None:
    assert set(cpu.KERNELS) - set(LAUNCHERS) - CPU_ONLY == set().union(*MISSING.values())


def test_families_that_are_whole_are_not_listed() -> None:
    assert all(MISSING.values())


def test_bounds_are_of_kernels_that_exist() -> None:
    assert set(bounds.FAMILIES) <= set(families())
    assert set(bounds.KERNELS) | bounds.DRAWS <= set(cpu.KERNELS)


def names(prelude: str) -> set[str]:
    """What a prelude defines."""
    text = re.sub(r"/\*.*?\*/", "", prelude, flags=re.DOTALL)
    macros = re.findall(r"^#define (\w+)", text, re.MULTILINE)
    functions = re.findall(r"^FN \w+ (\w+)\(", text, re.MULTILINE)
    maths = re.findall(r"^PRELUDE_MATHS\((\w+),", text, re.MULTILINE)
    return {*macros, *functions, *maths}


def test_the_host_has_every_name_of_the_preludes() -> None:
    theirs = names(prelude_text("cuda"))
    given_by_c = {"INFINITY", "NAN"}
    own_business = {"ALL_LANES"}
    ours = names((HOST / "prelude_host.h").read_text(encoding="utf-8"))
    assert theirs - given_by_c - own_business - ours == set()
