"""Tensors from numbers, sizes and other people's memory."""

from __future__ import annotations

from array import array as packed
from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.argument import check_arguments
from gradcli.engine.array import Array, fill, from_bytes
from gradcli.engine.array import empty as empty_array
from gradcli.engine.array import full as full_array
from gradcli.engine.composite import IN_PLACE, function
from gradcli.engine.device import cpu, scope
from gradcli.engine.device.context import chosen_by_device, device_named
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Kind, Number, Sizes, format_value
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor, refuse_recorded
from gradcli.engine.transfer import to_device
from gradcli.errors import DTypeError, OptionError, OptionTypeError, ShapeError
from gradcli.wording import quantity, verb

FROM_NUMBERS = "it is made from plain numbers"
SHAPED = "it takes no more than the shape and the type of its input"
_FORMATS = {dtype.format: dtype for dtype in dtypes.DTYPES.values() if dtype.format} | {
    "l": dtypes.int64
}


def tensor(
    data: object,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor from a number, nested lists, a Tensor or a buffer; always a copy.

    Floats become float32, whole numbers int64, truth values bool, unless `dtype` says otherwise.
    """
    if dtype is not None:
        _typed("tensor", dtype)
    if device is not None:
        with scope.on(None):
            array = tensor(data, dtype=dtype).array
        return Tensor(to_device(array, device_named(device, "tensor")), requires_grad=requires_grad)
    if isinstance(data, Tensor):
        array = data.array.cast(dtype or data.dtype)
    elif isinstance(data, (bool, int, float)):
        array = full_array((), data, dtype or dtypes.of_scalar(data))
    elif isinstance(data, (list, tuple, range)):
        array = _from_lists(data, dtype)
    else:
        array = _from_buffer(data)
        array = array.cast(dtype or array.dtype)
    there = scope.default_device()
    if there is not None and not isinstance(data, Tensor):
        array = to_device(array, there)
    return Tensor(array, requires_grad=requires_grad)


def _from_lists(data: Sequence[object], dtype: DType | None) -> Array:
    shape: list[int] = []
    level: list[Any] = [data]
    while level and isinstance(level[0], (list, tuple)):
        size = len(level[0])
        for row in level:
            if not isinstance(row, (list, tuple)) or len(row) != size:
                length = len(row) if isinstance(row, (list, tuple)) else format_value(row)
                raise ShapeError(f"tensor: rows of unequal length: {size} and {length}")
        shapes.check_shape([*shape, size], "tensor")  # a list that holds itself has no end
        shape.append(size)
        level = [item for row in level for item in row]
    if level and isinstance(level[0], Tensor):
        level = [item.item() if isinstance(item, Tensor) else item for item in level]
    natural = _natural(level)
    dtype = dtype or natural
    array = _packed(level, shapes.check_shape(shape, "tensor"), dtype.computed)
    return array if array.dtype is dtype else array.cast(dtype)


def _natural(numbers: Sequence[object]) -> DType:
    """The type of plain numbers: the highest kind among them."""
    kinds = {type(item) for item in numbers}
    if not kinds <= {bool, int, float}:
        odd = next(kind.__name__ for kind in kinds if kind not in (bool, int, float))
        raise DTypeError(f"tensor: takes numbers, got {odd}")
    if not kinds or float in kinds:
        return dtypes.float32
    return dtypes.int64 if int in kinds else dtypes.bool_


def _packed(numbers: Sequence[object], shape: Shape, dtype: DType) -> Array:
    convert = {"float": float, "int": int, "bool": bool}[dtype.kind]
    code = "B" if dtype.kind == "bool" else dtype.format
    try:
        data = packed(code, [convert(item) for item in numbers])
    except OverflowError as error:
        raise OptionError(f"tensor: a number does not fit into {dtype}: {error}") from None
    return from_bytes(memoryview(data).cast("B"), shape, dtype)


def _from_buffer(data: Any) -> Array:
    """Whatever shows its memory: array.array, bytes, memoryview, NumPy arrays."""
    try:
        view = memoryview(data)
    except TypeError:
        raise DTypeError(f"tensor: cannot be made from {type(data).__name__}") from None
    dtype = _FORMATS.get(view.format)
    if dtype is None:
        raise DTypeError(f"tensor: elements of format '{view.format}' have no type here")
    flat = view.cast("B") if view.nbytes and view.c_contiguous else view.tobytes()
    return from_bytes(flat, tuple(view.shape or ()), dtype)


@check_arguments
def frombuffer(buffer: Any, *, dtype: DType) -> Tensor:
    """The bytes of a buffer as a 1-D tensor, sharing its memory."""
    try:
        view = memoryview(buffer)
    except (TypeError, BufferError) as error:
        raise OptionTypeError(f"frombuffer: buffer must be a buffer of bytes: {error}") from None
    if view.nbytes % dtype.size:
        raise ShapeError(
            f"frombuffer: {quantity(view.nbytes, 'byte')} {verb(view.nbytes)} no whole number of "
            f"{dtype}"
        )
    storage = cpu.borrow(buffer) if view.nbytes else cpu.allocate(0)
    if cpu.address(storage) % dtype.size:
        raise ShapeError(f"frombuffer: the memory is not aligned for {dtype}; copy it first")
    return Tensor(Array(storage, 0, (view.nbytes // dtype.size,), (1,), dtype), alias=True)


_NUMBER, _TYPE = Kind.of(Number), Kind.of(DType)


def _typed(op: str, dtype: DType) -> DType:
    """The element type, of functions that are called too often to check every argument."""
    return dtype if type(dtype) is DType else _TYPE.convert_argument(op, "dtype", dtype)


def sizes_of(size: tuple[Any, ...], op: str) -> Shape:
    """Sizes given one by one or as one tuple."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    return shapes.check_shape(size, op)


def full(
    size: Sequence[int],
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """One value everywhere."""
    if device is not None:
        with scope.on(device_named(device, "full")):
            return full(size, fill_value, dtype=dtype, requires_grad=requires_grad)
    if type(fill_value) not in (int, float, bool):
        fill_value = _NUMBER.convert_argument("full", "fill_value", fill_value)
    element_type = dtypes.of_scalar(fill_value) if dtype is None else _typed("full", dtype)
    array = full_array(shapes.check_shape(size, "full"), fill_value, element_type)
    return Tensor(array, requires_grad=requires_grad)


def zeros(
    *size: Sizes, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """0 everywhere."""
    if device is not None:
        with scope.on(device_named(device, "zeros")):
            return zeros(*size, dtype=dtype, requires_grad=requires_grad)
    element_type = dtypes.float32 if dtype is None else _typed("zeros", dtype)
    array = full_array(sizes_of(size, "zeros"), 0, element_type)
    return Tensor(array, requires_grad=requires_grad)


def ones(
    *size: Sizes, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """1 everywhere."""
    if device is not None:
        with scope.on(device_named(device, "ones")):
            return ones(*size, dtype=dtype, requires_grad=requires_grad)
    element_type = dtypes.float32 if dtype is None else _typed("ones", dtype)
    array = full_array(sizes_of(size, "ones"), 1, element_type)
    return Tensor(array, requires_grad=requires_grad)


def empty(
    *size: Sizes, dtype: DType | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Memory as it comes: the values are undefined."""
    if device is not None:
        with scope.on(device_named(device, "empty")):
            return empty(*size, dtype=dtype, requires_grad=requires_grad)
    element_type = dtypes.float32 if dtype is None else _typed("empty", dtype)
    array = empty_array(sizes_of(size, "empty"), element_type)
    return Tensor(array, requires_grad=requires_grad)


@function(
    method=False,
    samples=[sample(n=3), sample(n=2, m=4), sample(n=3, m=1, dtype=dtypes.int64), sample(n=0)],
    wrong=[wrong(sample(n=2, m=-1), "-1")],
    why=FROM_NUMBERS,
)
@chosen_by_device
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix (n, m) with 1 on the main diagonal and 0 elsewhere."""
    del device
    rows, columns = shapes.check_shape((n, n if m is None else m), "eye")
    out = full_array((rows, columns), 0, dtype or dtypes.float32)
    fill(out.view((min(rows, columns),), (columns + 1,)), 1)
    return Tensor(out, requires_grad=requires_grad)


@function(
    "zero_", samples=[sample((3, 5)), sample((2, 1)), sample(()), sample((0, 3))], why=IN_PLACE
)
def zero_(input: Tensor) -> Tensor:
    """Overwrite every element with 0."""
    return fill_(input, 0)


@function(
    "fill_",
    samples=[
        sample((3, 5), value=0.5),
        sample((2, 1), value=-2),
        sample((), value=True),
    ],
    why=IN_PLACE,
)
def fill_(input: Tensor, value: Number) -> Tensor:
    """Overwrite every element with one value."""
    refuse_recorded("fill_", input)
    fill(input.array, value)
    input.array.storage.version += 1
    return input
