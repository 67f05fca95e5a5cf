"""What doctor runs beside ops: of all known calls a few that launch every kernel.

Each is held against the CPU in float64, and launched once more as a recorded graph, which must give
the same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.device.gpu.driver import Driver, Ready, Replayable
from gradcli.engine.device.gpu.entries import kernels_of
from gradcli.engine.device.gpu.launch import LAUNCHERS, KernelModule
from gradcli.engine.device.gpu.source import module_text, prelude_text
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.kernelcheck import bounds
from gradcli.engine.kernelcheck.calls import CheckedCall
from gradcli.engine.kernelcheck.halves import halved_calls
from gradcli.engine.kernelcheck.large import large_calls
from gradcli.engine.kernelcheck.others import other_calls
from gradcli.engine.kernelcheck.reference import reference
from gradcli.engine.kernelcheck.replay import Bench, difference, plan_of
from gradcli.engine.kernelcheck.samples import plain_calls
from gradcli.errors import DeviceError

EACH = 2  # calls of every kernel


class Launched:
    """A driver that notes which kernels it launches; all else is the driver's."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.kernels: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def launch(self, ready: Ready) -> None:
        """Queue one launch."""
        self.kernels.add(ready.kernel)
        self._driver.launch(ready)

    def record(self, launches: Sequence[Ready]) -> Replayable:
        """Make launches ready; that they will run is what they are recorded for."""
        self.kernels.update(ready.kernel for ready in launches)
        return self._driver.record(launches)


@contextmanager
def counting(gpu: GPU) -> Iterator[set[str]]:
    """The kernels that a device launches inside a `with` block."""
    driver = gpu.driver
    counter = Launched(driver)
    gpu.driver = counter
    try:
        yield counter.kernels
    finally:
        gpu.driver = driver


class DeviceBench(Bench):
    """Runs calls on an opened device, with the modules that it has."""

    def __init__(self, gpu: GPU) -> None:
        super().__init__(gpu.driver, whole=False)
        self.gpu = gpu

    def module(self, module: KernelModule) -> str:
        """The key of a module, which is loaded when it is first asked for."""
        if module not in self.gpu.loaded:
            text = module_text(module, prelude_text(self.driver.target))
            self.driver.load(str(module), text)
            self.gpu.loaded.add(module)
        return str(module)


def chosen_calls(*, tensor_cores: bool) -> list[CheckedCall]:
    """Of all known calls as few as launch every kernel twice."""
    counts: Counter[str] = Counter()
    calls = []
    for call in _every_call():
        kernels = {launch.kernel for launch in plan_of(call, tensor_cores=tensor_cores).launches}
        if any(counts[kernel] < EACH for kernel in kernels):
            counts.update(kernels)
            calls.append(call)
    return calls


def _every_call() -> Iterator[CheckedCall]:
    """All known calls, large ones first: `chosen_calls` takes the first of each kernel."""
    for collect in (large_calls, other_calls, plain_calls):
        for calls in collect(LAUNCHERS.__contains__).values():
            for call in (*calls, *halved_calls(calls)):
                # What is drawn in float64 is drawn by no GPU.
                if not (FACTS[call.kernel].draws and call.has_float64):
                    yield call


def check_call(call: CheckedCall, bench: DeviceBench) -> str:
    """How a device's outcome of a call is not the CPU's; empty where it is."""
    plan = plan_of(call, tensor_cores=bench.driver.tensor_cores)
    want = reference(call, plan)
    outcome = bench.run(call)
    if (outcome.refusal is None) != (want.refusal is None):
        return f"refused {outcome.refusal} instead of {want.refusal}"
    bound = bounds.bound(call.kernel, {launch.module.family for launch in plan.launches})
    reason = "" if want.refusal else difference(outcome, want, bound)
    if not reason and bench.run(call, recorded=True).blocks != outcome.blocks:
        return "a recorded graph gives other bits"
    return reason


def check_calls(gpu: GPU) -> tuple[int, list[str]]:
    """How many calls were tried, and what was wrong with them."""
    bench = DeviceBench(gpu)
    calls = chosen_calls(tensor_cores=gpu.driver.tensor_cores)
    failed = []
    for call in calls:
        try:
            reason = check_call(call, bench)
        except DeviceError as error:
            raise DeviceError(f"{call}: {error.message}", notes=error.notes) from error
        if reason:
            failed.append(f"{call}, as in {call.source}: {reason}")
    return len(calls), failed


def kernels_there(gpu: GPU) -> set[str]:
    """The kernels of all modules that a device has loaded."""
    return {kernel for module in gpu.loaded for kernel in kernels_of(module)}
