"""A kernel call as launches: which kernels of which module run it, on how many blocks.

Each family of kernels has a file beside this one with a function for each kind of call. It is given
the call's shapes, sizes and options, never memory: so it serves eager calls and programs alike. The
checks of a call are those of the CPU (csrc/cpu/check.c and the plans), made before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, Protocol

from gradcli.engine.device.gpu.driver import Place, Ready
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.dtype import DType
from gradcli.engine.shape import Shape, numel

Launcher = Callable[["CallSpec"], "Plan"]


class Operand(Protocol):
    """What is known of a tensor of a call before it has a place."""

    @property
    def shape(self) -> Shape:
        """Sizes."""
        ...

    @property
    def strides(self) -> Shape:
        """Steps in elements."""
        ...

    @property
    def dtype(self) -> DType:
        """Its element type."""
        ...


class KernelModule(NamedTuple):
    """Kernels that are compiled together: a file of csrc/gpu for one element type.

    With a row it is the kernels of that row of scalar_ops.h alone: a hundred of them would take
    the compiler many seconds, and a model uses a dozen. The row of a chain is its steps.
    """

    family: str
    dtype: str  # as the kernels' names end: f32, bf16, i32, i64, u8
    row: str = ""

    def __str__(self) -> str:
        row = self.row if self.row.isidentifier() else sha256(self.row.encode()).hexdigest()[:12]
        return ".".join((self.family, self.dtype, *([row] if self.row else [])))


class TensorArg(NamedTuple):
    """An argument: the first element of the call's tensor with this number."""

    number: int


class Scratch(NamedTuple):
    """An argument: memory that only this call uses, this many bytes from where it begins."""

    offset: int


class Errors(NamedTuple):
    """Two arguments: the block in which a kernel reports a refused value, and this call's code."""


Arg = TensorArg | Scratch | Errors | int | float | bytes  # uint, float and structs go by value


@dataclass(frozen=True)
class Launch:
    """One launch: blocks of `threads` threads in a grid (x, y, z)."""

    module: KernelModule
    kernel: str
    grid: tuple[int, int, int]
    threads: int
    args: tuple[Arg, ...]

    def ready(
        self,
        module: str,
        tensors: Sequence[Place],
        scratch: Place | None,
        errors: Callable[[], tuple[Place, int]],
    ) -> Ready:
        """The launch with its memory; `errors` says where to report, and as which number."""
        args: list[Place | int | float | bytes] = []
        for arg in self.args:
            if isinstance(arg, TensorArg):
                args.append(tensors[arg.number])
            elif isinstance(arg, Scratch):
                assert scratch is not None
                args.append(Place(scratch.handle, scratch.offset + arg.offset))
            elif isinstance(arg, Errors):
                args += errors()
            else:
                args.append(arg)
        return Ready(module, self.kernel, self.grid, self.threads, tuple(args))


@dataclass(frozen=True)
class Plan:
    """What runs a call: launches in order, and the scratch memory they share."""

    launches: tuple[Launch, ...] = ()
    scratch: int = 0


@dataclass(frozen=True)
class CallSpec:
    """A call without its memory."""

    kernel: str
    tensors: Sequence[Operand]
    sizes: Sequence[int] = ()
    options: Sequence[float] = ()
    tensor_cores: bool = False  # the device has some that csrc/gpu is written for

    def size(self, number: int) -> int:
        """A size of the call; 0 where it was not given, as in C."""
        return self.sizes[number] if number < len(self.sizes) else 0

    def option(self, number: int) -> float:
        """An option of the call; 0 where it was not given, as in C."""
        return float(self.options[number]) if number < len(self.options) else 0.0

    def numel(self, number: int = 0) -> int:
        """The number of elements of a tensor."""
        return numel(self.tensors[number].shape)


LAUNCHERS: dict[str, Launcher] = {}
SUFFIX = {
    "float32": "f32",
    "bfloat16": "bf16",  # moved, and multiplied; all else is computed as float32
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "bool": "u8",
}
# Of bfloat16 too, where a GPU has some.
ON_TENSOR_CORES = frozenset(name for name, facts in FACTS.items() if facts.product)
THREADS = 256
MOST_BLOCKS = 4096  # of a loop over a grid: enough for any GPU, each thread then does several


def launches(*kernels: str) -> Callable[[Launcher], Launcher]:
    """Declare how calls of these kernels are launched."""

    def enter(launcher: Launcher) -> Launcher:
        for kernel in kernels:
            assert kernel not in LAUNCHERS, f"kernel '{kernel}' is launched twice"
            LAUNCHERS[kernel] = launcher
        return launcher

    return enter


def over(count: int, threads: int = THREADS) -> tuple[int, int, int]:
    """A grid with a thread for each of `count` elements, up to what a loop makes up for."""
    return (min(-(-count // threads), MOST_BLOCKS), 1, 1)


def tensors(*numbers: int) -> tuple[Arg, ...]:
    """A call's tensors of these numbers, as arguments."""
    return tuple(map(TensorArg, numbers))


def all_tensors(call: CallSpec) -> tuple[Arg, ...]:
    """All of a call's tensors in their order, as arguments."""
    return tensors(*range(len(call.tensors)))


def words(number: int) -> tuple[int, int]:
    """A whole number of 64 bits as two arguments, the low half first."""
    return number & 0xFFFFFFFF, number >> 32 & 0xFFFFFFFF


def launch(
    family: str,
    kernel: str,
    suffix: str,
    grid: tuple[int, int, int],
    *args: Arg,
    threads: int = THREADS,
) -> Launch:
    """One launch of a call that takes several."""
    return Launch(KernelModule(family, suffix), f"{kernel}_{suffix}", grid, threads, args)


def single_launch(
    family: str,
    call: CallSpec,
    grid: tuple[int, int, int],
    *args: Arg,
    threads: int = THREADS,
    kernel: str = "",
    row: str = "",
    typed_by: int = 0,
    scratch: int = 0,
) -> Plan:
    """A call that is one launch of the kernel with its name; none where there is nothing to do."""
    if 0 in grid:
        return Plan()
    suffix = SUFFIX[call.tensors[typed_by].dtype.name]
    only = Launch(
        KernelModule(family, suffix, row), f"{kernel or call.kernel}_{suffix}", grid, threads, args
    )
    return Plan((only,), scratch)
