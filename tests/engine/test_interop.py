"""Memory shared with NumPy, DLPack and the buffer protocol."""

from __future__ import annotations

import ctypes
import gc
import importlib
import subprocess
import sys
from array import array as packed

import pytest

from gradcli import engine
from gradcli.engine.device import dlpack
from gradcli.errors import AutogradError, DeviceError, DTypeError, OptionError, ShapeError

DTYPES = [
    engine.float32,
    engine.float64,
    engine.int32,
    engine.int64,
    engine.uint8,
    engine.bool_,
]


class Foreign:
    """Another library's tensor: counts how often its deleter is called."""

    def __init__(self, numbers, *, code=2, bits=32, device=1, strides=None, shape=None):
        self.memory = (ctypes.c_float * len(numbers))(*numbers)
        self.deleted = 0
        self.device = device
        shape = shape or (len(numbers),)
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        self.steps = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.deleter = dlpack._Deleter(self._delete)
        self.managed = dlpack._Managed()
        self.managed.tensor = dlpack._DLTensor(
            ctypes.addressof(self.memory), device, 0, len(shape), code, bits, 1, self.sizes,
            self.steps, 0,
        )  # fmt: skip
        self.managed.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, **_):
        address = ctypes.addressof(self.managed)
        return ctypes.pythonapi.PyCapsule_New(address, b"dltensor", None)


# -- DLPack without any other library ----------------------------------------------------------


def test_a_foreign_tensor_is_shared_and_its_deleter_is_called_once():
    foreign = Foreign([1, 2, 3])
    x = engine.from_dlpack(foreign)
    foreign.memory[1] = 20
    assert x.tolist() == [1, 20, 3]
    view = x[1:]
    del x
    gc.collect()
    assert foreign.deleted == 0
    assert view.tolist() == [20, 3]
    del view
    gc.collect()
    assert foreign.deleted == 1


def test_bytes_of_a_foreign_tensor_outlive_the_tensor():
    foreign = Foreign([1, 2, 3])
    window = engine.from_dlpack(foreign).memoryview()
    gc.collect()
    assert foreign.deleted == 0
    assert window.cast("f").tolist() == [1, 2, 3]


def test_strides_of_a_foreign_tensor_are_kept():
    foreign = Foreign([1, 2, 3, 4, 5, 6], shape=(3, 2), strides=(1, 3))
    assert engine.from_dlpack(foreign).tolist() == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.parametrize(
    ("foreign", "error", "says"),
    [
        (Foreign([1], code=5, bits=16), DTypeError, "16-bit type code 5"),
        (Foreign([1], bits=16), DTypeError, "16-bit float"),
        (Foreign([1], device=2), DeviceError, "device type 2"),
        (Foreign([1, 2], strides=(-1,)), ShapeError, "run backwards"),
    ],
)
def test_a_foreign_tensor_that_is_refused_is_left_to_its_owner(foreign, error, says):
    with pytest.raises(error, match=says):
        engine.from_dlpack(foreign)
    gc.collect()
    assert foreign.deleted == 0


