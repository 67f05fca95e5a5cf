"""The weights of a published model as first values of a model here."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from pathlib import Path
from struct import unpack
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data.files import shown
from gradcli.errors import CheckpointError
from gradcli.train.published.folder import files_in, first_names, tensors_in
from gradcli.train.published.names import HEAD, Origin, origins
from gradcli.train.published.settings import differences
from gradcli.train.published.shape import Kind, shape_in
from gradcli.train.safetensors_file import Stored
from gradcli.train.state import as_tensor, dtype_name, readable
from gradcli.wording import further, quantity, verb

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn

_CURE = "`gradcli init FOLDER --data TEXT` writes the layers of the model in a folder"
_HALVES = 1 << 18  # bytes of float16 that become numbers of Python's at once


def take_over_published(model: nn.Module, folder: Path, names: Collection[str]) -> str:
    """Copy the weights called `names` out of a folder; gives a line to show, with what is unused.

    Raises:
        CheckpointError: something is missing, or of another shape or type.
    """
    tensors, kind = compared(model, folder, names)
    count, unused = copy_weights(model, tensors, kind, names, shown(folder))
    line = f"{quantity(count, 'weight')} {verb(count, 'begins', 'begin')} as in {shown(folder)}"
    if not unused:
        return line
    number = quantity(len(unused), "tensor")
    return f"{line}; {number} there {verb(len(unused))} not used: {first_names(unused)}"


def compared(
    model: nn.Module, folder: Path, names: Collection[str]
) -> tuple[dict[str, Stored], Kind]:
    """The tensors in a folder, whose model computes what this one does; that may lie on meta.

    Raises:
        CheckpointError: it does not, or something is missing, or of another shape or type.
    """
    shape = shape_in(folder)
    tensors = tensors_in(files_in(folder))
    check_weights(model, tensors, shape.kind, names, shown(folder))
    problems = list(differences(model, shape))
    if problems:
        raise CheckpointError(
            f"the model computes something else with the weights of {shown(folder)}: {problems[0]}",
            code="E704",
            notes=(*problems[1:], _CURE),
        )
    return tensors, shape.kind


def check_weights(
    model: nn.Module,
    tensors: Mapping[str, Stored],
    kind: Kind,
    names: Collection[str],
    source: str,
    cure: str = _CURE,
) -> list[str]:
    """The weights called `names` that are made of tensors: all but a tied head's.

    The model may lie on meta. Messages name the `source` and a `cure`.

    Raises:
        CheckpointError: something is missing, or of another shape or type.
    """
    parts, weights = origins(model, kind), model.state_dict()
    chosen = {name: parts[name] for name in weights if name in names and name in parts}
    problems = [
        problem
        for name, origin in chosen.items()
        if (problem := _problem(name, weights[name], origin, tensors))
    ]
    if problems:
        share = f"{len(problems)} of {quantity(len(chosen), 'weight')}"
        raise CheckpointError(
            f"{share} {verb(len(problems), 'does', 'do')} not come from {source}: {problems[0]}",
            code="E704",
            notes=(*further(problems), cure),
        )
    return [*chosen]


def copy_weights(
    model: nn.Module,
    tensors: Mapping[str, Stored],
    kind: Kind,
    names: Collection[str],
    source: str,
) -> tuple[int, list[str]]:
    """Copy the weights called `names` from tensors by their published names.

    All is compared before any is copied; messages name the `source`. Gives how many weights that
    were, and the tensors that no weight of the model is made of.

    Raises:
        CheckpointError: something is missing, or of another shape or type.
    """
    parts, weights = origins(model, kind), model.state_dict()
    chosen = check_weights(model, tensors, kind, names, source)
    with engine.no_grad():
        for name in chosen:
            weights[name].copy_(_values(parts[name], weights[name], tensors))
    used = {name for origin in parts.values() for name in origin.names} | {HEAD}
    return len(chosen), [name for name in tensors if name not in used]


def _problem(name: str, tensor: Tensor, origin: Origin, stored: Mapping[str, Stored]) -> str:
    """Why a tensor cannot be made of what is stored; empty where it can."""
    missing = next((one for one in origin.names if one not in stored), None)
    if missing is not None:
        return f"{name} {list(tensor.shape)} is {missing} there, which is missing"
    parts = [stored[one] for one in origin.names]
    for one, part in zip(origin.names, parts, strict=True):
        if part.dtype != "F16" and not readable(part, tensor):
            return f"{one} is of {part.dtype} there, {name} of {dtype_name(tensor)}"
    rows, *rest = tensor.shape
    there = [list(part.shape[::-1] if origin.turned else part.shape) for part in parts]
    sizes = [[rows * share // sum(origin.shares), *rest] for share in origin.shares]
    longer = origin.leading and there[0][1:] == rest and there[0][:1] > [rows]
    if there != sizes and not longer:
        stand = " and ".join(str(list(part.shape)) for part in parts)
        ought = f", not {' and '.join(map(str, sizes))}" if len(parts) > 1 else ""
        return f"{name} is {[rows, *rest]} in the model, {origin.names[0]} {stand} there{ought}"
    return ""


def _values(origin: Origin, tensor: Tensor, stored: Mapping[str, Stored]) -> Tensor:
    parts = [_numbers(stored[one]).to(tensor.dtype) for one in origin.names]
    whole = parts[0].T if origin.turned else engine.cat(parts)
    return whole[: tensor.shape[0]] if origin.leading else whole


def _numbers(stored: Stored) -> Tensor:
    if stored.dtype != "F16":
        return as_tensor(stored)
    data, values = bytes(stored.data), array("f")
    for begin in range(0, len(data), _HALVES):
        some = data[begin : begin + _HALVES]
        values.extend(unpack(f"<{len(some) // 2}e", some))
    return engine.frombuffer(values, dtype=engine.float32).reshape(stored.shape)
