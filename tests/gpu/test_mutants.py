"""The tests of kernels notice one barrier less, and one bound too loose: sampled, as each such
mutant has to be compiled; and a few errors of other kinds that a GPU may keep silent about.
GRADCLI_MUTANTS=all tries every one, =file.h those of a file."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from host_driver import HostDriver
from mutants import FOLDER, Mutant, all_mutants, files_of, mutants_of
from poked_calls import POKED
from settings import SETTINGS, under

from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import source
from gradcli.engine.device.gpu.launch import KernelModule
from gradcli.engine.kernelcheck import bounds
from gradcli.engine.kernelcheck.calls import CheckedCall
from gradcli.engine.kernelcheck.reference import reference
from gradcli.engine.kernelcheck.replay import Bench, difference, plan_of
from gradcli.errors import DeviceError

pytest_plugins = ("every_call",)  # the fixture `calls`

WANTED = os.environ.get("GRADCLI_MUTANTS", "")
SAMPLED = 20
# Always tried: a file, a place in it, and what stands there instead.
PLANTED = {
    "nobody waits for copies": ("tensor_tile.h", "COPIES_LEFT(SLICES - 2);", ";"),
    "lanes do not wait for each other": ("attention.gc", "WARP_SYNC();", ";"),
    "copies from addresses that are not aligned": ("tensor_tile.h", " && aligned16(from)", ""),
    "copies of lines that are not aligned": ("tensor_tile.h", " && apart % EACH_CHUNK == 0", ""),
    "lanes hold words of other lines": (
        "tensor_tile.h",
        "line_half = LINES_FIRST ? matrix % 2 : matrix / 2",
        "line_half = LINES_FIRST ? matrix / 2 : matrix % 2",
    ),
}
AT_ONCE = 2
SECONDS = 60  # a loop without an end is found out by this
# Of elementwise.gc, whose rows are all made by the same few macros.
ROWS = {"relu", "relu_backward", "floor", "neg", "add", "eq", "div", "div_backward_a", "bitwise_or"}


class MutantBench(Bench):
    """Runs calls with a mutant's text in the place of the file's."""

    def __init__(self, driver: HostDriver, mutant: Mutant) -> None:
        super().__init__(driver, whole=False)
        self.mutant = mutant

    def text(self, module: KernelModule) -> str:
        """The module's text, changed where the file is a part of it."""
        before = source.expanded
        source.expanded = self._expanded  # type: ignore[assignment]
        try:
            return super().text(module)
        finally:
            source.expanded = before

    def _expanded(self, path: source.Path) -> str:
        own = path == self.mutant.path
        text = self.mutant.text if own else path.read_text(encoding="utf-8")
        return source._INCLUDE.sub(
            lambda found: self._expanded((path.parent / found[1]).resolve()), text
        )


@dataclass
class Trial:
    """What a mutant is tried on."""

    mutant: Mutant
    first: list[CheckedCall] = field(default_factory=list)  # a few of each kernel
    rest: list[CheckedCall] = field(default_factory=list)

    def caught(self) -> str:
        """How a test notices, empty where none does."""
        driver = HostDriver()
        bench = MutantBench(driver, self.mutant)
        return self._by(bench, self.first) or self._by(bench, self.rest) or self._otherwise(bench)

    def _otherwise(self, bench: MutantBench) -> str:
        driver = bench.driver
        assert isinstance(driver, HostDriver)
        for setting in SETTINGS[1:]:
            with under(setting):
                found = self._by(bench, self.first)
            if found:
                return found
        for driver.order in ("scrambled", "reverse"):
            found = self._by(bench, self.first)
            if found:
                return found
        return ""

    @staticmethod
    def _by(bench: MutantBench, calls: Sequence[CheckedCall]) -> str:
        for call in calls:
            plan = plan_of(call)
            bound = bounds.bound(call.kernel, {one.module.family for one in plan.launches})
            want = reference(call, plan)
            try:
                found = bench.run(call)
            except (DeviceError, AssertionError) as error:
                return str(error)
            if (found.refusal is None) != (want.refusal is None):
                return f"{call}: refused {found.refusal}, not {want.refusal}"
            differs = "" if want.refusal else difference(found, want, bound)
            if differs:
                return f"{call}: {differs}"
        return ""


def chosen() -> list[Mutant]:
    every = all_mutants()
    if WANTED == "all":
        return every
    if WANTED:
        return [mutant for mutant in every if mutant.path.name == WANTED]
    return sorted(every, key=lambda mutant: mutant.rank)[:SAMPLED]


