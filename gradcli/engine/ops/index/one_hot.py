"""Class numbers as rows of zeros with a single 1."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import full, run
from gradcli.engine.composite import function
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.ops.index.index_select import SET
from gradcli.engine.ops.index.scatter import scatter
from gradcli.engine.ops.reduce.extreme import amax
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError


@function(
    samples=[
        sample(index((3, 5), 4)),
        sample(index((2, 1), 3), num_classes=5),
        sample(index((), 3)),
        sample(index((0, 3), 4), num_classes=4),
    ],
    wrong=[wrong(sample(index((0, 3), 4)), "the number of classes must be given")],
    why="whole numbers have no slope",
    method=False,
)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class a row of zeros with a 1 at its place; without a number of classes all seen."""
    if tensor.dtype is not dtypes.int64:
        raise DTypeError(f"one_hot: classes must be int64, got {tensor.dtype}; use x.long()")
    if num_classes == -1:
        if not tensor.numel():
            raise OptionError("one_hot: without elements the number of classes must be given")
        num_classes = max(0, int(amax(tensor).item())) + 1
    classes = zeros(*tensor.shape, num_classes, dtype=dtypes.int64)
    if not classes.numel():  # refuses a class that has no place
        return scatter(classes, -1, reshape(tensor, (*tensor.shape, 1)), 1)
    rows = classes.array.reshape((tensor.numel(), num_classes, 1))
    column = (tensor.numel(), 1, 1)
    indices = tensor.array.contiguous().reshape(column)
    run("scatter", rows, indices, full(column, 1, dtypes.int64), rows, sizes=(SET,))
    return classes
