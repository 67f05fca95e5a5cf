"""The compiled kernels: the library, and the facts of each, as csrc/kernels.h declares them.

Whoever must know what a kernel is asks here; no other module has a list of kernels' names.
"""

from __future__ import annotations

from typing import Any

from gradcli.dataclass import dataclass
from gradcli.errors import DeviceError
from gradcli.free_memory import is_refusal, used_up

try:
    from gradcli.engine.device import _cpu  # type: ignore[attr-defined]
except ImportError as error:
    if is_refusal(error):
        raise DeviceError(used_up(), code="E402") from error
    raise DeviceError(
        f"the CPU kernels beside {__file__} are not built ({error}); run `pip install -e .` in the "
        "project's folder, or leave that folder, which hides an installed gradcli from Python"
    ) from error

ffi, lib = _cpu.ffi, _cpu.lib


@dataclass(frozen=True)
class Kernel:
    """What a kernel is: see gc_facts in csrc/call.h. Tensors are named by their numbers.

    Attributes:
        op: what errors call it: its name as far as `_forward` or `_backward`. For an elementwise
            kernel the row of scalar_ops.h.
        shapes: a word for each tensor, as kernels.h explains them; none where the plan checks all.
        operations: how its operations are counted, and from which tensors.
        slope: of a unary row dy/dx, of a binary one the slopes in a and in b.
    """

    name: str
    number: int
    op: str
    inputs: int
    outputs: int
    shapes: tuple[str, ...]
    updates: tuple[int, ...]
    in_place: tuple[int, ...]
    any_strides: bool
    matrices: tuple[int, ...]
    rows: tuple[int, ...]
    gathers: bool
    operations: tuple[int, int, int]
    product: bool
    widens: tuple[int, ...]
    draws: bool
    bound: float
    then_of: str
    row_size: int
    refuses: int
    from_end: bool
    kind: int
    saved: str
    formula: str
    slope: tuple[str, ...]

    @property
    def elementwise(self) -> bool:
        """Whether element i of the output depends on element i of each input and nothing else."""
        return bool(self.kind != lib.GC_OWN_LOOPS)

    @property
    def unary(self) -> bool:
        """Whether it is f(x), a row of scalar_ops.h."""
        return bool(self.kind == lib.GC_UNARY)

    @property
    def unary_slope(self) -> bool:
        """Whether it is such a row's gradient, of what that saved and the incoming gradient."""
        return bool(self.kind == lib.GC_SLOPE)


def text(pointer: object) -> str:
    """A text of C; an empty one where there is none."""
    return str(ffi.string(pointer).decode()) if pointer else ""


def _members(bits: int, count: int) -> tuple[int, ...]:
    return tuple(i for i in range(count) if bits >> i & 1)


def _kernel(number: int, facts: Any) -> Kernel:
    name, inputs = text(facts.name), int(facts.inputs)
    return Kernel(
        name=name,
        number=number,
        op=name.partition("_forward")[0].partition("_backward")[0],
        inputs=inputs,
        outputs=int(facts.outputs),
        shapes=tuple(text(facts.shapes).split()),
        updates=_members(facts.updates, facts.outputs),
        in_place=_members(facts.in_place, inputs),
        any_strides=bool(facts.any_strides),
        matrices=_members(facts.matrices, inputs),
        rows=_members(facts.rows, inputs),
        gathers=bool(facts.gathers),
        operations=tuple(facts.operations),
        product=bool(facts.product),
        widens=_members(facts.widens, inputs + int(facts.outputs)),
        draws=bool(facts.draws),
        bound=float(facts.bound),
        then_of=text(facts.then_of),
        row_size=int(facts.row_size),
        refuses=int(facts.refuses) or lib.GC_BAD_INDEX,
        from_end=bool(facts.from_end),
        kind=int(facts.kind),
        saved=text(facts.saved),
        formula=text(facts.formula),
        slope=tuple(text(slope) for slope in facts.slope if slope),
    )


def _read_facts() -> dict[str, Kernel]:
    kernels: dict[str, Kernel] = {}
    while facts := lib.gc_kernel_facts(len(kernels)):
        kernel = _kernel(len(kernels), facts)
        kernels[kernel.name] = kernel
    return kernels


@dataclass(frozen=True)
class Build:
    """How the library was built; another source, compiler or flags may give other bits.

    Attributes:
        source: sha256 of the C files in csrc/ that are the CPU's.
    """

    source: str
    compiler: str
    flags: str


try:
    _youngest = lib.gc_guard  # of the functions
    FACTS = _read_facts()
    BUILD = Build(*text(lib.gc_build()).split("\n"))
except AttributeError as error:
    raise DeviceError(
        f"the CPU kernels beside {__file__} were built from another version of csrc/ ({error}); "
        "run `pip install -e .` in the project's folder again"
    ) from error

NAMES = tuple(FACTS)  # by number
