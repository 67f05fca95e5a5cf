"""The declared ops, by family. Importing this package fills the table of ops."""

from gradcli.engine.ops import (
    conv,
    creation,
    display,
    elementwise,
    extreme,
    index,
    join,
    loss,
    matmul,
    movement,
    norm,
    pool,
    random,
    reduce,
    softmax,
)

__all__ = [
    "conv",
    "creation",
    "display",
    "elementwise",
    "extreme",
    "index",
    "join",
    "loss",
    "matmul",
    "movement",
    "norm",
    "pool",
    "random",
    "reduce",
    "softmax",
]
