"""The tensors of a published model: one safetensors file, or shards listed in an index."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from gradcli.data.files import json_in, path_text
from gradcli.errors import CheckpointError, DataError
from gradcli.train.published.shape import FILE
from gradcli.train.safetensors_file import RawTensor
from gradcli.train.safetensors_file import read as read_tensors
from gradcli.wording import join_words

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_LIMIT = 64 << 20  # bytes of an index
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_FILE = re.compile(r"[^/\\]{1,255}")
# Masks and tables of angles, which some files have beside the weights.
_NO_WEIGHTS = re.compile(r"h\.\d+\.attn\.(masked_)?bias|.*\.rotary_emb\.inv_freq")
# Before the names of a model that is part of a larger one.
_PREFIX = "transformer."


def is_published(path: Path) -> bool:
    """Whether a folder looks like one of a published model, whole or not."""
    # (os.path is false, and no OSError, for a name that is too long; so it is below.)
    if not any(os.path.isfile(path / name) for name in (FILE, WEIGHTS, INDEX)):  # noqa: PTH113
        return False
    return not os.path.exists(path / "resolved.yaml")  # noqa: PTH110


def is_part(file: Path) -> bool:
    """Whether a file is one of those that make up a published model."""
    part = file.name in (FILE, WEIGHTS, INDEX) or _SHARD.fullmatch(file.name) is not None
    return part and is_published(file.parent)


def files_in(folder: Path) -> list[Path]:
    """The files of the weights, in the order of their names.

    Raises:
        CheckpointError: none is there, or one that the index names is not.
    """
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        bin_file = next((file.name for file in sorted(folder.glob("*.bin"))), None)
        cure = "put the published weights there"
        if bin_file is not None:
            cure = (
                f"{path_text(bin_file)} is in a form of PyTorch that may run code, and is not read"
            )
        raise CheckpointError(
            f"{path_text(folder)} holds no {WEIGHTS} and no {INDEX}; {cure}", code="E707"
        )
    names = sorted(set(_shards(folder / INDEX)))
    missing = [name for name in names if not os.path.isfile(folder / name)]  # noqa: PTH113
    if missing:
        raise CheckpointError(
            f"{path_text(folder / INDEX)}: the shard {path_text(missing[0])} is not there",
            code="E707",
        )
    return [folder / name for name in names]


def _shards(index: Path) -> list[str]:
    try:
        value = json_in(index, _LIMIT)
    except DataError as error:
        raise CheckpointError(error.message, code="E701") from None
    weight_map = value.get("weight_map") if isinstance(value, dict) else None
    names = list(weight_map.values()) if isinstance(weight_map, dict) else []
    if not names or not all(isinstance(name, str) and _FILE.fullmatch(name) for name in names):
        what = "not an index of shards: expected names of files beside it in its weight_map"
        raise CheckpointError(f"{path_text(index)}: {what}", code="E701")
    return names


def tensors_in(files: Iterable[Path]) -> dict[str, RawTensor]:
    """The weights in all of these files, by their published names."""
    tensors: dict[str, RawTensor] = {}
    for file in files:
        for name, tensor in read_tensors(file).tensors.items():
            bare = name.removeprefix(_PREFIX)
            if not _NO_WEIGHTS.fullmatch(bare):
                tensors[bare] = tensor
    return tensors


def first_names(names: Iterable[str]) -> str:
    """The first three names of tensors for a message: a file may call one anything."""
    return join_words((ascii(name)[1:-1][:80] for name in names), 3)