def by_family(calls: dict[str, list[CheckedCall]]) -> dict[str, dict[str, list[CheckedCall]]]:
    """Calls by the families of kernels that run them, and by kernel."""
    found: dict[str, dict[str, list[CheckedCall]]] = {}
    for kernel, listed in calls.items():
        for call in listed:
            families = {one.module.family for one in plan_of(call).launches}
            for family in families - ({"elementwise"} if kernel not in ROWS else set()):
                found.setdefault(family, {}).setdefault(kernel, []).append(call)
    return found


def spread(calls: Sequence[CheckedCall], count: int) -> list[CheckedCall]:
    """Some of the calls, from small ones to large ones."""
    ordered = sorted(calls, key=lambda call: sum(len(block.data) for block in call.blocks))
    step = max(1, len(ordered) // count)
    return ordered[::-step][:count]


def planted() -> list[Mutant]:
    """The errors that are always tried."""
    found = []
    for name, old, new in PLANTED.values():
        (path,) = FOLDER.rglob(name)
        begin = path.read_text(encoding="utf-8").index(old)
        found.append(Mutant(path, begin, begin + len(old), new))
    return found


def trials(calls: dict[str, list[CheckedCall]], mutants: Sequence[Mutant]) -> Iterator[Trial]:
    """What each mutant is tried on: a few calls of each kernel that its file is a part of first."""
    families = by_family(calls)
    for mutant in mutants:
        trial = Trial(mutant)
        for family in sorted(families):
            if mutant.path in files_of(family):
                for listed in families[family].values():
                    some = spread(listed, 6) + [call for call in listed if POKED in call.source]
                    trial.first += some
                    trial.rest += [call for call in listed if call not in some]
        yield trial


@dataclass
class Child:
    """A process of its own: a mutant may crash, or never end."""

    trial: Trial
    process: int
    pipe: int
    deadline: float
    said: bytes = b""


def started(trial: Trial) -> Child:
    """Try a mutant in a copy of this process."""
    readable, writable = os.pipe()
    with warnings.catch_warnings():
        # The kernels' threads are not copied, which is what Python warns of: one thread is used.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        os.close(writable)
        return Child(trial, process, readable, time.monotonic() + SECONDS)
    code = 1
    try:
        os.write(writable, trial.caught().encode()[:4000] or b"-")
        code = 0
    finally:
        os._exit(code)


def finished(children: list[Child]) -> Iterator[tuple[Mutant, str]]:
    """Wait for at least one of the processes; what each found, empty where it found nothing."""
    until = min(child.deadline for child in children) - time.monotonic()
    ready, _, _ = select.select([child.pipe for child in children], [], [], max(0.0, until))
    for child in list(children):
        late = time.monotonic() >= child.deadline
        if child.pipe not in ready and not late:
            continue
        said = os.read(child.pipe, 4096) if child.pipe in ready else b"it does not end"
        if late:
            os.kill(child.process, signal.SIGKILL)
        os.close(child.pipe)
        os.waitpid(child.process, 0)
        children.remove(child)
        text = said.decode(errors="replace") or "it crashes"
        yield child.trial.mutant, "" if text == "-" else text


def survivors(waiting: list[Trial]) -> list[str]:
    """The mutants that nothing notices."""
    running: list[Child] = []
    found: list[str] = []
    threads = cpu.threads()
    cpu.set_threads(1)
    assert all(trial.first for trial in waiting), "a file that no kernel is made of"
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(started(waiting.pop()))
            for mutant, how in finished(running):
                if not how:
                    found.append(str(mutant))
                if WANTED:
                    sys.stdout.write(f"{mutant}: {how[:200] or 'SURVIVES'}\n")
    finally:
        cpu.set_threads(threads)
        for child in running:
            os.kill(child.process, signal.SIGKILL)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied")
def test_mutants_are_caught(calls: dict[str, list[CheckedCall]]) -> None:
    mutants = chosen()
    found = survivors(list(trials(calls, mutants)))
    shown = "\n".join(found)
    assert len(found) <= 0.05 * len(mutants), (
        f"{len(found)} of {len(mutants)} are not noticed:\n{shown}"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied")
def test_planted_errors_are_caught(calls: dict[str, list[CheckedCall]]) -> None:
    assert survivors(list(trials(calls, planted()))) == []


def test_each_barrier_and_bound_makes_a_mutant() -> None:
    listed = {path.name: len(mutants_of(path)) for path in files_of("elementwise")}
    assert listed["walk.h"] >= 1
    names = {str(mutant).partition(":")[0] for mutant in all_mutants()}
    assert {"blocks.h", "tile.h", "walk.h"} <= names
