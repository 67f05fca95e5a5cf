"""What a replay on the CPU copies in and out: rows of the arguments, rows of the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradcli.engine.array import Array
from gradcli.engine.device.program import Transfers
from gradcli.engine.program.replay import Program

_ALIAS_BYTES = 1 << 14  # a smaller argument is copied faster than it is looked up


def input_transfers(arguments: Sequence[Array], inputs: Sequence[Array]) -> Transfers:
    """Copies from the rows of the arguments into the program's own memory."""
    sizes = [own.numel * own.dtype.size for own in inputs]
    return Transfers(
        [
            (own.pointer, 0, array.pointer, nbytes, nbytes)
            for array, own, nbytes in zip(arguments, inputs, sizes, strict=True)
        ]
    )


def output_transfers(
    outputs: Sequence[Array], results: Sequence[Array], stacked: bool
) -> Transfers:
    """Copies from the program's results into those of the caller."""
    sizes = [array.numel * array.dtype.size for array in outputs]
    return Transfers(
        [
            (into.pointer, nbytes if stacked else 0, array.pointer, 0, nbytes)
            for array, into, nbytes in zip(outputs, results, sizes, strict=True)
        ]
    )


def alias_large(
    private: Iterable[int],
    program: Program,
    transfers: Transfers,
    inputs: Sequence[Array],
    arguments: Sequence[Array],
) -> None:
    """Large arguments are read where they lie, unless the step changes that memory."""
    for i in private:
        own = inputs[i]
        if own.storage.nbytes < _ALIAS_BYTES:
            continue
        if program.writes(arguments[i]):
            transfers.set_target(i, own.pointer)
        else:
            transfers.alias(i)
