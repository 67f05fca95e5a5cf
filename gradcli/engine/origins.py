"""Origins: in which call NaN and infinity began, found by looking at every call of a step.

Each call whose outputs are not all finite either hands on what its inputs held, or is where that
began. What stands there on purpose, the -inf of a mask, is no beginning until something else comes
of it: NaN, or infinity of the other sign.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary, WeakSet

from gradcli.dataclass import dataclass
from gradcli.engine import observing, table
from gradcli.engine.array import Array
from gradcli.engine.autocast import autocast
from gradcli.engine.device.cpu import Storage
from gradcli.engine.graph import Node, no_grad, now
from gradcli.engine.tensor import Tensor

KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "nan": lambda x: table.isnan(x),
    "inf": lambda x: table.eq(x, math.inf),
    "-inf": lambda x: table.eq(x, -math.inf),
}


@dataclass(frozen=True)
class Origin:
    """The call in which values that are not finite began.

    Attributes:
        number: of the call among those that were inspected.
        layer: the one that made it, as `Origins.enter` was told; empty outside all.
        count: how many of its `size` values are not finite.
        largest: the largest size of a finite number among its inputs.
        already: how many numbers of its inputs were not finite before it.
        purpose: it was told to write them, or had them from outside the step.
    """

    number: int
    layer: str
    op: str
    backward: bool
    count: int
    size: int
    largest: float
    already: int
    purpose: bool


class Origins:
    """An Observer (observing.py) that knows where what is not finite began."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Storage, Origin] = WeakKeyDictionary()
        self._step_storages: WeakSet[Storage] = WeakSet()
        self._began: list[Origin] = []
        self._calls = 0
        self._stack = [""]
        self._numbers, self._layers = [now()], [""]  # from which node on which layer made them

    def enter(self, layer: str) -> None:
        """The calls from here on, and the backward pass through them, are of this layer."""
        self._stack.append(layer)
        self._mark()

    def leave(self) -> None:
        """The layer around it goes on."""
        self._stack.pop()
        self._mark()

    def _mark(self) -> None:
        self._numbers.append(now())
        self._layers.append(self._stack[-1])

    @property
    def layer(self) -> str:
        """Whose the calls are now."""
        return self._stack[-1]

    def of(self, array: Array) -> Origin | None:
        """Where the values of an array began that are not finite."""
        return self._of.get(array.storage)

    def first(self, *, backward: bool) -> Origin | None:
        """The first origin in the forward or in the backward pass, in any memory."""
        origins = [origin for origin in self._began if origin.backward == backward]
        return min(origins, key=_rank, default=None)

    # What calls tell.

    def forward(
        self,
        op: str,
        inputs: Sequence[Array | None],
        options: Mapping[str, object],
        outputs: Sequence[Array],
    ) -> None:
        """An op has computed its outputs."""
        deliberate = frozenset(str(v) for v in options.values() if v in (math.inf, -math.inf))
        self._look(_Call(op, self._stack[-1], False, deliberate), inputs, outputs)

    def backward(
        self, node: Node, grads: Sequence[Array | None], results: Sequence[Array | None]
    ) -> None:
        """A node has computed the gradients of its inputs."""
        layer = self._layers[bisect_right(self._numbers, node.number) - 1]
        saved = list(node.saved.values()) if isinstance(node.saved, dict) else []
        meeting = [g for g in grads if g is not None and g.storage not in self._of]
        self._look(_Call(f"add (gradients of {node.name})", layer, True), [], meeting)
        self._look(_Call(node.name, layer, True), [*grads, *saved], results)

    def _look(self, call: _Call, inputs: Iterable[object], outputs: Iterable[object]) -> None:
        with observing.by(None), no_grad(), autocast(enabled=False):
            self._calls += 1
            results = list(_floats(outputs))
            bad = [array for array in results if not finite(array)]
            if bad:
                operands = list(_floats(inputs))
                odd = [array for array in operands if not finite(array)]
                new = _kinds(bad) - _kinds(odd) - call.deliberate
                origin = self._earlier(odd, new) or self._beginning(call, operands, odd, bad, new)
                self._of.update((array.storage, origin) for array in bad)
            self._step_storages.update(array.storage for array in results)

    def _earlier(self, odd: Sequence[Array], new: frozenset[str]) -> Origin | None:
        """The origin before this call; None if this call is the origin."""
        origins = [self._of[array.storage] for array in odd if array.storage in self._of]
        first = min(origins, key=_rank, default=None)
        return None if first is None or (first.purpose and new) else first

    def _beginning(
        self,
        call: _Call,
        operands: Sequence[Array],
        odd: Sequence[Array],
        bad: Sequence[Array],
        new: frozenset[str],
    ) -> Origin:
        """Enter this call as an origin. What lies in memory of the step was written in place."""
        in_place = any(array.storage in self._step_storages for array in odd)
        origin = Origin(
            number=self._calls,
            layer=call.layer,
            op=call.op,
            backward=call.backward,
            count=sum(map(count_nonfinite, bad)),
            size=sum(array.numel for array in bad),
            largest=max(map(_largest, operands), default=0.0),
            already=sum(map(count_nonfinite, odd)),
            purpose=not new and not in_place,
        )
        self._began.append(origin)
        return origin


@dataclass(frozen=True)
class _Call:
    """A call to inspect; `deliberate` are the infinities among its options."""

    op: str
    layer: str
    backward: bool
    deliberate: frozenset[str] = frozenset()


def _rank(origin: Origin) -> tuple[bool, int]:
    """What nobody asked for comes before what stands there on purpose; else the first one."""
    return origin.purpose, origin.number


def _floats(values: Iterable[object]) -> Iterator[Array]:
    for value in values:
        if isinstance(value, Array) and value.dtype.is_floating_point and value.numel:
            yield value


def finite(array: Array) -> bool:
    """Whether no element is NaN or infinite: 0 times such an element is NaN, and so is the sum."""
    if not array.dtype.is_floating_point or not array.numel:
        return True
    return float((Tensor(array) * 0.0).sum().item()) == 0.0


def _kinds(arrays: Iterable[Array]) -> frozenset[str]:
    """Which of nan, inf and -inf are among the numbers."""
    return frozenset(kind for array in arrays for kind, test in KINDS.items() if _any(test, array))


def _any(test: Callable[[Tensor], Tensor], array: Array) -> bool:
    return bool(test(Tensor(array)).any().item())


def count_nonfinite(array: Array) -> int:
    """How many elements are NaN or infinite."""
    return array.numel - int(table.isfinite(Tensor(array)).sum().item())


def _largest(array: Array) -> float:
    x = Tensor(array)
    return float(table.where(table.isfinite(x), x.abs(), 0.0).max().item())
