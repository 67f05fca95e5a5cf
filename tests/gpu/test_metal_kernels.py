"""Every kernel as MSL, under the Metal driver: the same bits as from the host's own build of it."""

from __future__ import annotations

from array import array

import metal_standin
import pytest
from host_driver import HostDriver

from gradcli.engine.device.gpu.launch import LAUNCHERS
from gradcli.engine.device.gpu.metal import Metal
from gradcli.engine.kernelcheck.calls import CheckedCall
from gradcli.engine.kernelcheck.others import other_calls
from gradcli.engine.kernelcheck.replay import Bench, Outcome
from gradcli.engine.kernelcheck.samples import sampled_calls

assert metal_standin  # what the driver imports
MOST = 6  # calls of a kernel; tests/gpu/test_kernels.py tries all of them


@pytest.fixture(scope="module")
def calls() -> dict[str, list[CheckedCall]]:
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


def plain(outcome: Outcome) -> list[bytes]:
    """The memory of an outcome with one NaN for all: CUDA's and Metal's have other bits."""
    floats = {"float32": ("I", 0x7F800000), "bfloat16": ("H", 0x7F80)}
    found = []
    for data, dtype in zip(outcome.blocks, outcome.types, strict=True):
        if dtype.name in floats:
            code, infinite = floats[dtype.name]
            one = array(code, data)
            most = (1 << 8 * one.itemsize - 1) - 1
            data = array(code, (most if x & most > infinite else x for x in one)).tobytes()
        found.append(data)
    return found


@pytest.mark.parametrize("kernel", sorted(LAUNCHERS))
def test_a_kernel_gives_the_bits_of_the_host(
    kernel: str, calls: dict[str, list[CheckedCall]], metal: Bench, host: Bench
) -> None:
    listed = calls[kernel]
    for call in listed[:: max(1, len(listed) // MOST)]:
        found, wanted = metal.run(call), host.run(call)
        assert (found.refusal, plain(found)) == (wanted.refusal, plain(wanted)), call
