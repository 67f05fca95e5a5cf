"""Replays of calls: on a GPU's driver, and on the CPU in float64; and what makes results equal."""

from __future__ import annotations

import math
import struct
from array import array as packed
from collections.abc import Sequence

from gradcli.dataclass import dataclass
from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import launches, source
from gradcli.engine.device.gpu.driver import Address, Driver
from gradcli.engine.device.gpu.launch import (
    LAUNCHERS,
    CallSpec,
    KernelModule,
    LaunchList,
)
from gradcli.engine.device.kernels import lib
from gradcli.engine.dtype import DType
from gradcli.engine.kernelcheck.calls import BlockData, CallOperand, CheckedCall
from gradcli.errors import DeviceError

del launches  # imported to fill LAUNCHERS
CODE = 77  # by which a kernel is known to have refused a value
_REPORT = struct.Struct("6i")
_LARGEST = 3.4028234663852886e38  # of float32
_SMALLEST = 1.2e-38  # float32 with all its digits
_HALF_STEP = 2.0**-8  # of bfloat16
_CODES = {"bool": "B"}  # array.array knows no bool
Numbers = Sequence[float]


def on_gpu(dtype: DType) -> DType:
    """The type that a GPU has for one of the CPU's."""
    return dtypes.float32 if dtype is dtypes.float64 else dtype


def wide(dtype: DType) -> DType:
    """The type in which the CPU gives the reference."""
    return dtypes.float64 if dtype is dtypes.float32 else dtype


def converted(block: BlockData, dtype: DType) -> bytes:
    """A block's numbers in another float type."""
    if block.dtype is dtype:
        return block.data
    return packed(dtype.format, packed(block.dtype.format, block.data)).tobytes()


@dataclass(frozen=True)
class Outcome:
    """What a call left behind: all of its memory, and whether it refused a value.

    Attributes:
        refused: where it was, the value and the limit; None where nothing was refused.
    """

    types: tuple[DType, ...]
    blocks: tuple[bytes, ...]
    refusal: tuple[int, int, int] | None = None

    def numbers(self) -> list[Numbers]:
        """The blocks as numbers."""
        pairs = zip(self.blocks, self.types, strict=True)
        return [_numbers(data, t) for data, t in pairs]


def _numbers(data: bytes, dtype: DType) -> Numbers:
    if dtype is dtypes.bfloat16:  # the upper half of a float32
        return [struct.unpack("f", struct.pack("I", half << 16))[0] for half in packed("H", data)]
    return packed(_CODES.get(dtype.name, dtype.format), data)


def plan_of(call: CheckedCall, *, tensor_cores: bool = True) -> LaunchList:
    """The launches of a call."""
    operands = [
        CallOperand(t.block, t.offset, t.shape, t.strides, on_gpu(t.dtype)) for t in call.tensors
    ]
    shapes = CallSpec(call.kernel, operands, call.sizes, call.options, tensor_cores)
    return LAUNCHERS[call.kernel](shapes)


def filled(driver: Driver, data: bytes) -> Address:
    """Memory of its own that holds these bytes."""
    address = Address(driver.allocate(len(data)), 0)
    driver.write(address, data)
    return address


def content(driver: Driver, address: Address, nbytes: int) -> bytes:
    """The bytes at an address."""
    data = bytearray(nbytes)
    driver.read(address, memoryview(data))
    return bytes(data)


