"""Array: a strided view of a block of memory. Holds numbers; knows nothing of gradients."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gradcli.engine import recording
from gradcli.engine import shape as shapes
from gradcli.engine.device import cpu, scope
from gradcli.engine.device.cpu import Storage
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.dtype import DType, bfloat16, float32, float64
from gradcli.engine.shape import Shape, contiguous_strides
from gradcli.errors import OptionError, ShapeError

# Kernels that take bfloat16 as it is, on every device and whatever else is in the call.
MOVE_BFLOAT16 = frozenset(
    name
    for name, facts in FACTS.items()
    if cpu.kernel_built(name, bfloat16) and not (facts.product or facts.widens)
)


class Array:
    """Storage, offset, shape and strides (in elements), element type; its fields never change."""

    __slots__ = ("_descriptor", "dtype", "offset", "shape", "storage", "strides")

    def __init__(
        self,
        storage: Storage,
        offset: int,
        shape: Shape,
        strides: Shape,
        dtype: DType,
        descriptor: Any = None,
    ) -> None:
        self.storage = storage
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self._descriptor = descriptor

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return shapes.numel(self.shape)

    @property
    def descriptor(self) -> Any:
        """What a kernel is told of this array; made once."""
        if self._descriptor is None:
            self._descriptor = cpu.describe(
                self.storage, self.offset, self.shape, self.strides, self.dtype
            )
        return self._descriptor

    @property
    def pointer(self) -> Any:
        """A pointer to the first element."""
        if not self.offset:
            return self.storage.data
        return cpu.pointer_to(self.storage, self.offset * self.dtype.size)

    def is_contiguous(self) -> bool:
        """True when the elements lie in row-major order without gaps."""
        return shapes.is_contiguous(self.shape, self.strides)

    def contiguous(self) -> Array:
        """This array if it is contiguous, otherwise a copy that is."""
        return self if self.is_contiguous() else self.copy()

    def copy(self) -> Array:
        """The same elements in memory of their own."""
        return self.cast(self.dtype)

    def cast(self, dtype: DType) -> Array:
        """A contiguous copy with another element type, on the same device."""
        if not scope.devices:
            return result("copy", self, shape=self.shape, dtype=dtype)
        with scope.on(self.storage.device):
            return result("copy", self, shape=self.shape, dtype=dtype)

    def view(self, shape: Shape, strides: Shape, offset: int | None = None) -> Array:
        """The same memory under another shape; the caller answers for the strides."""
        return Array(
            self.storage, self.offset if offset is None else offset, shape, strides, self.dtype
        )

    def reshape(self, shape: Shape) -> Array:
        """The same elements in another shape: a view where possible, otherwise a copy."""
        if shape == self.shape:
            return self
        strides = shapes.view_strides(self.shape, self.strides, shape)
        if strides is None:
            return self.copy().view(shape, contiguous_strides(shape))
        return self.view(shape, strides)

    def permute(self, dims: Sequence[int]) -> Array:
        """A view with the dimensions in another order."""
        shape, strides = self.shape, self.strides
        return self.view(tuple([shape[d] for d in dims]), tuple([strides[d] for d in dims]))

    def expand(self, shape: Shape, op: str = "expand") -> Array:
        """A view that repeats size-1 and missing dimensions."""
        if shape == self.shape:
            return self
        return self.view(shape, shapes.expand_strides(self.shape, self.strides, shape, op))

    def memoryview(self) -> memoryview:
        """The bytes of a contiguous array: shared, or a copy of what lies on another device."""
        if not self.is_contiguous():
            raise ShapeError("memoryview: the array is not contiguous; call contiguous() first")
        recording.reading()
        if self.storage.device is not None:
            return memoryview(self.storage.device.elements(self))
        size = self.dtype.size
        return cpu.window(self.storage, self.offset * size, self.numel * size)

    def tolist(self) -> Any:
        """Nested lists of Python numbers; a plain number for 0 dimensions."""
        if self.dtype is bfloat16:
            return self.cast(float32).tolist()
        view: Any = self.contiguous().memoryview()
        flat = view.cast(self.dtype.format).tolist()
        for size in reversed(self.shape[1:]):
            flat = [flat[i : i + size] for i in range(0, len(flat), size)] if size else []
        if 0 in self.shape[1:]:
            return _empty_lists(self.shape)
        return flat if self.shape else flat[0]


def _empty_lists(shape: Shape) -> list[Any]:
    return [_empty_lists(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else []


def run(
    kernel: str, *arrays: Array, sizes: Sequence[int] = (), options: Sequence[float] = ()
) -> None:
    """Run one kernel: inputs first, then the outputs it writes.

    bfloat16 is a type of storage. Kernels compute in float32: what they read is widened before,
    what they write is rounded behind, in calls of their own. Some do that themselves: products,
    where the processor or a GPU has units for them, and those on the CPU whose fact is `widens`.
    """
    for array in arrays:
        if array.dtype is bfloat16 and not _moves(kernel, arrays):
            _run_widened(kernel, arrays, sizes, options)
            return
    recorder = recording.current()
    if recorder is not None:
        recorder.call(kernel, arrays, sizes, options)
    device = arrays[-1].storage.device
    if device is not None:
        device.run(kernel, arrays, sizes, options)
        return
    cpu.run(kernel, [array._descriptor or array.descriptor for array in arrays], sizes, options)


def result(
    kernel: str,
    *inputs: Array,
    shape: Shape,
    dtype: DType,
    sizes: Sequence[int] = (),
    options: Sequence[float] = (),
) -> Array:
    """A fresh array that one kernel writes, from these inputs: `empty` and `run` in one."""
    if recording.current() is None and not scope.devices:
        descriptors = []
        for array in inputs:
            if array.dtype is bfloat16 and kernel not in MOVE_BFLOAT16:
                break
            descriptors.append(array._descriptor or array.descriptor)
        else:
            tensor = cpu.computed(kernel, descriptors, sizes, options, shape, dtype)
            if tensor is not None:
                return whole(tensor, shape, dtype)
    out = empty(shape, dtype)
    run(kernel, *inputs, out, sizes=sizes, options=options)
    return out


def mapped(number: int, a: Array, b: Array | None = None, dtype: DType | None = None) -> Any:
    """The same of an elementwise kernel of this number on floats of one type.

    Both are repeated to one shape. It is the shortest way; None where it is not open.
    """
    of, shape, second = a.dtype, a.shape, cpu.NULL
    if not (of is float32 or of is float64) or scope.devices or recording.current() is not None:
        return None
    if b is not None:
        if b.dtype is not of:
            return None
        second = b._descriptor or b.descriptor
    tensor = cpu.mapped(number, dtype or of, a._descriptor or a.descriptor, second)
    if tensor is not None and b is not None and b.shape and b.shape != shape:
        shape = shapes.broadcast(shape, b.shape, "")
    return None if tensor is None else whole(tensor, shape, dtype or of)


def multiplied(a: Array, b: Array, bias: Array | None = None) -> Array | None:
    """The shortest way to the product of a matrix or row with a matrix or column."""
    dtype = a.dtype
    if not (dtype is float32 or dtype is float64) or scope.devices:
        return None
    if recording.current() is not None or b.dtype is not dtype:
        return None
    tensor = cpu.multiplied(
        a._descriptor or a.descriptor,
        b._descriptor or b.descriptor,
        cpu.NULL if bias is None else bias.descriptor,
    )
    return None if tensor is None else whole(tensor, (*a.shape[:-1], *b.shape[1:]), dtype)


def whole(tensor: Any, shape: Shape, dtype: DType) -> Array:
    """The array that a gc_tensor is whose memory goes with it."""
    storage = Storage(tensor.data, tensor.nbytes, None, True, None, tensor)
    return Array(storage, 0, shape, contiguous_strides(shape), dtype, tensor)


def _moves(kernel: str, arrays: Sequence[Array]) -> bool:
    """Whether a kernel takes bfloat16 as it is: it moves elements, widens them, or is a product."""
    if kernel in MOVE_BFLOAT16:
        return True
    device, widens = arrays[-1].storage.device, FACTS[kernel].widens
    halves = [i for i, array in enumerate(arrays) if array.dtype is bfloat16]
    if widens and (device is None or device.widens_bfloat16):
        return all(i in widens for i in halves)
    if device is None:
        return len(halves) == len(arrays) and cpu.kernel_built(kernel, bfloat16)
    return len(halves) == len(arrays) and kernel in device.multiplies_bfloat16


def _run_widened(
    kernel: str, arrays: Sequence[Array], sizes: Sequence[int], options: Sequence[float]
) -> None:
    """The same call in float32; an array that stands in it twice does so afterwards."""
    facts = FACTS[kernel]
    wide: dict[object, Array] = {}
    operands, rounded = [], []
    for number, array in enumerate(arrays):
        if array.dtype is not bfloat16:
            operands.append(array)
            continue
        if number < facts.inputs:
            key = id(array.storage), array.offset, array.shape, array.strides
            if key not in wide:
                wide[key] = widened(array)
            operands.append(wide[key])
        else:
            read = number - facts.inputs in facts.updates
            operands.append(widened(array) if read else _beside(array, float32))
            rounded.append((operands[-1], array))
    run(kernel, *operands, sizes=sizes, options=options)
    for source, target in rounded:
        order = _order(target)  # so that both are contiguous where the target has no gaps
        if target.numel:
            run("copy", source.permute(order), target.permute(order))


def widened(array: Array) -> Array:
    """The elements as float32, in the same order of memory; what is repeated stays repeated."""
    if not array.numel:
        return empty_beside(array, float32)
    if array.is_contiguous():
        return array.cast(float32)
    once = tuple(
        1 if stride == 0 else size for size, stride in zip(array.shape, array.strides, strict=True)
    )
    order = _order(array)
    dense = array.view(once, array.strides).permute(order).cast(float32)
    return dense.permute(_back(order)).expand(array.shape)


def _beside(array: Array, dtype: DType) -> Array:
    """A fresh array without gaps, whose elements lie in the order in which the array's do."""
    order = _order(array)
    return empty_beside(array.permute(order), dtype).permute(_back(order))


