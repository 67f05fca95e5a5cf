"""`gradcli.save_tensors` and `load_tensors`: tensors by name in a safetensors file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gradcli.data.files import path_text
from gradcli.engine import Tensor
from gradcli.errors import CheckpointError, OptionError, OptionTypeError
from gradcli.train.atomic import write_file
from gradcli.train.safetensors_file import (
    MAX_HEADER,
    METADATA,
    RawTensor,
    encode_header,
    is_utf8,
    layout,
    read,
)
from gradcli.train.state import ENGINE_DTYPES, NAMES, as_tensor, bytes_of
from gradcli.wording import quantity


class LoadedTensors(dict[str, Tensor]):
    """Tensors by name, in the order of the file's header.

    Attributes:
        metadata: the texts in the file.
    """

    def __init__(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        super().__init__(tensors)
        self.metadata = dict(metadata)


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors by name, and texts, as a safetensors file that any tool reads.

    Strided tensors are written in row-major order, and tensors of a GPU are copied. The file
    replaces an older one only when it is whole and on the disk.

    Raises:
        OptionError: a name, tensor or text that the format cannot hold (also a TypeError where it
            has another type).
        CheckpointError: the file cannot be written; an older one stays as it was.
    """
    _check(tensors, "tensors", Tensor)
    _check(metadata or {}, "metadata", str)
    for name, tensor in tensors.items():
        if tensor.device == "meta":
            raise OptionError(
                f"save_tensors: tensors['{path_text(name)}'] lies on meta, which has no values"
            )
    raw = {
        name: RawTensor(NAMES[tensor.dtype.name], tuple(tensor.shape), bytes_of(tensor))
        for name, tensor in tensors.items()
    }
    header = encode_header(raw, metadata or {})
    if len(header) - 8 > MAX_HEADER:
        raise OptionError(
            f"save_tensors: names and metadata take {quantity(len(header) - 8, 'byte')}, the "
            f"format allows {MAX_HEADER}"
        )
    target = Path(path)
    if target.exists() and not target.is_file():
        raise CheckpointError(
            f"cannot save {path_text(target)}: it is there and is no regular file"
        )
    try:
        write_file(target, [header, *(raw[name].data for name in layout(raw))])
    except OSError as error:
        raise CheckpointError(f"cannot save {path_text(target)}: {error.strerror}") from error


def load_tensors(path: str | os.PathLike[str]) -> LoadedTensors:
    """The tensors of a safetensors file by name, on the CPU; `.metadata` has its texts.

    A checkpoint of a run is such a file too: `model.<name>` are its weights.

    Raises:
        CheckpointError: the file cannot be read, is damaged, no safetensors file, or holds a type
            of elements that the engine does not have.
    """
    contents = read(Path(path))
    for name, raw in contents.tensors.items():
        if raw.dtype not in ENGINE_DTYPES:
            raise CheckpointError(
                f"{path_text(Path(path))}: tensor '{path_text(name)}' is {raw.dtype}, a type that "
                f"the engine does not have; save it as one of {', '.join(ENGINE_DTYPES)}"
            )
    tensors = {name: as_tensor(raw) for name, raw in contents.tensors.items()}
    return LoadedTensors(tensors, contents.metadata)


def _check(values: object, what: str, kind: type) -> None:
    """Raise, with a cure, unless `values` maps names to values of one type."""
    if not isinstance(values, Mapping):
        cure = "; give its state_dict()" if hasattr(values, "state_dict") else ""
        raise OptionTypeError(
            f"save_tensors: {what} must be a dict by name, got {type(values).__name__}{cure}"
        )
    for name, value in values.items():
        if not isinstance(name, str):
            raise OptionTypeError(
                f"save_tensors: a name in {what} must be str, got {type(name).__name__} {name!r}"
            )
        if name == METADATA or not is_utf8(name):
            raise OptionError(f"save_tensors: nothing in {what} can be called '{path_text(name)}'")
        location = f"{what}['{path_text(name)}']"
        if not isinstance(value, kind):
            raise OptionTypeError(
                f"save_tensors: {location} must be {kind.__name__}, got {type(value).__name__}; "
                + _cure(kind, value)
            )
        if isinstance(value, str) and not is_utf8(value):
            raise OptionError(f"save_tensors: {location} holds half a surrogate pair")


def _cure(kind: type, value: object) -> str:
    """How to turn a value into the right type."""
    if kind is str:
        return "json.dumps(x) makes a text of it"
    if hasattr(value, "__dlpack__"):
        return "engine.from_dlpack(x) makes a Tensor of it"
    return "engine.tensor(x) makes a Tensor of numbers"
