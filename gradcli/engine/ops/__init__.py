"""The declared ops, by family. Importing this package fills the table of ops."""

from gradcli.engine.ops import (
    creation,
    display,
    elementwise,
    extreme,
    loss,
    movement,
    norm,
    reduce,
    softmax,
)

__all__ = [
    "creation",
    "display",
    "elementwise",
    "extreme",
    "loss",
    "movement",
    "norm",
    "reduce",
    "softmax",
]
