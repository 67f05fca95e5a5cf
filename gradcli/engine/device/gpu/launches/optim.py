"""Launches of the steps of optimizers and of clipping."""

from __future__ import annotations

import math
import struct

from gradcli.engine.device.gpu.launch import Arg, Draft, launches, over, tensors

ADAPTIVE = "optim_adaptive"
_ADAM = struct.Struct("9f")
_RMS = struct.Struct("6f")
_PARTS = 1024  # blocks of a sum, at most


def _step(call: Draft, *constants: Arg, family: str = ADAPTIVE) -> None:
    """A pass over a parameter and what is kept for it."""
    args = *call.all_tensors(), *constants
    call.launch(call.kernel, over(call.numel()), *args, family=family)


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


@launches("sgd_step")
def sgd(call: Draft) -> None:
    """Options: weight decay."""
    _step(call, call.numel(), call.option(0), family="optim")


@launches("sgd_momentum_step")
def sgd_momentum(call: Draft) -> None:
    """Options: weight decay, momentum, dampening, nesterov."""
    decay, momentum, dampening, nesterov = (call.option(i) for i in range(4))
    _step(call, call.numel(), decay, momentum, 1 - dampening, nesterov != 0, family="optim")


def _adam(call: Draft) -> bytes:
    """A struct Adam from the options weight decay, beta1, beta2, eps, decoupled."""
    decay, beta1, beta2, eps, decoupled = (call.option(i) for i in range(5))
    moment = 1 - beta1, 1 - (1 - beta1), _log(beta1)
    second = 1 - beta2, beta2, _log(beta2)
    return _ADAM.pack(decay, decoupled != 0, eps, *moment, *second)


@launches("adam_step")
def adam(call: Draft) -> None:
    """Options as in `_adam`."""
    _step(call, _adam(call), call.numel(), family="optim")


@launches("amsgrad_step")
def amsgrad(call: Draft) -> None:
    """Options as in `_adam`."""
    _step(call, _adam(call), call.numel())


@launches("radam_step")
def radam(call: Draft) -> None:
    """Options as in `_adam`."""
    beta2 = call.option(2)
    most = 2 / (1 - beta2) - 1
    gap = most + 2 / _log(beta2)
    _step(call, _adam(call), call.numel(), most, gap)


@launches("nadam_step")
def nadam(call: Draft) -> None:
    """Options as in `_adam`, then momentum_decay; the product of all mu goes first."""
    rates = call.option(1), call.option(5) * math.log(0.96)
    product = *tensors(1, 5), *rates
    call.launch("nadam_product", (1, 1, 1), *product, threads=32, family=ADAPTIVE)
    _step(call, _adam(call), call.numel(), *rates)


@launches(
    "rmsprop_step",
    "rmsprop_momentum_step",
    "rmsprop_centered_step",
    "rmsprop_centered_momentum_step",
)
def rmsprop(call: Draft) -> None:
    """Options: weight decay, alpha, eps, momentum."""
    decay, alpha, eps, momentum = (call.option(i) for i in range(4))
    rms = _RMS.pack(decay, alpha, 1 - alpha, 1 - (1 - alpha), eps, momentum)
    _step(call, rms, call.numel())


@launches("adagrad_step")
def adagrad(call: Draft) -> None:
    """Options: weight decay, lr_decay, eps."""
    _step(call, call.numel(), *(call.option(i) for i in range(3)))


@launches("adadelta_step")
def adadelta(call: Draft) -> None:
    """Options: weight decay, rho, eps."""
    decay, rho, eps = (call.option(i) for i in range(3))
    _step(call, call.numel(), decay, rho, 1 - rho, eps)


@launches("lion_step")
def lion(call: Draft) -> None:
    """Options: weight decay, beta1, beta2."""
    decay, beta1, beta2 = (call.option(i) for i in range(3))
    _step(call, call.numel(), decay, beta1, 1 - beta1, beta2, 1 - beta2)


@launches("sum_squares")
def sum_squares(call: Draft) -> None:
    """Parts of the sum, one a block, then their sum."""
    n = call.numel()
    blocks = max(1, min(-(-n // 4096), _PARTS))
    parts = call.pair(blocks)
    call.launch("squares", (blocks, 1, 1), *tensors(0), *parts, n)
    call.launch("sum_squares", (1, 1, 1), *parts, *tensors(1), blocks)


@launches("clip_factor")
def clip_factor(call: Draft) -> None:
    """Options: the largest norm."""
    call.launch("clip_factor", (1, 1, 1), *tensors(0, 1, 2), call.numel(), call.option(0))


@launches("scale_by")
def scale_by(call: Draft) -> None:
    """One pass over the second tensor."""
    n = call.numel(1)
    call.launch("scale_by", over(n), *tensors(0, 1), n, suffix=call.suffix(1))