def _order(array: Array) -> list[int]:
    """The dimensions in the order in which they lie in memory."""
    return sorted(range(array.ndim), key=lambda d: -array.strides[d])


def _back(order: Sequence[int]) -> list[int]:
    return [order.index(d) for d in range(len(order))]


def empty(shape: Shape, dtype: DType) -> Array:
    """A fresh contiguous array, contents undefined."""
    device = scope.current() if scope.devices else None
    tensor = cpu.new(shape, dtype) if device is None else None
    if tensor is not None:
        array = whole(tensor, shape, dtype)
    else:  # on the CPU: no memory, which this says, or nothing in a shape that no call can hold
        nbytes = shapes.numel(shape) * dtype.size
        storage = cpu.allocate(nbytes) if device is None else device.allocate(nbytes)
        array = Array(storage, 0, shape, contiguous_strides(shape), dtype)
    recorder = recording.current()
    if recorder is not None:
        recorder.created(array.storage)
    return array


def empty_beside(array: Array, dtype: DType | None = None) -> Array:
    """A fresh contiguous array of the shape of another, on its device."""
    if not scope.devices:
        return empty(array.shape, dtype or array.dtype)
    with scope.on(array.storage.device):
        return empty(array.shape, dtype or array.dtype)


def from_bytes(data: Any, shape: Shape, dtype: DType) -> Array:
    """A fresh array with these bytes."""
    storage = cpu.allocate(shapes.numel(shape) * dtype.size)
    cpu.window(storage, 0, storage.nbytes)[:] = data
    recorder = recording.current()
    if recorder is not None:
        recorder.constant(storage)
    return Array(storage, 0, shape, contiguous_strides(shape), dtype)


