"""Other settings of how launchers cut their work, so that small calls reach every kernel: loops
over a grid that turn more than once, large tiles, sums in pieces. Each is tried where it changes a
call's launches. Whoever adds kernels for large calls adds a setting under which small ones do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from gradcli.engine.device.gpu import launch, lines, tiles
from gradcli.engine.device.gpu.launches import conv2d, loss, norm, optim, pool2d, softmax

Setting = dict[tuple[Any, str], Any]

SETTINGS: tuple[Setting, ...] = (
    {},
    {
        (launch, "MOST_BLOCKS"): 2,
        (lines, "_EACH"): 1,
        (loss, "_EACH"): 16,
        (loss, "_PARTS"): 4,
        (optim, "_PARTS"): 2,
        (norm, "_BLOCKS"): 2,
        (pool2d, "WIDE"): 4,
        (conv2d, "SHORTEST"): 8,
        (tiles, "SHORTEST"): 8,
        (tiles, "TILES"): tiles.TILES[:1],
        (tiles, "TENSOR_TILES"): tiles.TENSOR_TILES[:1],
    },
    {
        (launch, "MOST_BLOCKS"): 1,
        (loss, "_WIDE"): 16,
        (norm, "_MOST"): 32,
        (softmax, "_MOST"): 64,
        (conv2d, "FEW"): 0,
        (tiles, "TILES"): tiles.TILES[1:2],
        (tiles, "ENOUGH_BLOCKS"): 1,
    },
    {(conv2d, "FEW"): 0, (lines, "_CHUNKS"): 2, (lines, "_EACH"): 1},
)


@contextmanager
def under(setting: Setting) -> Iterator[None]:
    """Launchers work with a setting inside a `with` block."""
    patches = [patch.object(where, name, value) for (where, name), value in setting.items()]
    try:
        for one in patches:
            one.start()
        yield
    finally:
        for one in patches:
            one.stop()