def test_a_capsule_can_be_taken_only_once():
    class Again:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self):
            return self.capsule

    again = Again(engine.ones(2).__dlpack__())
    assert engine.from_dlpack(again).tolist() == [1, 1]
    with pytest.raises(OptionError, match="only once"):
        engine.from_dlpack(again)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_goes_out_and_comes_back_without_a_copy(dtype):
    x = engine.tensor([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    y = engine.from_dlpack(x.t())
    assert y.dtype is dtype
    assert y.tolist() == [[1, 0], [0, 1], [1, 1]]
    x[0, 1] = 1
    assert y.tolist() == [[1, 0], [1, 1], [1, 1]]


def test_a_lent_tensor_lives_until_the_last_user_lets_go():
    before = dlpack.lent_out()
    y = engine.from_dlpack(engine.tensor([1.0, 2.0]))
    gc.collect()
    assert dlpack.lent_out() == before + 1
    assert y.tolist() == [1, 2]
    del y
    gc.collect()
    assert dlpack.lent_out() == before


def test_a_capsule_that_nobody_takes_gives_its_memory_back():
    before = dlpack.lent_out()
    capsule = engine.ones(3).__dlpack__()
    assert dlpack.lent_out() == before + 1
    del capsule
    gc.collect()
    assert dlpack.lent_out() == before


def test_dlpack_with_copy_does_not_share():
    x = engine.ones(2)
    capsule = x.__dlpack__(copy=True)
    x.fill_(5)
    holder = type("Holder", (), {
        "__dlpack__": lambda self: capsule, "__dlpack_device__": lambda self: (1, 0),
    })()  # fmt: skip
    assert engine.from_dlpack(holder).tolist() == [1, 1]


def test_dlpack_refuses_gradients_streams_and_other_devices():
    with pytest.raises(AutogradError, match="detach"):
        engine.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(OptionError, match="streams"):
        engine.ones(2).__dlpack__(stream=3)
    with pytest.raises(BufferError, match="lies on the CPU"):
        engine.ones(2).__dlpack__(dl_device=(2, 0))
    with pytest.raises(DTypeError, match="__dlpack__"):
        engine.from_dlpack([1, 2])
    assert engine.ones(2).__dlpack_device__() == (1, 0)


def test_a_capsule_left_at_exit_does_no_harm():
    code = (
        "from gradcli import engine\n"
        "kept = engine.ones(3).__dlpack__()\n"
        "taken = engine.from_dlpack(engine.ones(3))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# -- buffer protocol ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("buffer", "dtype", "expected"),
    [
        (packed("f", [1.5, 2]), engine.float32, [1.5, 2]),
        (packed("q", [-1, 2]), engine.int64, [-1, 2]),
        (b"\x01\xff", engine.uint8, [1, 255]),
        (memoryview(b"\x01\x00").cast("?"), engine.bool_, [True, False]),
        (memoryview(packed("d", [1, 2, 3]))[::2], engine.float64, [1, 3]),
    ],
)
def test_tensor_copies_what_shows_its_memory(buffer, dtype, expected):
    x = engine.tensor(buffer)
    assert x.dtype is dtype
    assert x.tolist() == expected


def test_frombuffer_keeps_the_buffer_alive():
    x = engine.frombuffer(bytearray(b"\x00\x00\x80\x3f" * 2), dtype=engine.float32)
    gc.collect()
    assert x.tolist() == [1, 1]


def test_bytes_shown_by_a_tensor_outlive_it():
    window = memoryview(engine.tensor([1.0, 2.0]).memoryview()).cast("f")
    gc.collect()
    engine.zeros(2)
    assert window.tolist() == [1, 2]


def test_buffer_has_the_shape_and_shares():
    x = engine.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    view = x.__buffer__(0)
    assert (view.shape, view.format) == ((2, 3), "f")
    view[1, 0] = 40
    assert x[1, 0].item() == 40
    assert engine.zeros(0, 3).__buffer__(0).nbytes == 0


def test_buffer_refuses_gradients_and_gaps():
    with pytest.raises(AutogradError, match="detach"):
        engine.ones(2, requires_grad=True).__buffer__(0)
    with pytest.raises(BufferError, match="contiguous"):
        engine.ones(2, 3).t().__buffer__(0)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="memoryview(x) calls __buffer__ from 3.12")
def test_memoryview_of_a_tensor():
    assert memoryview(engine.tensor([1.0, 2.0])).tolist() == [1, 2]


# -- NumPy -------------------------------------------------------------------------------------


@pytest.fixture(name="np")
def numpy():
    return pytest.importorskip("numpy", reason="needs the extra: pip install '.[parity]'")


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_from_numpy_shares_memory_both_ways(np, name):
    a = np.array([[0, 1, 1], [1, 0, 1]], dtype=name)
    x = engine.from_numpy(a)
    assert str(x.dtype).endswith(name)
    a[0, 0] = 1
    assert x[0, 0].item() == 1
    x[1, 1] = 1
    assert a[1, 1] == 1


def test_from_numpy_keeps_strides_and_the_array_alive(np):
    a = np.arange(24.0).reshape(4, 6)
    x = engine.from_numpy(a[1:, ::2].T)
    expected = a[1:, ::2].T.tolist()
    del a
    gc.collect()
    assert x.stride() == (2, 6)
    assert x.tolist() == expected


def test_from_numpy_takes_empty_arrays_and_numbers(np):
    assert engine.from_numpy(np.zeros((0, 3))).shape == (0, 3)
    assert engine.from_numpy(np.array(5)).item() == 5


def test_from_numpy_refuses_what_it_cannot_share(np):
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(OptionError, match=r"read-only; use from_numpy\(array.copy\(\)\)"):
        engine.from_numpy(frozen)
    with pytest.raises(DTypeError, match="'<f2'"):
        engine.from_numpy(np.zeros(2, "float16"))
    with pytest.raises(DTypeError, match="'>f4'"):
        engine.from_numpy(np.zeros(2, ">f4"))
    with pytest.raises(ShapeError, match="backwards"):
        engine.from_numpy(np.zeros(3)[::-1])
    records = np.zeros(3, dtype=[("a", "u1"), ("b", "<f4")])
    with pytest.raises(ShapeError, match="elements"):
        engine.from_numpy(records["b"])
    with pytest.raises(DTypeError, match="takes a NumPy array, got list"):
        engine.from_numpy([1, 2])


def test_numpy_shares_memory_and_outlives_the_tensor(np):
    x = engine.tensor([[1.0, 2.0], [3.0, 4.0]])
    a = x.t().numpy()
    x[0, 1] = 20
    assert a.tolist() == [[1, 3], [20, 4]]
    a[0, 0] = 10
    assert x[0, 0].item() == 10
    del x
    gc.collect()
    engine.zeros(2, 2)
    assert a.tolist() == [[10, 3], [20, 4]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_asarray_takes_every_type(np, dtype):
    a = np.asarray(engine.tensor([1, 0], dtype=dtype))
    assert str(a.dtype) == str(dtype).removeprefix("gradcli.")
    assert a.tolist() == [1, 0]


def test_array_with_another_type_copies(np):
    x = engine.tensor([1.5, 2.5])
    a = np.array(x, dtype="int64")
    a[0] = 9
    assert a.tolist() == [9, 2]
    assert x.tolist() == [1.5, 2.5]
    assert x.__array__("float64").dtype == "float64"
    with pytest.raises(OptionError, match="without a copy"):
        x.__array__("float64", copy=False)


def test_numpy_refuses_tensors_that_ask_for_a_gradient(np):
    x = engine.ones(2, requires_grad=True)
    for convert in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(AutogradError, match="detach"):
            convert()
    assert x.numpy(force=True).tolist() == [1, 1]


def test_numpy_takes_and_gives_dlpack(np):
    a = np.arange(6, dtype="float32").reshape(2, 3)
    x = engine.from_dlpack(a.T)
    a[0, 1] = 10
    assert x.tolist() == [[0, 3], [10, 4], [2, 5]]
    b = np.from_dlpack(x)
    del x, a
    gc.collect()
    assert b.tolist() == [[0, 3], [10, 4], [2, 5]]


def test_numpy_missing_is_said(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(DeviceError, match="NumPy is not installed"):
        engine.ones(2).numpy()
