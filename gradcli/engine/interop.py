"""Memory shared with other libraries: NumPy, DLPack, the buffer protocol. No copies."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Sequence
from typing import Any

from gradcli.engine import recording
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.device import cpu, dlpack
from gradcli.engine.device.dlpack import Lent, Loan
from gradcli.engine.dtype import DTYPES, DType
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import AutogradError, DeviceError, DTypeError, OptionError, ShapeError

_TYPE_LETTERS = {"float32": "f4", "float64": "f8", "int32": "i4", "int64": "i8", "uint8": "u1"}
_TYPESTR = {DTYPES[name]: letters for name, letters in _TYPE_LETTERS.items()} | {
    DTYPES["bool"]: "b1"
}
_BY_TYPESTR = {text: dtype for dtype, text in _TYPESTR.items()}
_NATIVE = "<" if struct.pack("=h", 1) == b"\x01\x00" else ">"


def _shareable(tensor: Tensor, how: str) -> Array:
    """Its memory, to be handed out: a step that does so is not captured, as in `item`."""
    if tensor.requires_grad:
        raise AutogradError(f"{how}: this tensor asks for a gradient; use detach() first")
    recording.reading()
    return tensor.array


def _on_cpu(array: Array, how: str) -> Array:
    """The array itself; refuses memory that no other library can look into."""
    if array.storage.device is not None:
        name = array.storage.device.name
        raise DeviceError(f"{how}: the tensor lies on {name}, not on the CPU; take x.cpu()")
    return array


def _with_format(tensor: Tensor, how: str) -> Array:
    """The same for those who tell element types by a letter, and have none for bfloat16."""
    array = _shareable(tensor, how)
    if not array.dtype.format:
        raise DTypeError(f"{how}: there is no {array.dtype.name} in NumPy; use x.float() first")
    return array


def _borrowed(
    address: int, shape: Shape, strides: Sequence[int], dtype: DType, owner: object, how: str
) -> Tensor:
    """A tensor over memory that `owner` keeps alive; strides in elements."""
    shape = shapes.check_shape(shape, how)
    if 0 in shape:
        return Tensor(Array(cpu.allocate(0), 0, shape, shapes.contiguous_strides(shape), dtype))
    if any(size > 1 and stride < 0 for size, stride in zip(shape, strides, strict=True)):
        raise ShapeError(f"{how}: strides {tuple(strides)} run backwards; copy the array first")
    if address % dtype.size:
        raise ShapeError(f"{how}: the memory is not aligned for {dtype}; copy the array first")
    last = sum((size - 1) * step for size, step in zip(shape, strides, strict=True) if size > 1)
    storage = cpu.borrow_address(address, (last + 1) * dtype.size, owner)
    return Tensor(Array(storage, 0, shape, tuple(strides), dtype), alias=True)


# -- NumPy -----------------------------------------------------------------------------------------


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of a NumPy array: a change in one is seen in the other."""
    facts = getattr(ndarray, "__array_interface__", None)
    if not isinstance(facts, dict) or isinstance(ndarray, Tensor):
        raise DTypeError(f"from_numpy: takes a NumPy array, got {type(ndarray).__name__}")
    typestr = str(facts["typestr"])
    dtype = _BY_TYPESTR.get(typestr[1:]) if typestr[0] in (_NATIVE, "|", "=") else None
    if dtype is None:
        raise DTypeError(
            f"from_numpy: elements of type '{typestr}' have no type here; use astype() first"
        )
    address, read_only = facts["data"]
    if read_only:
        raise OptionError("from_numpy: the array is read-only; use from_numpy(array.copy())")
    shape = tuple(facts["shape"])
    steps = facts.get("strides")
    if steps is None:
        strides = shapes.contiguous_strides(shape)
    else:
        odd = [d for d, step in enumerate(steps) if step % dtype.size and shape[d] > 1]
        if odd:
            raise ShapeError(
                f"from_numpy: strides {steps} are no whole numbers of elements; copy the array"
            )
        strides = tuple(step // dtype.size for step in steps)
    return _borrowed(address, shape, strides, dtype, ndarray, "from_numpy")


def array_interface(tensor: Tensor) -> dict[str, Any]:
    """What NumPy needs to know to share the memory, which lives as long as NumPy's view."""
    array = _on_cpu(_with_format(tensor, "numpy"), "numpy")
    size = array.dtype.size
    start = array.offset * size
    data = cpu.window(array.storage, start, array.storage.nbytes - start if array.numel else 0)
    return {
        "version": 3,
        "shape": array.shape,
        "strides": tuple(step * size for step in array.strides),
        "typestr": ("|" if size == 1 else _NATIVE) + _TYPESTR[array.dtype],
        "data": data,
        "offset": 0,
    }


@function("numpy")
def _numpy(tensor: Tensor, *, force: bool = False) -> Any:
    """A NumPy array over the same memory; with force, of a tensor that asks for a gradient too."""
    if force:
        tensor = tensor.detach()
    _on_cpu(_with_format(tensor, "numpy"), "numpy")
    try:
        module = importlib.import_module("numpy")
    except ImportError:
        raise DeviceError(
            "numpy: NumPy is not installed; use tolist() or memoryview(), or `pip install numpy`"
        ) from None
    return module.asarray(tensor)


@function("__array__")
def _as_array(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """The array that numpy.asarray(tensor, dtype) returns."""
    array = _numpy(tensor)
    result = array if dtype is None else array.astype(dtype, copy=False)
    if copy is False and result is not array:
        raise OptionError(f"numpy: {tensor.dtype} cannot become {dtype} without a copy")
    return result.copy() if copy and result is array else result


# -- buffer protocol -------------------------------------------------------------------------------


@function("__buffer__")
def _buffer(tensor: Tensor, flags: int) -> memoryview:
    """memoryview(tensor), from Python 3.12 on."""
    del flags
    array = _with_format(tensor, "memoryview")
    if not array.is_contiguous():
        raise BufferError("memoryview: the tensor is not contiguous; call contiguous() first")
    flat: Any = array.memoryview()
    if 0 in array.shape:  # memoryview.cast knows no size 0
        empty: memoryview = flat.cast(array.dtype.format)
        return empty
    shaped: memoryview = flat.cast(array.dtype.format, list(array.shape))
    return shaped


# -- DLPack ----------------------------------------------------------------------------------------


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of another library's; that library is told when it is let go."""
    if not hasattr(ext_tensor, "__dlpack__"):
        kind = type(ext_tensor).__name__
        raise DTypeError(f"from_dlpack: takes an object with __dlpack__, got {kind}")
    device, _ = ext_tensor.__dlpack_device__()
    if int(device) != dlpack.CPU:
        raise DeviceError(f"from_dlpack: the tensor lies on device type {int(device)}, not the CPU")
    loan = Loan(ext_tensor.__dlpack__())
    if not loan.usable:
        raise OptionError("from_dlpack: got no fresh capsule; each can be taken only once")
    lent = loan.read()
    dtype = _dtype_of(lent)
    strides = shapes.contiguous_strides(lent.shape) if lent.strides is None else lent.strides
    result = _borrowed(lent.address, lent.shape, strides, dtype, loan, "from_dlpack")
    loan.take()
    return result


def _dtype_of(lent: Lent) -> DType:
    for dtype in DTYPES.values():
        if (_kind(dtype), dtype.size * 8) == (lent.kind, lent.bits):
            return dtype
    raise DTypeError(f"from_dlpack: {lent.bits}-bit {lent.kind} has no type here")


def _kind(dtype: DType) -> str:
    return {"uint8": "uint", "bfloat16": "bfloat"}.get(dtype.name, dtype.kind)


@function("__dlpack__")
def _to_dlpack(
    tensor: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule of the same memory, for from_dlpack() of another library."""
    del max_version  # a consumer of a newer version reads the older form too
    array = _on_cpu(_shareable(tensor, "__dlpack__"), "__dlpack__")
    if stream is not None:
        raise OptionError(f"__dlpack__: the CPU has no streams, got stream={stream!r}")
    if dl_device is not None and tuple(map(int, dl_device)) != (dlpack.CPU, 0):
        raise BufferError(f"__dlpack__: the tensor lies on the CPU, not on {tuple(dl_device)}")
    if copy:
        array = array.copy()
    if not array.storage.writable:
        raise BufferError("__dlpack__: the tensor shares read-only memory; use clone() first")
    size = array.dtype.size
    start = cpu.address(array.storage) + array.offset * size if array.numel else 0
    lent = Lent(start, dlpack.CPU, _kind(array.dtype), size * 8, array.shape, array.strides)
    return dlpack.lend(lent, array.storage)


@function("__dlpack_device__")
def _dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """DLPack's name for the CPU."""
    del tensor
    return (dlpack.CPU, 0)


# A property, which function() does not make.
Tensor.__array_interface__ = property(array_interface)  # type: ignore[attr-defined]
