"""A kernel call as launches: which kernels of which module run it, on how many blocks.

Each family of kernels has a file in launches/ with a function for each kind of call. It is given
the call's shapes, sizes and options, never memory: so it serves eager calls and programs alike. The
checks of a call are those of the CPU (csrc/cpu/check.c and the plans), made before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import wraps
from hashlib import sha256
from typing import NamedTuple, Protocol

from gradcli.dataclass import dataclass
from gradcli.engine.device.gpu.driver import Address, Ready
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.dtype import DType
from gradcli.engine.shape import Shape, numel

Launcher = Callable[["Draft"], None]
Planner = Callable[["CallSpec"], "LaunchList"]
Grid = tuple[int, int, int]
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


class OperandSpec(Protocol):
    """A tensor of a call before it has an address."""

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
    grid: Grid
    threads: int
    args: tuple[Arg, ...]

    def ready(
        self,
        module: str,
        tensors: Sequence[Address],
        scratch: Address | None,
        errors: Callable[[], tuple[Address, int]],
    ) -> Ready:
        """The launch with its memory; `errors` says where to report, and as which number."""
        args: list[Address | int | float | bytes] = []
        for arg in self.args:
            if isinstance(arg, TensorArg):
                args.append(tensors[arg.number])
            elif isinstance(arg, Scratch):
                assert scratch is not None
                args.append(Address(scratch.handle, scratch.offset + arg.offset))
            elif isinstance(arg, Errors):
                args += errors()
            else:
                args.append(arg)
        return Ready(module, self.kernel, self.grid, self.threads, tuple(args))


@dataclass(frozen=True)
class LaunchList:
    """What runs a call: launches in order, and the scratch memory they share."""

    launches: tuple[Launch, ...] = ()
    scratch: int = 0


@dataclass
class CallSpec:
    """A call without its memory."""

    kernel: str
    tensors: Sequence[OperandSpec]
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

    def has(self, number: int) -> bool:
        """Whether a tensor has elements: one that is left out has none."""
        return self.numel(number) > 0

    def suffix(self, number: int = 0) -> str:
        """How the names of kernels end that are of a tensor's type."""
        return SUFFIX[self.tensors[number].dtype.name]


@dataclass
class Draft(CallSpec):
    """A call, and its plan in the making: a launcher reads the one and adds to the other.

    Attributes:
        family: the file of kernels in csrc/gpu that launches are of unless they say another.
        nbytes: of scratch memory, so far.
    """

    family: str = ""
    launches: list[Launch] = field(default_factory=list)
    nbytes: int = 0

    def launch(
        self,
        kernel: str,
        grid: Grid,
        *args: Arg,
        threads: int = THREADS,
        family: str = "",
        suffix: str = "",
        row: str = "",
    ) -> None:
        """Add a launch, of the type of the first tensor; none where the grid is empty."""
        if 0 in grid:
            return
        module = KernelModule(family or self.family, suffix or self.suffix(), row)
        plain = tuple(int(arg) if isinstance(arg, bool) else arg for arg in args)
        self.launches.append(Launch(module, f"{kernel}_{module.dtype}", grid, threads, plain))

    def all_tensors(self) -> tuple[Arg, ...]:
        """All of the call's tensors in their order, as arguments."""
        return tensors(*range(len(self.tensors)))

    def scratch(self, nbytes: int) -> Scratch:
        """More memory that only this call uses, behind what it has."""
        begin = self.nbytes
        self.nbytes += nbytes or 8  # a kernel that reads none of it gets an address, too
        return Scratch(begin)

    def pair(self, count: int) -> tuple[Scratch, Scratch]:
        """Such memory for `count` numbers of two floats each."""
        return self.scratch(4 * count), self.scratch(4 * count)

    def plan(self) -> LaunchList:
        """Its launches so far, with the scratch memory that they share."""
        return LaunchList(tuple(self.launches), self.nbytes) if self.launches else LaunchList()


LAUNCHERS: dict[str, Planner] = {}


def launches(*kernels: str) -> Callable[[Launcher], Launcher]:
    """Declare how calls of these kernels are launched; their family is the launcher's file."""

    def enter(launcher: Launcher) -> Launcher:
        @wraps(launcher)
        def planner(call: CallSpec) -> LaunchList:
            draft = Draft(**vars(call), family=launcher.__module__.rpartition(".")[2])
            launcher(draft)
            return draft.plan()

        for kernel in kernels:
            assert kernel not in LAUNCHERS, f"kernel '{kernel}' is launched twice"
            LAUNCHERS[kernel] = planner
        return launcher

    return enter


def over(count: int, threads: int = THREADS) -> Grid:
    """A grid with a thread for each of `count` elements, or for several where they are many."""
    return (min(-(-count // threads), MOST_BLOCKS), 1, 1)


def tensors(*numbers: int) -> tuple[Arg, ...]:
    """A call's tensors of these numbers, as arguments."""
    return tuple(map(TensorArg, numbers))


def words(number: int) -> tuple[int, int]:
    """A whole number of 64 bits as two arguments, the low half first."""
    return number & 0xFFFFFFFF, number >> 32 & 0xFFFFFFFF
