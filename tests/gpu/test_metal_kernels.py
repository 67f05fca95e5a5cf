"""Every kernel as MSL, under the Metal driver: the same bits as from the host's own build of it."""

from __future__ import annotations

import metal_standin
import pytest
from calls import Call
from host_driver import HostDriver
from other_calls import other_calls
from replayed import Bench
from sampled_calls import sampled_calls

from gradcli.engine.device.gpu.launch import LAUNCHERS
from gradcli.engine.device.gpu.metal import Metal

assert metal_standin  # what the driver imports
MOST = 6  # calls of a kernel; tests/gpu/test_kernels.py tries all of them


@pytest.fixture(scope="module")
def calls() -> dict[str, list[Call]]:
    found = sampled_calls(LAUNCHERS.__contains__)
    for kernel, listed in other_calls(LAUNCHERS.__contains__).items():
        found.setdefault(kernel, []).extend(listed)
    return found


@pytest.fixture(scope="module")
def metal() -> Bench:
    return Bench(Metal())


@pytest.fixture(scope="module")
def host() -> Bench:
    driver = HostDriver(checked=False)
    driver.tensor_cores = False  # as Metal
    return Bench(driver)


@pytest.mark.parametrize("kernel", sorted(LAUNCHERS))
def test_a_kernel_gives_the_bits_of_the_host(
    kernel: str, calls: dict[str, list[Call]], metal: Bench, host: Bench
) -> None:
    listed = calls[kernel]
    for call in listed[:: max(1, len(listed) // MOST)]:
        found, wanted = metal.run(call), host.run(call)
        assert (found.refused, found.blocks) == (wanted.refused, wanted.blocks), call
