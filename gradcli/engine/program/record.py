"""Recording: every kernel call of a step, with the memory it reads and writes, as data."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any, NoReturn

from gradcli.dataclass import dataclass
from gradcli.engine import recording
from gradcli.engine.array import Array, copy_into
from gradcli.engine.device import meta, program
from gradcli.engine.device.cpu import Storage
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.dtype import DType
from gradcli.engine.graph import Leaf
from gradcli.engine.program.values import same
from gradcli.engine.recompute import repeating
from gradcli.engine.recording import INHERITED, Members, Varying
from gradcli.engine.shape import Shape, extent, is_contiguous, numel
from gradcli.errors import CaptureError


@dataclass(eq=False)
class Buffer:
    """A block of memory that calls share.

    Attributes:
        storage: where it lies, for memory that outlives the program's run: parameters, states,
            data, gradients. None for an intermediate, which gets an offset in the arena.
        internal: whether the step itself allocates it.
        owner: who writes its numbers before each step.
        has_writer: whether a recorded call writes to it.
        before: what it held before that, while the recording may still be undone or proved.
        device: where it lies; None for the CPU.
        rerun: the second run of the checkpoint that allocated it; None for all others.
    """

    nbytes: int
    storage: Storage | None = None
    internal: bool = False
    owner: object = None
    has_writer: bool = False
    before: bytes | None = None
    device: Any = None
    rerun: object = None

    @property
    def persistent(self) -> bool:
        """True when someone may look at it after the step."""
        return self.storage is not None


@dataclass(frozen=True, eq=False)
class View:
    """What a call sees of a buffer; offset and strides in elements."""

    buffer: Buffer
    offset: int
    shape: Shape
    strides: Shape
    dtype: DType

    @property
    def numel(self) -> int:
        """The number of elements."""
        return numel(self.shape)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The bytes from the first to the last element, half open."""
        low, high = extent(self.offset, self.shape, self.strides)
        return low * self.dtype.size, high * self.dtype.size

    @property
    def contiguous(self) -> bool:
        """True when the elements lie in row-major order without gaps."""
        return is_contiguous(self.shape, self.strides)

    @property
    def whole(self) -> bool:
        """True when the elements are the whole buffer, in order."""
        return self.contiguous and self.numel * self.dtype.size == self.buffer.nbytes

    @property
    def layout(self) -> tuple[object, ...]:
        """Which elements these are of a buffer, and how long that is."""
        return self.offset, self.shape, self.strides, self.dtype, self.buffer.nbytes

    def same(self, other: View) -> bool:
        """True when both are the same elements."""
        return self.buffer is other.buffer and self.layout == other.layout


@dataclass(frozen=True, eq=False)
class Call:
    """One kernel call: inputs first, then what it writes (and may read, as an optimizer does).

    Attributes:
        function: what is called in place of a kernel (see outside.py), which then has no name. No
            other call may be moved past it.
        queues: whether the function only queues what is to be done, on the stream that it is told.
    """

    kernel: str
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    sizes: tuple[int, ...] = ()
    options: tuple[float, ...] = ()
    function: Callable[..., object] | None = None
    queues: bool = False

    @property
    def name(self) -> str:
        """The kernel's, or the function's."""
        return self.kernel or getattr(self.function, "__qualname__", repr(self.function))

    @property
    def views(self) -> tuple[View, ...]:
        """All tensors in the order in which the kernel wants them."""
        return (*self.inputs, *self.outputs)


@dataclass(frozen=True)
class Fact:
    """An attribute that Python read while it made the step, and what it stood for in the end."""

    owner: Any
    name: str
    value: Any
    now: Callable[[Any, str], Any]

    @property
    def holds(self) -> bool:
        """True while it stands for the same."""
        return same(self.now(self.owner, self.name), self.value)

    def __str__(self) -> str:
        return f"{type(self.owner).__name__}.{self.name}"