class Bench:
    """Runs calls on a driver, each tensor in memory of its own that ends where it ends.

    With `whole`, all rows of scalar_ops.h are one module: to try them all, that compiles faster.
    """

    def __init__(self, driver: Driver, *, whole: bool = True) -> None:
        self.driver = driver
        self.whole = whole
        self._loaded: dict[KernelModule, DeviceError | None] = {}

    def module(self, module: KernelModule) -> str:
        """The key of a module, which is loaded when it is first asked for."""
        row = "" if self.whole and module.family == "elementwise" else module.row
        key = module._replace(row=row)
        if key not in self._loaded:
            self._loaded[key] = self._load(key)
        error = self._loaded[key]
        if error is not None:  # compiled once, whatever comes of it
            raise error
        return str(key)

    def text(self, module: KernelModule) -> str:
        """The text of a module."""
        return source.module_text(module, source.prelude_text(self.driver.target))

    def _load(self, module: KernelModule) -> DeviceError | None:
        try:
            self.driver.load(str(module), self.text(module))
        except DeviceError as error:
            return error
        return None

    def run(self, call: CheckedCall, *, recorded: bool = False) -> Outcome:
        """A call's launches, from its memory to what they left there.

        Recorded they are one graph, which is replayed.
        """
        plan = plan_of(call, tensor_cores=self.driver.tensor_cores)
        types = tuple(on_gpu(block.dtype) for block in call.blocks)
        contents = [converted(*pair) for pair in zip(call.blocks, types, strict=True)]
        addresses = [filled(self.driver, data) for data in contents]
        scratch = Address(self.driver.allocate(plan.scratch), 0)
        report = filled(self.driver, bytes(_REPORT.size))
        tensors = [
            Address(addresses[t.block].handle, t.offset * on_gpu(t.dtype).size)
            for t in call.tensors
        ]
        try:
            ready = [
                launch.ready(self.module(launch.module), tensors, scratch, lambda: (report, CODE))
                for launch in plan.launches
            ]
            graph = self.driver.record(ready) if recorded and ready else None
            if graph is not None:
                graph.replay()
            else:
                for launch in ready:
                    self.driver.launch(launch)
            blocks = [
                content(self.driver, address, len(data))
                for address, data in zip(addresses, contents, strict=True)
            ]
            refusal = _REPORT.unpack(content(self.driver, report, _REPORT.size))
        finally:
            for address in (*addresses, scratch, report):
                self.driver.free(address.handle)
        assert refusal[0] in (0, CODE), f"{call.kernel} refused a value as {refusal}"
        return Outcome(types, tuple(blocks), refusal[1:] if refusal[0] else None)


def on_cpu(call: CheckedCall, *, in_float64: bool = True) -> Outcome:
    """The same call on the CPU, in float64 unless told otherwise; whole numbers stay whole."""
    types = tuple(wide(b.dtype) if in_float64 else b.dtype for b in call.blocks)
    storages = []
    for block, dtype in zip(call.blocks, types, strict=True):
        data = converted(block, dtype)
        storage = cpu.allocate(len(data))
        cpu.window(storage, 0, len(data))[:] = data
        storages.append(storage)
    arrays = [
        Array(storages[t.block], t.offset, t.shape, t.strides, types[t.block]) for t in call.tensors
    ]
    refusal = _run_on_cpu(call, arrays)
    blocks = [bytes(cpu.window(storage, 0, storage.nbytes)) for storage in storages]
    return Outcome(types, tuple(blocks), refusal)


def _run_on_cpu(call: CheckedCall, arrays: Sequence[Array]) -> tuple[int, int, int] | None:
    """Run the call; gives the value that the kernel refused, if any."""
    tensors = [array.descriptor for array in arrays]
    arguments = [part for some in (tensors, call.sizes, call.options) for part in (some, len(some))]
    if not lib.gc_run_kernel(cpu.KERNELS[call.kernel], *arguments):
        return None
    error = lib.gc_last_error()
    if error.status in cpu.ERRORS_OF_VALUES:
        return error.where, error.value, error.limit
    raise cpu.refusal(call.kernel, tensors, error)


def _as_float32(value: float) -> float:
    """What float64 numbers beyond float32 become there."""
    return math.copysign(math.inf, value) if abs(value) > _LARGEST else value


def _largest(numbers: Numbers) -> float:
    return max((abs(x) for x in numbers if abs(x) <= _LARGEST), default=0.0)


def difference(outcome: Outcome, expected: Outcome, bound: float) -> str:
    """Empty where all memory is equal within a share of a block's largest number; else where not.

    Whole numbers must be the same ones. bfloat16 may be off by its own rounding too.
    """
    for k, (mine, theirs) in enumerate(zip(outcome.numbers(), expected.numbers(), strict=True)):
        if mine == theirs:
            continue
        floating = expected.types[k].is_floating_point
        allowed = max(bound * _largest(theirs), _SMALLEST) if floating else 0
        rounding = _HALF_STEP if outcome.types[k] is dtypes.bfloat16 else 0.0
        for i, (x, w) in enumerate(zip(mine, theirs, strict=True)):
            want = _as_float32(w) if isinstance(w, float) else w
            near = abs(x - want) <= allowed + (abs(want) * rounding if rounding else 0)
            if not (near or x == want or (x != x and want != want)):
                return f"element {i} of block {k} is {x!r}, not {want!r} (allowed: {allowed:.3g})"
    return ""


def worst(outcome: Outcome, expected: Outcome) -> float:
    """The largest difference of two outcomes, as a share of the largest number of its block."""
    most = 0.0
    for mine, theirs in zip(outcome.numbers(), expected.numbers(), strict=True):
        errors = [abs(x - w) for x, w in zip(mine, theirs, strict=True) if math.isfinite(x - w)]
        most = max(most, max(errors, default=0.0) / (_largest(theirs) or 1.0))
    return most
