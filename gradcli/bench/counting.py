"""How much arithmetic and memory traffic a kernel call is, counted from the shapes of its tensors.

Arithmetic is what the formula needs: 2 M N K for a matrix product. How a kernel counts stands in
csrc/kernels.h; most count one operation for each element of their largest tensor. Traffic is each
tensor once, and twice where the kernel reads what it overwrites, with what stride 0 repeats counted
once: the least that must move, as if nothing were fetched twice.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from gradcli.engine.device.kernels import FACTS, lib
from gradcli.engine.program.record import Call, View


def _largest(call: Call, *_: int) -> int:
    return max((view.numel for view in call.views), default=0)


def _none(*_: object) -> int:
    return 0


def _matmul(call: Call, product: int, factor: int) -> int:
    """2 M N K for each matrix of the batch."""
    return 2 * call.views[product].numel * call.views[factor].shape[-1]


def _filters(call: Call, output: int, weight: int) -> int:
    """2 for each pair of an output and a weight of its filter."""
    return 2 * call.views[output].numel * prod(call.views[weight].shape[1:])


def _steps(call: Call, samples: int, weight: int) -> int:
    """2 for each weight of the hidden state, in each step of each sample."""
    steps, batch, _ = call.views[samples].shape
    return 2 * steps * batch * call.views[weight].numel


def _attention(call: Call, of_keys: int, of_values: int) -> int:
    """2 for each product of a pair of query and key that may see each other.

    There are so many products of two rows of keys' length, and of two rows of values' length.
    """
    q, k, v = call.views[:3]
    queries, keys = q.shape[2], k.shape[2]
    pairs = queries * keys
    if call.sizes[0]:  # causal: query i sees keys 0..i
        pairs = sum(min(i + 1, keys) for i in range(queries))
    each = of_keys * q.shape[3] + of_values * v.shape[3]
    return 2 * q.shape[0] * q.shape[1] * pairs * each


def _chain(call: Call, *_: int) -> int:
    """One operation for each step and element; sizes[0] counts the steps."""
    return call.sizes[0] * _largest(call)


_OPERATIONS: dict[int, Callable[[Call, int, int], int]] = {
    lib.GC_COUNT_LARGEST: _largest,
    lib.GC_COUNT_NONE: _none,
    lib.GC_COUNT_MATMUL: _matmul,
    lib.GC_COUNT_FILTERS: _filters,
    lib.GC_COUNT_STEPS: _steps,
    lib.GC_COUNT_ATTENTION: _attention,
    lib.GC_COUNT_CHAIN: _chain,
}


def work(call: Call) -> tuple[int, int]:
    """Floating-point operations, and bytes that must move at least."""
    facts = FACTS[call.kernel]
    sizes = [_bytes(view) for view in call.views]
    if facts.gathers:
        sizes[0] = sizes[-1]
    sizes += [_bytes(call.outputs[i]) for i in facts.updates]
    count, t, u = facts.operations
    return _OPERATIONS[count](call, t, u), sum(sizes)


def _bytes(view: View) -> int:
    """Of the elements in memory: what stride 0 repeats is there once."""
    steps = zip(view.shape, view.strides, strict=True)
    return view.dtype.size * prod(size for size, stride in steps if stride or not size)