def full(shape: Shape, value: float, dtype: DType) -> Array:
    """A fresh array with one value everywhere."""
    if dtype.is_floating_point:
        return result("fill", shape=shape, dtype=dtype, options=(value,))
    return result("fill", shape=shape, dtype=dtype, sizes=(dtype.whole(value),))


def writable(array: Array, op: str) -> None:
    """Refuse memory that may only be read."""
    if not array.storage.writable:
        raise OptionError(f"{op}: this tensor shares read-only memory; write to a clone()")


def fill(array: Array, value: float) -> None:
    """Overwrite every element with one value."""
    writable(array, "fill")
    if array.dtype.is_floating_point:
        run("fill", array, options=(value,))
    else:
        run("fill", array, sizes=(array.dtype.whole(value),))


def scalar(value: float, dtype: DType) -> Array:
    """A constant with no dimensions; shared, so it must never be written to."""
    return _scalar(value, dtype, value == 0 and math.copysign(1.0, value))


@lru_cache(maxsize=1024)
def _scalar(value: float, dtype: DType, _sign_of_zero: float) -> Array:
    """By the sign of a 0 too: as keys of a cache 0.0 and -0.0 are the same."""
    dtype = dtype.computed  # torch does not round numbers to bfloat16 either
    number = float(value) if dtype.is_floating_point else dtype.whole(value)
    try:
        data = struct.pack(dtype.format, number)
    except OverflowError:  # a double beyond float32
        data = struct.pack(dtype.format, math.copysign(math.inf, number))
    return Array(cpu.borrow(data), 0, (), (), dtype)


@lru_cache
def nothing(dtype: DType) -> Array:
    """No elements: what a kernel is given where an input is left out. Shared, as `scalar` is."""
    return Array(cpu.borrow(b""), 0, (0,), (1,), dtype)


def copy_into(target: Array, source: Array) -> None:
    """Write `source` (any strides and type, broadcast) over the elements of `target`."""
    writable(target, "copy_")
    run("copy", source.expand(target.shape, "copy_"), target)
    target.storage.version += 1


def unbroadcast(grad: Array, shape: Shape) -> Array:
    """Sum a gradient over the dimensions that broadcasting had repeated."""
    if grad.shape == shape:
        return grad
    dtype, groups = grad.dtype, shapes.neighbours(shapes.repeated_dims(grad.shape, shape))
    for group in reversed(groups):
        first, last = group[0], group[-1] + 1
        outer, inner = shapes.numel(grad.shape[:first]), shapes.numel(grad.shape[last:])
        lines = grad.contiguous().reshape((outer, shapes.numel(grad.shape[first:last]), inner))
        out = empty((outer, 1, inner), dtype if group is groups[0] else dtype.computed)
        run("sum", lines, out)
        grad = out.reshape((*grad.shape[:first], *(1 for _ in group), *grad.shape[last:]))
    return grad.reshape(shape)
