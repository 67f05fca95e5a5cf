"""Every GPU kernel, on every call that the engine's own samples make of it: a new launcher needs
no new test. Kernels run on the CPU here (tests/standin/host), as prelude_cuda.h itself has them,
with each access watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from host_driver import HostDriver
from missing import CPU_ONLY, MISSING
from settings import SETTINGS, under

from gradcli.engine.device import cpu
from gradcli.engine.device.gpu.launch import LAUNCHERS, LaunchList
from gradcli.engine.device.gpu.source import families
from gradcli.engine.kernelcheck import bounds
from gradcli.engine.kernelcheck.calls import CheckedCall
from gradcli.engine.kernelcheck.reference import on_tensor_cores, reference
from gradcli.engine.kernelcheck.replay import Bench, Outcome, difference, plan_of

pytest_plugins = ("every_call",)  # the fixture `calls`


@pytest.fixture(scope="module")
def driver() -> HostDriver:
    return HostDriver()


@pytest.fixture(scope="module")
def bench(driver: HostDriver) -> Bench:
    return Bench(driver)


def other_orders(
    call: CheckedCall, driver: HostDriver, bench: Bench
) -> Iterator[tuple[str, Outcome]]:
    """The call in other orders of its threads, which must not matter for a bit."""
    for order in ("reverse", "scrambled"):
        driver.order = order
        yield order, bench.run(call)
    driver.order = "forward"


def held_against_the_cpu(call: CheckedCall, driver: HostDriver, bench: Bench) -> None:
    """The call under every setting that changes its launches, in three orders of threads."""
    where = f"{call}, made by {call.source}"
    seen: list[LaunchList] = []
    wanted_of: dict[bool, Outcome] = {}
    for setting in SETTINGS:
        with under(setting):
            plan = plan_of(call)
            if plan in seen:
                continue
            seen.append(plan)
            rounds = on_tensor_cores(plan)
            if rounds not in wanted_of:
                wanted_of[rounds] = reference(call, plan)
            want = wanted_of[rounds]
            found = bench.run(call)
            assert (found.refusal is None) == (want.refusal is None), (where, want.refusal)
            if found.refusal is not None and want.refusal is not None:
                limit = want.refusal[2]
                assert limit >= 1 << 31 or found.refusal[2] == limit, f"{where}: another limit"
                continue
            bound = bounds.bound(call.kernel, {one.module.family for one in plan.launches})
            assert difference(found, want, bound) == "", where
            for order, other in other_orders(call, driver, bench):
                assert other.blocks == found.blocks, f"{where}: other bits in {order} order"


@pytest.mark.parametrize("kernel", sorted(LAUNCHERS))
def test_kernel_equals_float64_on_the_cpu(
    kernel: str, calls: dict[str, list[CheckedCall]], driver: HostDriver, bench: Bench
) -> None:
    assert calls.get(kernel), "no sample of any op calls this kernel"
    driver.order = "forward"
    for call in calls[kernel]:
        held_against_the_cpu(call, driver, bench)


def test_every_kernel_of_a_family_is_launched(
    calls: dict[str, list[CheckedCall]], driver: HostDriver, bench: Bench
) -> None:
    launched: dict[tuple[str, str], set[str]] = {}
    there: dict[tuple[str, str], set[str]] = {}
    for setting in SETTINGS:
        with under(setting):
            for listed in calls.values():
                for one in (one for call in listed for one in plan_of(call).launches):
                    family = one.module.family, one.module.dtype
                    launched.setdefault(family, set()).add(one.kernel)
                    there[family] = set(driver.kernels(bench.module(one.module)))
    never = {
        family: found for family, kernels in launched.items() if (found := there[family] - kernels)
    }
    assert never == {}
    assert {family for family, _ in launched} == set(families())


def test_what_is_missing_is_listed() -> None:
    assert set(cpu.KERNELS) - set(LAUNCHERS) - CPU_ONLY == set().union(*MISSING.values())


def test_families_that_are_whole_are_not_listed() -> None:
    assert all(MISSING.values())


def test_bounds_are_of_kernels_that_exist() -> None:
    assert set(bounds.FAMILIES) <= set(families())
    assert set(bounds.SLOPES) <= set(cpu.KERNELS)
