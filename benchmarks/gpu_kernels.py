"""Bandwidth of each family of kernels, against the copy that the same device makes by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import gpu_device
from benchmarks.gpu_device import Effort
from benchmarks.race import Say
from gradcli import engine
from gradcli.bench import launches
from gradcli.engine import Tensor, optim
from gradcli.engine.device.gpu.device import GPU, Memory
from gradcli.engine.device.gpu.driver import Address
from gradcli.engine.nn import functional as F

FLOAT = 4
LARGEST, QUICK_NUMBERS = 1 << 28, 1 << 13
PIECE = 1 << 24  # numbers that are drawn; large tensors repeat them
TENSORS = 8  # that must find place at once
WIDTH, CLASSES = 1024, 4096

Work = Callable[[], object]


class Numbers:
    """Large tensors of normal numbers on the device."""

    def __init__(self, gpu: GPU, count: int) -> None:
        self.count = count
        self._device = gpu.name
        self._piece = engine.randn(min(count, PIECE), generator=engine.Generator(1)).to(gpu.name)

    def __call__(self, *shape: int) -> Tensor:
        """A tensor of its own memory."""
        size = self._piece.shape[0]
        numbers: Tensor = self._piece.expand(self.count // size, size).clone()
        return numbers.reshape(shape or (-1,))

    def wide(self, columns: int) -> Tensor:
        """As rows of so many numbers."""
        return self(self.count // columns, columns)

    def classes(self, count: int, classes: int) -> Tensor:
        """Labels."""
        labels: Tensor = engine.randint(0, classes, (count,), generator=engine.Generator(2))
        return labels.to(self._device)


@dataclass(frozen=True)
class Item:
    """A piece of work that moves `moved` tensors of all numbers at least, read or written.

    `begin` makes everything it needs; only the launches of what it gives are timed.
    """

    family: str
    name: str
    moved: float
    begin: Callable[[Numbers], Work]


def _of(function: Callable[..., object], tensors: int = 1, columns: int = WIDTH) -> Any:
    """A function of some tensors of that many columns."""

    def begin(numbers: Numbers) -> Work:
        inputs = [numbers.wide(columns) for _ in range(tensors)]
        return lambda: function(*inputs)

    return begin


def _back(function: Callable[..., Tensor], columns: int = WIDTH) -> Any:
    """The way back of a function of one tensor: the gradients of all that asks for one."""

    def begin(numbers: Numbers) -> Work:
        x = numbers.wide(columns).requires_grad_()
        y = function(x)
        g = numbers.wide(columns)
        return lambda: engine.grad(y, x, g, retain_graph=True)

    return begin


def _stepped(make: Callable[[list[Tensor]], optim.Optimizer]) -> Any:
    """A step of an optimizer that has made one before."""

    def begin(numbers: Numbers) -> Work:
        p = numbers().requires_grad_()
        p.grad = numbers()
        optimizer = make([p])
        optimizer.step()
        return optimizer.step

    return begin


def _layer_norm(x: Tensor) -> Tensor:
    y: Tensor = F.layer_norm(x, (x.shape[-1],))
    return y


def _loss(numbers: Numbers) -> Work:
    scores = numbers.wide(CLASSES)
    labels = numbers.classes(scores.shape[0], CLASSES)
    return lambda: F.cross_entropy(scores, labels)


ITEMS = (
    Item("copy", "clone", 2, _of(Tensor.clone)),
    Item("copy", "transpose", 2, _of(lambda x: x.t().contiguous())),
    Item("elementwise", "add", 3, _of(lambda x, y: x + y, 2)),
    Item("elementwise", "relu", 2, _of(F.relu)),
    Item("elementwise", "exp", 2, _of(engine.exp)),
    Item("elementwise", "gelu", 2, _of(F.gelu)),
    Item("elementwise", "gelu, backward", 3, _back(F.gelu)),
    Item("softmax", "softmax of 1024", 2, _of(lambda x: F.softmax(x, 1))),
    Item("softmax", "softmax of 4096", 2, _of(lambda x: F.softmax(x, 1), columns=4096)),
    Item("softmax", "softmax of 1024, backward", 3, _back(lambda x: F.softmax(x, 1))),
    Item("layer norm", "layer norm of 1024", 2, _of(_layer_norm)),
    Item("layer norm", "layer norm of 1024, backward", 3, _back(_layer_norm)),
    Item("optimizer", "AdamW", 7, _stepped(lambda p: optim.AdamW(p, lr=1e-9))),
    Item("optimizer", "SGD, momentum", 5, _stepped(lambda p: optim.SGD(p, lr=1e-9, momentum=0.9))),
    Item("sum", "sum", 1, _of(engine.sum)),
    Item("sum", "sum along 1", 1, _of(lambda x: engine.sum(x, 1))),
    Item("sum", "sum along 0", 1, _of(lambda x: engine.sum(x, 0))),
    Item("loss", "cross entropy of 4096", 1, _loss),
)


def families(gpu: GPU, quick: bool, say: Say) -> dict[str, Any]:
    """GB/s of each item, and its share of the device's own copy at that size."""
    numbers = Numbers(gpu, QUICK_NUMBERS if quick else _fitting(gpu))
    effort = gpu_device.QUICK if quick else Effort()
    ceiling = _copy(gpu, numbers, effort)
    rows = {item.name: _row(gpu, item, numbers, effort) for item in ITEMS}
    ceiling = max(ceiling, _copy(gpu, numbers, effort))
    for name, row in rows.items():
        if "gbs" in row:
            row["share"] = round(row["gbs"] / ceiling, 3)
            say(f"  {name}: {row['gbs']:.0f} GB/s, {row['share']:.0%} of a copy")
        else:
            say(f"  {name}: {row['missing']}")
    return {"numbers": numbers.count, "copy_gbs": round(ceiling, 1), "rows": rows}


def _fitting(gpu: GPU) -> int:
    """As many numbers as leave half of the memory free: a power of two."""
    most = gpu.driver.free_memory() // (2 * TENSORS * FLOAT)
    return min(LARGEST, 1 << (most.bit_length() - 1))


def _copy(gpu: GPU, numbers: Numbers, effort: Effort) -> float:
    """GB/s of the device's own copy, read and written."""
    source, to = numbers(), numbers()
    work = launches.copies(gpu, _begin(to), _begin(source), numbers.count * FLOAT)
    measures = gpu_device.timed({"copy": work}, effort)["copy"]
    return 2 * numbers.count * FLOAT / measures.ms / 1e6


def _begin(tensor: Tensor) -> Address:
    memory = tensor.array.storage
    assert isinstance(memory, Memory), "it lies on the device"
    return Address(memory.handle, 0)


def _row(gpu: GPU, item: Item, numbers: Numbers, effort: Effort) -> dict[str, Any]:
    nbytes = int(item.moved * numbers.count * FLOAT)
    row: dict[str, Any] = {"family": item.family, "bytes": nbytes}
    try:
        work = item.begin(numbers)
        with launches.record(gpu) as noted:
            alive = work()
        measures = gpu_device.timed({"": launches.replays(gpu, noted)}, effort)[""]
        del alive
    except Exception as error:  # of whatever kind: the other rows are still worth having
        return {**row, "missing": f"{type(error).__name__}: {error}"[:300]}
    gpu.trim()
    return {
        **row,
        "launches": len(noted),
        **measures.as_json(),
        "gbs": round(nbytes / measures.ms / 1e6, 1),
    }
