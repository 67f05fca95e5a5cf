"""How much arithmetic and memory traffic a kernel call is, counted from the shapes of its tensors.

Arithmetic is what the formula needs: 2 M N K for a matrix product. A kernel that is not in the
table counts one operation for each element of its largest tensor. Traffic is each tensor once, with
what stride 0 repeats counted once: the least that must move, as if nothing were fetched twice.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from gradcli.engine.program.record import Call, View

Formula = Callable[[Call], int]


def _nothing(_: Call) -> int:
    """Numbers are moved, not computed."""
    return 0


def _largest(call: Call) -> int:
    return max((view.numel for view in call.views), default=0)


def _matmul(call: Call) -> int:
    """2 M N K for each matrix of the batch."""
    return 2 * call.views[-1].numel * call.views[0].shape[-1]


def _conv(outputs: int, weight: int) -> Formula:
    """2 for each pair of an output and a weight of its filter; the positions in the call."""

    def count(call: Call) -> int:
        return 2 * call.views[outputs].numel * prod(call.views[weight].shape[1:])

    return count


def _chain(call: Call) -> int:
    """One operation for each step and element; sizes[0] counts the steps."""
    return call.sizes[0] * _largest(call)


def _recurrent(steps: int, weight: int) -> Formula:
    """2 for each weight of the hidden state, in each step of each sample."""

    def count(call: Call) -> int:
        times, batch, _ = call.views[steps].shape
        return 2 * times * batch * call.views[weight].numel

    return count


def _attention(of_keys: int, of_values: int) -> Formula:
    """2 for each product of a pair of query and key that may see each other.

    There are so many products of two rows of keys' length, and of two rows of values' length.
    """

    def count(call: Call) -> int:
        q, k, v = call.views[:3]
        queries, keys = q.shape[2], k.shape[2]
        pairs = queries * keys
        if call.sizes[0]:  # causal: query i sees keys 0..i
            pairs = sum(min(i + 1, keys) for i in range(queries))
        each = of_keys * q.shape[3] + of_values * v.shape[3]
        return 2 * q.shape[0] * q.shape[1] * pairs * each

    return count


OPERATIONS: dict[str, Formula] = {
    "matmul": _matmul,
    "conv2d_forward": _conv(outputs=-1, weight=1),
    "depthwise_grad_weight": _conv(outputs=0, weight=2),
    "conv2d_grad_input": _conv(outputs=0, weight=1),
    "conv2d_grad_weight": _conv(outputs=0, weight=2),
    # Backward computes the scores again; then the gradients of scores and v, and of q and k.
    "attention_forward": _attention(of_keys=1, of_values=1),
    "attention_backward": _attention(of_keys=3, of_values=2),
    "lstm_forward": _recurrent(steps=0, weight=1),
    "lstm_backward": _recurrent(steps=1, weight=3),
    "gru_forward": _recurrent(steps=0, weight=1),
    "gru_backward": _recurrent(steps=1, weight=4),
    "rnn_forward": _recurrent(steps=0, weight=1),
    "rnn_backward": _recurrent(steps=1, weight=2),
    "chain": _chain,
    "copy": _nothing,
    "fill": _nothing,
    "index_select": _nothing,
    "embedding": _nothing,
    "where": _nothing,
    "arange": _nothing,
    "tril": _nothing,
    "triu": _nothing,
}

# Of their first tensor these read as many rows as they give, not all of it.
GATHERS = ("index_select", "embedding")
# These read what they are about to overwrite.
UPDATES = ("sgd_step", "sgd_momentum_step", "adam_step", "scale_by")


def work(call: Call) -> tuple[int, int]:
    """Floating-point operations, and bytes that must move at least."""
    moved = [_bytes(view) for view in call.views]
    if call.kernel in GATHERS:
        moved[0] = moved[-1]
    if call.kernel in UPDATES:
        moved += [_bytes(view) for view in call.outputs]
    # With a row behind it (`matmul_then`), the result still stands last.
    formula = OPERATIONS.get(call.kernel.removesuffix("_then"), _largest)
    return formula(call), sum(moved)


def _bytes(view: View) -> int:
    """Of the elements in memory: what stride 0 repeats is there once."""
    steps = zip(view.shape, view.strides, strict=True)
    return view.dtype.size * prod(size for size, stride in steps if stride or not size)
