"""DLPack: the C struct by which libraries hand each other tensors, and the capsules around it.

https://dmlc.github.io/dlpack. Whoever takes a capsule renames it and calls the struct's deleter
once; a capsule that nobody takes calls it itself when it dies.
"""

from __future__ import annotations

import ctypes
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.wording import quantity

CPU = 1  # kDLCPU
FRESH_NAME, USED_NAME = b"dltensor", b"used_dltensor"
KINDS = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _DLTensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
# The capsule as an address: its destructor runs when it must not be touched as an object any more.
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = (ctypes.c_void_p, ctypes.c_char_p)

# What is lent out: the struct's address, and all that must live until its deleter is called.
_lent: dict[int, tuple[Any, ...]] = {}


def _give_back(address: int, lent: dict[int, tuple[Any, ...]] = _lent) -> None:
    lent.pop(address, None)


def _forget_unused(
    capsule: int,
    is_valid: Any = _api.PyCapsule_IsValid,
    pointer: Any = _api.PyCapsule_GetPointer,
    name: bytes = FRESH_NAME,
    give_back: Any = _give_back,
) -> None:
    if is_valid(capsule, name):
        give_back(pointer(capsule, name))


# Memory is given back while Python ends, too, when a module's names are gone: these two never go,
# and what they use they have as defaults.
_give_back_c = _Deleter(_give_back)
_forget_unused_c = _Deleter(_forget_unused)
for _callback in (_give_back_c, _forget_unused_c):
    _api.Py_IncRef(ctypes.py_object(_callback))


@dataclass(frozen=True)
class Lent:
    """A tensor in somebody's memory, as the struct describes it; strides in elements."""

    address: int
    device: int
    kind: str
    bits: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None


def lent_out() -> int:
    """How many tensors are lent to others at the moment."""
    return len(_lent)


def lend(tensor: Lent, owner: object) -> Any:
    """A capsule for a tensor in the CPU's memory, which `owner` keeps alive."""
    ndim = len(tensor.shape)
    sizes = (ctypes.c_int64 * max(ndim, 1))(*tensor.shape)
    steps = (ctypes.c_int64 * max(ndim, 1))(*(tensor.strides or ()))
    managed = _Managed()
    managed.tensor = _DLTensor(
        tensor.address, tensor.device, 0, ndim, KINDS[tensor.kind], tensor.bits, 1, sizes, steps, 0
    )
    managed.deleter = ctypes.cast(_give_back_c, ctypes.c_void_p)
    address = ctypes.addressof(managed)
    _lent[address] = (managed, sizes, steps, owner)
    return _api.PyCapsule_New(address, FRESH_NAME, ctypes.cast(_forget_unused_c, ctypes.c_void_p))


class Loan:
    """A capsule that was opened. Once taken, its deleter is called when this object dies."""

    def __init__(self, capsule: object) -> None:
        self._deleter: Any = None  # once taken
        self._capsule = capsule
        self._pointer = 0
        if _api.PyCapsule_IsValid(id(capsule), FRESH_NAME):
            self._pointer = _api.PyCapsule_GetPointer(id(capsule), FRESH_NAME)

    @property
    def usable(self) -> bool:
        """False for what is no such capsule, or was taken by someone else."""
        return self._pointer != 0

    def read(self) -> Lent:
        """What the struct says."""
        t = _Managed.from_address(self._pointer).tensor
        names = {code: name for name, code in KINDS.items()}
        kind = (
            names.get(t.code, f"type code {t.code}") if t.lanes == 1 else quantity(t.lanes, "lane")
        )
        return Lent(
            address=(t.data or 0) + t.byte_offset,
            device=t.device_type,
            kind=kind,
            bits=t.bits,
            shape=tuple(t.shape[: t.ndim]) if t.ndim else (),
            strides=tuple(t.strides[: t.ndim]) if t.ndim and t.strides else None,
        )

    def take(self) -> None:
        """From here on the memory is ours to give back."""
        _api.PyCapsule_SetName(id(self._capsule), USED_NAME)
        deleter = _Managed.from_address(self._pointer).deleter
        self._deleter = _Deleter(deleter) if deleter else None

    def __del__(self) -> None:
        if self._deleter is not None:
            self._deleter(self._pointer)
