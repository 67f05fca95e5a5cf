"""HostDriver: a GPU driver over the host build of the kernels. Deterministic, strict and slow.

Nothing runs before somebody waits for it, fresh memory is 0xff, and with checks on each launch is
watched for accesses out of bounds, races, divergent barriers and incomplete collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import host_build
from host_build import HostModule, ffi

from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import source as sources
from gradcli.engine.device.gpu.driver import Address, Ready
from gradcli.errors import DeviceError

ORDERS = ("forward", "reverse", "scrambled")
_MOST_QUEUED = 4096
_KINDS = {"r": Address, "w": Address, "u": int, "i": int, "f": float, "s": bytes}
_WORDS = {
    "r": "an address",
    "w": "an address",
    "u": "a whole number",
    "i": "a whole number",
    "f": "a float",
    "s": "the bytes of a struct",
}


class HostMemory:
    """A block of memory that kernels may touch."""

    def __init__(self, data: Any, nbytes: int) -> None:
        self.data = data
        self.nbytes = nbytes


class HostDriver:
    """Implements gradcli.engine.device.gpu.driver.Driver.

    Attributes:
        order: in which blocks and threads run; see ORDERS.
        races: whether races and reads of unset shared memory are looked for.
        prelude: stands before the modules' texts, prelude_cuda.h unless a test changes it.
    """

    def __init__(
        self,
        name: str = "cuda",
        *,
        checked: bool = True,
        order: str = "forward",
        races: bool = True,
        memory: int = 1 << 32,
        prelude: str = "",
    ) -> None:
        self.name = name
        self.target = "cuda"
        self.tensor_cores = True
        self.checked = checked
        self.order = order
        self.races = races
        self.prelude = prelude or sources.prelude_text(self.target)
        self._memory = memory
        self._held = 0
        self._modules: dict[str, HostModule] = {}
        self._queue: list[Callable[[], None]] = []
        self._library = host_build.runtime()

    def describe(self) -> str:
        """The device in words."""
        return f"kernels on the CPU, for tests ({self._memory >> 20} MiB)"

    def product(self) -> str:
        """What its maker calls it."""
        return "kernels on the CPU"

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> HostMemory:
        """Fresh memory, full of 0xff."""
        free = self._memory - self._held
        data = self._library.gc_host_allocate(nbytes) if nbytes <= free else ffi.NULL
        if data == ffi.NULL:
            raise DeviceError(f"no memory for {nbytes:,} bytes on {self.name}; free: {free:,}")
        self._held += nbytes
        return HostMemory(data, nbytes)

    def free(self, handle: HostMemory) -> None:
        """Give memory back, after what is queued."""

        def give_back() -> None:
            self._library.gc_host_free(handle.data)
            handle.data = ffi.NULL
            self._held -= handle.nbytes

        self._later(give_back)

    def trim(self) -> None:
        """Free what was freed in the queue's order."""
        self.synchronize()

    def free_memory(self) -> int:
        """Bytes that could still be allocated."""
        return self._memory - self._held

    def pinned(self, nbytes: int) -> Any:
        """Memory of the host."""
        return cpu.allocate(nbytes).data

    def write(self, address: Address, data: bytes | memoryview) -> None:
        """Queue a copy of what `data` holds now."""
        held = bytes(data)
        self._later(lambda: ffi.memmove(self._at(address, len(held)), held, len(held)))

    def stage(self, nbytes: int) -> None:
        """Any number of writes is on its way already."""

    def at_work(self) -> bool:
        """Whether anything is queued."""
        return bool(self._queue)

    def read(self, address: Address, into: memoryview) -> None:
        """Copy to the host, after everything queued."""
        self.synchronize()
        ffi.memmove(into, self._at(address, into.nbytes), into.nbytes)

    def copy(self, to: Address, source: Address, nbytes: int) -> None:
        """Queue a copy within the device."""
        self._later(lambda: ffi.memmove(self._at(to, nbytes), self._at(source, nbytes), nbytes))

    @staticmethod
    def _at(address: Address, nbytes: int) -> Any:
        memory: HostMemory = address.handle
        assert memory.data != ffi.NULL, "this block was freed"
        assert 0 <= address.offset <= address.offset + nbytes <= memory.nbytes, (
            address.offset,
            nbytes,
        )
        return ffi.cast("char *", memory.data) + address.offset

    # -- kernels -------------------------------------------------------------------------------

    def load(self, key: str, source: str) -> None:
        """Compile a module for the host."""
        theirs = sources.prelude_text(self.target)
        assert source.startswith(theirs), "a module's text begins with the target's prelude"
        text = source.removeprefix(theirs)
        path = host_build.module_path(key, text, self.checked, self.prelude)
        self._modules[key] = HostModule(path)

    def kernels(self, key: str) -> list[str]:
        """The names of a module's kernels."""
        return list(self._modules[key].kernels)

    def launch(self, ready: Ready) -> None:
        """Queue one launch; its arguments are looked at now."""
        self._later(self._prepared(ready))

    def record(self, listed: Sequence[Ready]) -> HostReplay:
        """Launches that can be queued again and again."""
        return HostReplay(self, [self._prepared(ready) for ready in listed])

    def queue(self, work: Sequence[Callable[[], None]]) -> None:
        """Queue work that was prepared."""
        for one in work:
            self._later(one)

    def synchronize(self) -> None:
        """Do everything queued; raises DeviceError that names the kernel that failed."""
        queue, self._queue = self._queue, []
        for one in queue:
            one()

    def _later(self, work: Callable[[], Any]) -> None:
        self._queue.append(work)
        if len(self._queue) >= _MOST_QUEUED:
            self.synchronize()

    def _prepared(self, ready: Ready) -> Callable[[], None]:
        """A launch as something to do; refuses arguments that do not fit the kernel's parameters.

        Pointers are made only when it runs, as memory is freed in the queue's order too.
        """
        kernel = self._modules[ready.module].kernels.get(ready.kernel)
        if kernel is None:
            raise DeviceError(f"module {ready.module} has no kernel {ready.kernel}")
        parameters = kernel.parameters[0 : kernel.nparameters]
        if len(parameters) != len(ready.args):
            raise DeviceError(
                f"{ready.kernel}: {len(ready.args)} arguments for {len(parameters)} parameters"
            )
        for number, (parameter, arg) in enumerate(zip(parameters, ready.args, strict=True)):
            check_argument(ready.kernel, number, parameter, arg)

        def run() -> None:
            slots = [self._slot(arg) for arg in ready.args]
            listed = ffi.new("void *[]", [ffi.cast("void *", slot) for slot in slots] or 1)
            self._library.gc_host_configure(ORDERS.index(self.order), self.races)
            if self._library.gc_host_launch(kernel, listed, *ready.grid, ready.threads):
                raise DeviceError(ffi.string(self._library.gc_host_error()).decode())

        return run

    def _slot(self, arg: Address | float | bytes) -> Any:
        if isinstance(arg, Address):
            return ffi.new("char **", self._at(arg, 0))
        if isinstance(arg, bytes):
            return ffi.new("char[]", arg)
        return ffi.new("float *" if isinstance(arg, float) else "unsigned int *", arg)


class HostReplay:
    """Implements gradcli.engine.device.gpu.driver.Replayable."""

    def __init__(self, driver: HostDriver, work: Sequence[Callable[[], None]]) -> None:
        self._driver = driver
        self._work = work

    def replay(self) -> None:
        """Queue all of them."""
        self._driver.queue(self._work)


def check_argument(kernel: str, number: int, parameter: Any, arg: object) -> None:
    """Refuse an argument that is not what a kernel's parameter takes."""
    kind = parameter.kind.decode()
    fits = isinstance(arg, _KINDS[kind]) and not isinstance(arg, bool)
    if fits and isinstance(arg, bytes):
        fits = len(arg) == parameter.size
    if fits and isinstance(arg, int):
        fits = 0 <= arg < 1 << 32
    if not fits:
        shown = f"{len(arg)} bytes" if isinstance(arg, bytes) else repr(arg)
        raise DeviceError(
            f"{kernel}: parameter {number} takes {_WORDS[kind]} of {parameter.size} bytes, "
            f"got {shown}"
        )
