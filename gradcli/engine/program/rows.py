"""The elementwise kernels by kind, as scalar_ops.h declares them.

What they have in common: element i of the output depends on element i of each input and nothing
else, so such a call may overwrite an input, or run over a block of the tensors at a time.
"""

from __future__ import annotations

from gradcli.engine.device.cpu import KERNELS, kernel_facts, kernel_inputs

_FACTS = {name: kernel_facts(name) for name in KERNELS}
_DECLARED = frozenset(name for name, (_, formula, _) in _FACTS.items() if formula)

UNARY = frozenset(name for name in _DECLARED if kernel_inputs(name) == 1)
# Of what was kept and the incoming gradient, in this order.
SLOPE = frozenset(f"{name}_backward" for name in UNARY if _FACTS[name][0])
# These take any strides; of the comparisons the output is of another type.
BINARY = _DECLARED - UNARY
# Of a, b, y and the incoming gradient.
SLOPE2 = frozenset(
    f"{name}_backward_{of}" for name in BINARY for of in "ab" if f"{name}_backward_{of}" in KERNELS
)
STRIDED = BINARY | SLOPE2
ELEMENTWISE = UNARY | SLOPE | STRIDED

# Kernels of several phases that write only in the last one, each task where it has read: which
# input an output may lie over.
OVERWRITES = {
    "lstm_forward": {0: 0},
    "lstm_backward": {0: 1},
    "gru_forward": {0: 0},
    "rnn_forward": {0: 0},
    "rnn_backward": {0: 1},
}
