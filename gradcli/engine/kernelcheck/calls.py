"""Calls: what the engine asks of a kernel, with the numbers it asked with, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.engine import recording
from gradcli.engine.array import Array
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu.device import check
from gradcli.engine.dtype import DType, float64
from gradcli.engine.shape import Shape, extent
from gradcli.errors import GradcliError


@dataclass(frozen=True)
class BlockData:
    """The memory that tensors of a call share, no byte more than they reach."""

    dtype: DType
    data: bytes


@dataclass(frozen=True)
class CallOperand:
    """A tensor of a call: where it lies, counted in elements of a block."""

    block: int
    offset: int
    shape: Shape
    strides: Shape
    dtype: DType


@dataclass(frozen=True)
class CheckedCall:
    """One call of a kernel.

    Attributes:
        source: which op on which sample made it, for messages.
    """

    kernel: str
    tensors: tuple[CallOperand, ...]
    blocks: tuple[BlockData, ...]
    sizes: tuple[int, ...]
    options: tuple[float, ...]
    source: str

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for calls that differ in nothing but their numbers."""
        return self.kernel, self.tensors, self.sizes, self.options

    @property
    def has_float64(self) -> bool:
        """Whether a tensor is of that type."""
        return any(tensor.dtype is float64 for tensor in self.tensors)

    def __str__(self) -> str:
        shapes = ", ".join(f"{t.dtype.name}{list(t.shape)}" for t in self.tensors)
        return f"{self.kernel}({shapes}, sizes={self.sizes}, options={self.options})"


def call_of(
    kernel: str,
    arrays: Sequence[Array],
    sizes: Sequence[int],
    options: Sequence[float],
    source: str,
) -> CheckedCall:
    """A call that is about to be made, with a copy of its memory."""
    reaches: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for array in arrays:
        memory = id(array.storage), array.dtype.name
        reach = extent(array.offset, array.shape, array.strides)
        reaches.setdefault(memory, []).extend([reach] if reach[1] > reach[0] else [])
    order = list(reaches)
    begins = [min((low for low, _ in reaches[memory]), default=0) for memory in order]
    blocks: list[BlockData | None] = [None] * len(order)
    operands = []
    for array in arrays:
        number = order.index((id(array.storage), array.dtype.name))
        begin, size = begins[number], array.dtype.size
        if blocks[number] is None:
            end = max((high for _, high in reaches[order[number]]), default=0)
            window = cpu.window(array.storage, begin * size, (end - begin) * size)
            blocks[number] = BlockData(array.dtype, bytes(window))
        offset = array.offset - begin if 0 not in array.shape else 0
        operands.append(CallOperand(number, offset, array.shape, array.strides, array.dtype))
    filled = tuple(block for block in blocks if block is not None)
    return CheckedCall(kernel, tuple(operands), filled, tuple(sizes), tuple(options), source)


def _accepted(
    kernel: str, arrays: Sequence[Any], sizes: Sequence[int], options: Sequence[float]
) -> bool:
    """Whether the kernel may run: what the checked door refuses comes to no device."""
    try:
        check(kernel, arrays, sizes, options)
    except GradcliError:
        return False
    return True


@dataclass
class Collector:
    """Takes the calls that are made while it listens; of each kind, the first `most`.

    Implements gradcli.engine.recording.Recorder.
    """

    wants: Callable[[str], bool] = field(default=lambda kernel: True)
    most: int = 1
    source: str = ""
    calls: dict[str, list[CheckedCall]] = field(default_factory=dict)  # by kernel
    _kinds: Counter[Any] = field(default_factory=Counter)
    reached: set[str] = field(default_factory=set)  # kernels, since it last began to listen
    _varying: dict[int, Any] = field(default_factory=dict)
    _owners: list[object] = field(default_factory=list)

    @contextmanager
    def listening(self, source: str) -> Iterator[None]:
        """Take the calls made inside a `with` block."""
        self.source = source
        self.reached = set()
        with recording.to(self):
            yield

    def call(
        self, kernel: str, arrays: Sequence[Any], sizes: Sequence[int], options: Sequence[float]
    ) -> None:
        """A kernel is about to run."""
        if not self.wants(kernel) or not _accepted(kernel, arrays, sizes, options):
            return
        self.reached.add(kernel)
        recorded = call_of(kernel, arrays, sizes, options, self.source)
        self._kinds[recorded.key] += 1
        if self._kinds[recorded.key] <= self.most:
            self.calls.setdefault(kernel, []).append(recorded)

    def outside(
        self,
        function: Callable[..., object],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        queues: bool = False,
    ) -> None:
        """A function of Python is no kernel."""

    def returned(self, outputs: Sequence[Any]) -> None:
        """Nothing to remember."""

    def varies(self, owner: object, make: Callable[[], recording.Varying]) -> Any:
        """The owner's numbers, made at the first mention."""
        if id(owner) not in self._varying:
            self._owners.append(owner)  # keeps its id its own
            self._varying[id(owner)] = make()
        return self._varying[id(owner)]

    def created(self, storage: object) -> None:
        """Fresh memory: nothing to remember."""

    def constant(self, storage: object) -> None:
        """Filled memory: nothing to remember."""

    def keeps(self, storage: object) -> bool:
        """Never: calls are taken with a copy of their memory."""
        return False

    def reading(self) -> None:
        """Values may be read."""

    def assume(self, owner: object, attribute: str) -> None:
        """Calls are taken one by one, nothing is assumed."""

    def note_read(self, owner: object, name: str, fact: Callable[[Any, str], Any]) -> None:
        """The same."""

    def wrote(self, owner: object, name: str) -> None:
        """The same."""

    def sampling(self, on: bool) -> None:
        """Samples may be gathered."""

    def arrived(self, leaf: object) -> None:
        """Gradients may arrive."""