@dataclass
class Recording:
    """A Recorder: the calls so far, and what must hold for them to be the right ones.

    Attributes:
        samples: memory out of which the step gathers its samples.
    """

    calls: list[Call] = field(default_factory=list)
    varying: dict[int, tuple[object, Varying]] = field(default_factory=dict)
    assumed: list[tuple[object, str, Any]] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    broken: Fact | None = None
    grads: dict[Leaf, Array | None] = field(default_factory=dict)
    results: list[Callable[[], None]] = field(default_factory=list)
    samples: set[Buffer] = field(default_factory=set)
    _buffers: dict[int, Buffer] = field(default_factory=dict)
    _created: dict[int, weakref.ref[Storage]] = field(default_factory=dict)
    _reads: dict[tuple[int, str], tuple[Any, str, Any]] = field(default_factory=dict)
    _wrote: set[tuple[int, str]] = field(default_factory=set)
    _sampling: bool = False
    _inherited: list[tuple[type, str, Any]] = field(default_factory=list)

    # What the engine says.

    def call(
        self, kernel: str, arrays: Sequence[Array], sizes: Sequence[int], options: Sequence[float]
    ) -> None:
        """Write a call down, and what memory held that it is the first to overwrite."""
        views = tuple(self.view(array) for array in arrays)
        inputs = FACTS[kernel].inputs
        call = Call(kernel, views[:inputs], views[inputs:], tuple(sizes), tuple(options))
        if self._sampling and FACTS[kernel].gathers and not call.inputs[0].buffer.internal:
            self.samples.add(call.inputs[0].buffer)
        self._append(call)

    def outside(
        self,
        function: Callable[..., object],
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        queues: bool = False,
    ) -> None:
        """Write the call of a function down: its memory is there before the step and after it."""
        views = tuple(self.view(array) for array in (*inputs, *outputs))
        read = len(inputs)
        call = Call("", views[:read], views[read:], function=function, queues=queues)
        for number, view in enumerate(views):
            if view.buffer.internal:
                raise CaptureError(
                    f"the step is not captured: tensor {number} of outside.call, of shape "
                    f"{view.shape}, is made by the step itself, and '{call.name}' would find the "
                    "first step's; copy it into a tensor that is made before (copy_)"
                )
        self._append(call)

    def returned(self, outputs: Sequence[Array]) -> None:
        """Remember what a function wrote: the program's proof does not call it."""
        with recording.to(None):
            copies = [(array, array.copy()) for array in outputs]
        self.results.append(partial(_copy_all, copies))

    def _append(self, call: Call) -> None:
        if any(view.buffer.device is meta.DEVICE for view in call.views):
            raise CaptureError(
                "the step is not captured: it computes on 'meta', and nothing is there to replay"
            )
        for view in call.outputs:
            buffer = view.buffer
            if buffer.storage is not None and not buffer.has_writer:
                self.remember(buffer)
            buffer.has_writer = True
        self.calls.append(call)

    def remember(self, buffer: Buffer) -> None:
        """What memory holds that the step found, before a call overwrites it."""
        if buffer.storage is not None:
            buffer.before = program.copy(buffer.storage)

    def created(self, storage: Storage) -> None:
        """Fresh memory: an intermediate, unless it is still held when the step has ended."""
        key = id(storage)
        self._buffers[key] = Buffer(
            storage.nbytes, internal=True, device=storage.device, rerun=repeating()
        )

        def forget(_: weakref.ref[Storage]) -> None:
            self._buffers.pop(key, None)
            self._created.pop(key, None)

        self._created[key] = weakref.ref(storage, forget)

    def constant(self, storage: Storage) -> None:
        """Fresh memory that Python has filled: it is kept as it is."""
        self._buffers[id(storage)] = Buffer(storage.nbytes, storage)

    def keeps(self, storage: Storage) -> bool:
        """Whether the recorder itself refers to this memory."""
        buffer = self._buffers.get(id(storage))
        return buffer is not None and buffer.storage is storage

    def reading(self) -> NoReturn:
        """Refuse: a replay would go on with the value of the first time."""
        raise CaptureError(
            "capture: the step reads the values of a tensor (item, numpy, print, if x: ...), so it "
            "cannot be replayed without Python; return what you want to see, or do not capture it"
        )

    def assume(self, owner: object, attribute: str) -> None:
        """The calls hold for this value of the attribute."""
        self.assumed.append((owner, attribute, getattr(owner, attribute)))

    def note_read(self, owner: object, name: str, fact: Callable[[Any, str], Any]) -> None:
        """A replay assumes the value that the attribute has when the step has ended."""
        self._reads[id(owner), name] = owner, name, fact

    def wrote(self, owner: object, name: str) -> None:
        """Whether it matters shows where the next recording differs."""
        self._wrote.add((id(owner), name))

    def sampling(self, on: bool) -> None:
        """What the step gathers from now on are samples, or no longer are."""
        self._sampling = on

    def arrived(self, leaf: Leaf) -> None:
        """Where this leaf's gradient lies after the step is part of what the step does."""
        self.grads[leaf] = None

    def varies(self, owner: object, make: Callable[[], Varying]) -> Varying:
        """The one source of an owner's numbers; they are written before each step."""
        if id(owner) not in self.varying:
            self.varying[id(owner)] = owner, make()
            self.view(self.varying[id(owner)][1].varying()).buffer.owner = owner
        return self.varying[id(owner)][1]

    # What the program asks.

    def view(self, array: Array) -> View:
        """An array as the calls see it."""
        buffer = self._buffers.get(id(array.storage))
        if buffer is None:
            buffer = Buffer(array.storage.nbytes, array.storage, device=array.storage.device)
            self._buffers[id(array.storage)] = buffer
        return View(buffer, array.offset, array.shape, array.strides, array.dtype)

    def replace(self, lent: Storage, own: Storage) -> None:
        """What the calls saw of memory that was lent to the step is its owner's."""
        buffer = self._buffers.get(id(lent))
        if buffer is not None:
            buffer.storage = own

    def undo(self) -> None:
        """Restore the memory from before the calls that they have overwritten."""
        buffers = {view.buffer for call in self.calls for view in call.outputs}
        for buffer in buffers:
            if buffer.storage is not None and buffer.before is not None:
                program.overwrite(buffer.storage, buffer.before)
        for _, source in self.varying.values():
            source.undo()

    def forget(self) -> None:
        """The recording stands: what memory held before is needed no longer."""
        self.results.clear()
        for call in self.calls:
            for view in call.outputs:
                view.buffer.before = None

    def close(self) -> None:
        """The step has ended: what somebody still holds of its memory is kept for good."""
        self.grads = {leaf: leaf.grad for leaf in self.grads}
        for key, reference in list(self._created.items()):
            storage = reference()
            if storage is not None:
                self._buffers[key].storage = storage
        self._created.clear()
        self._buffers.clear()
        self._close_facts()

    def _close_facts(self) -> None:
        """Enter the values of the attributes that Python read, now that the step has ended."""
        reads = [look for key, look in self._reads.items() if key not in self._wrote]
        self.facts = [Fact(owner, name, now(owner, name), now) for owner, name, now in reads]
        inherited = {(type(f.owner), f.name) for f in self.facts if f.value is INHERITED}
        for owner, name in inherited:
            value = getattr(owner, name, None)
            if same(getattr(owner, name, None), value):  # not what is made each time
                self._inherited.append((owner, name, value))
        self._reads.clear()
        self._wrote.clear()

    # Whether it still is what the step would do.

    def holds(self) -> bool:
        """True while what Python took for granted is so; of facts, when they were compared last."""
        if self.broken is not None:
            return False
        for owner, name, value in self.assumed:
            if getattr(owner, name) != value:
                return False
        for owner, name, value in self._inherited:
            now = getattr(owner, name, None)
            if now is not value and not same(now, value):
                return False
        return True

    def outlived(self) -> bool:
        """True when tensors or modules that it read were replaced: it will not hold again."""
        return self.broken is not None and any(
            isinstance(fact.value, Members) and not fact.holds for fact in self.facts
        )

    def compare(self) -> None:
        """Something has changed: look at the facts again; `broken` is one that is another."""
        self.broken = next((fact for fact in self.facts if not fact.holds), None)


def _copy_all(copies: Sequence[tuple[Array, Array]]) -> None:
    for array, copy in copies:
        copy_into(array, copy)
