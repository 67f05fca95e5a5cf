"""Load the weights of a published model into a model of gradcli."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from pathlib import Path
from struct import unpack
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data.files import path_text
from gradcli.dataclass import dataclass
from gradcli.errors import CheckpointError
from gradcli.train.published.folder import files_in, first_names, tensors_in
from gradcli.train.published.names import HEAD, TensorOrigin, origins
from gradcli.train.published.settings import differences
from gradcli.train.published.shape import Kind, shape_in
from gradcli.train.safetensors_file import RawTensor
from gradcli.train.state import as_tensor, dtype_name, readable
from gradcli.wording import further, quantity, verb

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn

_CURE = "`gradcli init FOLDER --data TEXT` writes the layers of the model in a folder"
_HALVES = 1 << 18  # bytes of float16 that become numbers of Python's at once


@dataclass(frozen=True)
class Match:
    """The tensors of a folder that make up the weights of a model.

    Attributes:
        tensors: the file's tensors by their published names.
        origins: the origin of every weight of the model.
        names: the names of the weights to copy.
    """

    tensors: Mapping[str, RawTensor]
    origins: Mapping[str, TensorOrigin]
    names: tuple[str, ...]

    def copy_into(self, model: nn.Module) -> None:
        """Copy the values into a model with these weights."""
        weights = model.state_dict()
        with engine.no_grad():
            for name in self.names:
                weights[name].copy_(_values(self.origins[name], weights[name], self.tensors))

    @property
    def unused(self) -> list[str]:
        """The tensors that no weight of the model comes from."""
        sources = {name for origin in self.origins.values() for name in origin.names} | {HEAD}
        return [name for name in self.tensors if name not in sources]


def take_over_published(model: nn.Module, folder: Path, names: Collection[str]) -> str:
    """Copy the weights called `names` from a folder; returns a line to show, with unused tensors.

    Raises:
        CheckpointError: something is missing, or of another shape or type.
    """
    match = compare(model, folder, names)
    match.copy_into(model)
    count, unused = len(match.names), match.unused
    line = f"{quantity(count, 'weight')} {verb(count, 'begins', 'begin')} as in {path_text(folder)}"
    if not unused:
        return line
    number = quantity(len(unused), "tensor")
    return f"{line}; {number} there {verb(len(unused))} not used: {first_names(unused)}"


def compare(model: nn.Module, folder: Path, names: Collection[str]) -> Match:
    """Match a model with a published folder; the model may be on meta.

    Raises:
        CheckpointError: the published model computes something else, or a tensor is missing or of
            another shape or type.
    """
    shape = shape_in(folder)
    match = match_model(model, tensors_in(files_in(folder)), shape.kind, names, path_text(folder))
    problems = list(differences(model, shape))
    if problems:
        raise CheckpointError(
            f"the model computes something else with the weights of {path_text(folder)}: "
            f"{problems[0]}",
            code="E704",
            notes=(*problems[1:], _CURE),
        )
    return match


def match_model(
    model: nn.Module,
    tensors: Mapping[str, RawTensor],
    kind: Kind,
    names: Collection[str],
    source: str,
    cure: str = _CURE,
) -> Match:
    """Match a model, which may be on meta, with tensors by their published names.

    Messages name the `source` and a `cure`.

    Raises:
        CheckpointError: something is missing, or of another shape or type.
    """
    parts, weights = origins(model, kind), model.state_dict()
    selection = tuple(name for name in weights if name in names and name in parts)
    problems = [
        problem
        for name in selection
        if (problem := _problem(name, weights[name], parts[name], tensors))
    ]
    if problems:
        share = f"{len(problems)} of {quantity(len(selection), 'weight')}"
        raise CheckpointError(
            f"{share} {verb(len(problems), 'does', 'do')} not come from {source}: {problems[0]}",
            code="E704",
            notes=(*further(problems), cure),
        )
    return Match(tensors, parts, selection)


def _problem(
    name: str, tensor: Tensor, origin: TensorOrigin, tensors: Mapping[str, RawTensor]
) -> str:
    """Why a weight cannot come from the file's tensors; empty if it can."""
    missing = next((source for source in origin.names if source not in tensors), None)
    if missing is not None:
        return f"{name} {list(tensor.shape)} is {missing} there, which is missing"
    parts = [tensors[source] for source in origin.names]
    for source, part in zip(origin.names, parts, strict=True):
        if part.dtype != "F16" and not readable(part, tensor):
            return f"{source} is of {part.dtype} there, {name} of {dtype_name(tensor)}"
    rows, *rest = tensor.shape
    there = [list(part.shape[::-1] if origin.transposed else part.shape) for part in parts]
    sizes = [[rows * share // sum(origin.shares), *rest] for share in origin.shares]
    longer = origin.leading and there[0][1:] == rest and there[0][:1] > [rows]
    if there != sizes and not longer:
        stand = " and ".join(str(list(part.shape)) for part in parts)
        ought = f", not {' and '.join(map(str, sizes))}" if len(parts) > 1 else ""
        return f"{name} is {[rows, *rest]} in the model, {origin.names[0]} {stand} there{ought}"
    return ""


def _values(origin: TensorOrigin, tensor: Tensor, tensors: Mapping[str, RawTensor]) -> Tensor:
    parts = [_numbers(tensors[name]).to(tensor.dtype) for name in origin.names]
    whole = parts[0].T if origin.transposed else engine.cat(parts)
    return whole[: tensor.shape[0]] if origin.leading else whole


def _numbers(tensor: RawTensor) -> Tensor:
    if tensor.dtype != "F16":
        return as_tensor(tensor)
    data, values = bytes(tensor.data), array("f")
    for begin in range(0, len(data), _HALVES):
        some = data[begin : begin + _HALVES]
        values.extend(unpack(f"<{len(some) // 2}e", some))
    return engine.frombuffer(values, dtype=engine.float32).reshape(tensor.shape)
