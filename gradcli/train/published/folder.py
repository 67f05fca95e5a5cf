"""The tensors of a published model: one safetensors file, or shards that an index names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from gradcli.data.files import read, regular_size, shown, text_of
from gradcli.errors import CheckpointError, DataError
from gradcli.train.published.shape import FILE
from gradcli.train.safetensors_file import Stored
from gradcli.train.safetensors_file import read as read_tensors

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_LIMIT = 64 << 20  # bytes of an index
# Before the names of a model that is part of a larger one.
_PREFIX = "transformer."


def is_published(path: Path) -> bool:
    """Whether a folder looks like one of a published model."""
    # (os.path is false, and no OSError, for a name that is too long.)
    if not os.path.isfile(path / FILE):  # noqa: PTH113
        return False
    return not os.path.exists(path / "resolved.yaml")  # noqa: PTH110


def files_in(folder: Path) -> list[Path]:
    """The files of the weights, in the order of their names.

    Raises:
        CheckpointError: none is there, or one that the index names is not.
    """
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise CheckpointError(
            f"{shown(folder)} holds no {WEIGHTS} and no {INDEX}; put the published weights there",
            code="E707",
        )
    names = sorted(set(_shards(folder / INDEX)))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{shown(folder / INDEX)}: the shard {shown(missing[0])} is not there", code="E707"
        )
    return [folder / name for name in names]


def _shards(index: Path) -> list[str]:
    source = shown(index)
    try:
        if regular_size(index) > _LIMIT:
            raise ValueError(f"more than {_LIMIT} bytes")
        names = json.loads(text_of(read(index), source))["weight_map"].values()
        if not names or any("/" in name or "\\" in name or not name for name in names):
            raise ValueError("its weight_map names no files beside it")
    except DataError as error:
        raise CheckpointError(error.message, code="E701") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = str(error) if type(error) is ValueError else "it has no weight_map of names"
        raise CheckpointError(f"{source}: not an index of shards: {why}", code="E701") from None
    return list(names)


def tensors_in(folder: Path) -> Iterator[dict[str, Stored]]:
    """The tensors of one file after the other, by their published names."""
    for file in files_in(folder):
        stored = read_tensors(file).tensors
        yield {name.removeprefix(_PREFIX): one for name, one in stored.items()}
