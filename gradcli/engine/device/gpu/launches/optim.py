"""Launches of the steps of optimizers and of clipping."""

from __future__ import annotations

import math
import struct

from gradcli.engine.device.gpu.launch import (
    Arg,
    CallSpec,
    Plan,
    Scratch,
    TensorArg,
    all_tensors,
    launch,
    launches,
    over,
    single_launch,
    tensors,
)

FAMILY, ADAPTIVE = "optim", "optim_adaptive"
_ADAM = struct.Struct("9f")
_RMS = struct.Struct("6f")
_PARTS = 1024  # blocks of a sum, at most


def _stepped(family: str, call: CallSpec, *constants: Arg) -> Plan:
    """A pass over a parameter and what is kept for it."""
    return single_launch(family, call, over(call.numel()), *all_tensors(call), *constants)


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


@launches("sgd_step")
def sgd(call: CallSpec) -> Plan:
    """Options: weight decay."""
    return _stepped(FAMILY, call, call.numel(), call.option(0))


@launches("sgd_momentum_step")
def sgd_momentum(call: CallSpec) -> Plan:
    """Options: weight decay, momentum, dampening, nesterov."""
    decay, momentum, dampening, nesterov = (call.option(i) for i in range(4))
    constants = decay, momentum, 1 - dampening, int(nesterov != 0)
    return _stepped(FAMILY, call, call.numel(), *constants)


def adam(call: CallSpec) -> bytes:
    """A struct Adam from the options weight decay, beta1, beta2, eps, decoupled."""
    decay, beta1, beta2, eps, decoupled = (call.option(i) for i in range(5))
    moment = 1 - beta1, 1 - (1 - beta1), _log(beta1)
    second = 1 - beta2, beta2, _log(beta2)
    return _ADAM.pack(decay, decoupled != 0, eps, *moment, *second)


@launches("adam_step")
def adam_step(call: CallSpec) -> Plan:
    """Options as in `adam`."""
    return _stepped(FAMILY, call, adam(call), call.numel())


@launches("amsgrad_step")
def amsgrad(call: CallSpec) -> Plan:
    """Options as in `adam`."""
    return _stepped(ADAPTIVE, call, adam(call), call.numel())


@launches("radam_step")
def radam(call: CallSpec) -> Plan:
    """Options as in `adam`."""
    beta2 = call.option(2)
    most = 2 / (1 - beta2) - 1
    gap = most + 2 / _log(beta2)
    return _stepped(ADAPTIVE, call, adam(call), call.numel(), most, gap)


@launches("nadam_step")
def nadam(call: CallSpec) -> Plan:
    """Options as in `adam`, then momentum_decay; the product of all mu goes first."""
    constants = call.option(1), call.option(5) * math.log(0.96)
    args = *tensors(1, 5), *constants
    product = launch(ADAPTIVE, "nadam_product", "f32", (1, 1, 1), *args, threads=32)
    weights = _stepped(ADAPTIVE, call, adam(call), call.numel(), *constants)
    return Plan((product, *weights.launches))


@launches(
    "rmsprop_step",
    "rmsprop_momentum_step",
    "rmsprop_centered_step",
    "rmsprop_centered_momentum_step",
)
def rmsprop(call: CallSpec) -> Plan:
    """Options: weight decay, alpha, eps, momentum."""
    decay, alpha, eps, momentum = (call.option(i) for i in range(4))
    rms = _RMS.pack(decay, alpha, 1 - alpha, 1 - (1 - alpha), eps, momentum)
    return _stepped(ADAPTIVE, call, rms, call.numel())


@launches("adagrad_step")
def adagrad(call: CallSpec) -> Plan:
    """Options: weight decay, lr_decay, eps."""
    return _stepped(ADAPTIVE, call, call.numel(), *(call.option(i) for i in range(3)))


@launches("adadelta_step")
def adadelta(call: CallSpec) -> Plan:
    """Options: weight decay, rho, eps."""
    decay, rho, eps = (call.option(i) for i in range(3))
    return _stepped(ADAPTIVE, call, call.numel(), decay, rho, 1 - rho, eps)


@launches("lion_step")
def lion(call: CallSpec) -> Plan:
    """Options: weight decay, beta1, beta2."""
    decay, beta1, beta2 = (call.option(i) for i in range(3))
    return _stepped(ADAPTIVE, call, call.numel(), decay, beta1, 1 - beta1, beta2, 1 - beta2)


@launches("sum_squares")
def sum_squares(call: CallSpec) -> Plan:
    """Parts of the sum, one a block, then their sum."""
    n = call.numel()
    blocks = max(1, min(-(-n // 4096), _PARTS))
    parts = Scratch(0), Scratch(4 * blocks)
    some = launch(FAMILY, "squares", "f32", (blocks, 1, 1), TensorArg(0), *parts, n)
    last = launch(FAMILY, "sum_squares", "f32", (1, 1, 1), *parts, TensorArg(1), blocks)
    return Plan((some, last), 8 * blocks)


@launches("clip_factor")
def clip_factor(call: CallSpec) -> Plan:
    """Options: the largest norm."""
    args = *tensors(0, 1, 2), call.numel(), call.option(0)
    return single_launch(FAMILY, call, (1, 1, 1), *args)


@launches("scale_by")
def scale_by(call: CallSpec) -> Plan:
    """One pass over the second tensor."""
    n = call.numel(1)
    return single_launch(FAMILY, call, over(n), *tensors(0, 1), n, typed_by=1)
