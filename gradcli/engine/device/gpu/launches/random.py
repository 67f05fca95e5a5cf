"""Launches of uniform and normal numbers and dropout."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    Arg,
    Draft,
    Errors,
    launches,
    over,
    tensors,
)


def _draw(call: Draft, typed_by: int, *args: Arg) -> None:
    n = call.numel(typed_by)
    blocks = -(-n // 256) * 64  # of Philox, a thread each
    args = *call.all_tensors(), n, call.size(0), *args
    call.launch(call.kernel, over(blocks), *args, suffix=call.suffix(typed_by))


@launches("uniform", "normal")
def numbers(call: Draft) -> None:
    """sizes[0]: which draw. Options: low and high, or mean and deviation."""
    _draw(call, 1, call.option(0), call.option(1))


@launches("uniform_at")
def uniform_at(call: Draft) -> None:
    """A number by itself is a block of Philox each."""
    count, k = call.numel(2), call.tensors[2].shape[1]
    args = *tensors(0, 1, 2), count, max(1, k), call.size(0), Errors()
    call.launch("uniform_at", over(count), *args, suffix=call.suffix(2))


def _scale(call: Draft) -> float:
    p = call.option(0)
    return 1 / (1 - p) if p < 1 else 0.0


@launches("dropout_forward")
def dropout(call: Draft) -> None:
    """Options: the probability, rounded to 32 bits."""
    _draw(call, 0, min(int(call.option(0) * 2**32), 2**32 - 1), _scale(call))


@launches("dropout_backward")
def dropout_backward(call: Draft) -> None:
    """One pass."""
    n = call.numel()
    call.launch("dropout_backward", over(n), *tensors(0, 1, 2), n, _scale(call))
