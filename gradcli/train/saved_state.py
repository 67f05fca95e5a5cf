"""The file of Accelerator.save_state and load_state: one safetensors file in a folder.

Tensors are called "model.<name>" and "optimizer.<name>", those of a second model "model_1.<name>".
All else is a JSON object in the metadata. Only rank 0 reads and writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.data.files import path_text
from gradcli.engine import Tensor, default_generator, no_grad
from gradcli.errors import CheckpointError
from gradcli.train.between_ranks import from_main
from gradcli.train.safetensors_file import Contents, decode
from gradcli.train.state import as_tensor, differences
from gradcli.train.tensor_files import save_tensors
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.train.accelerator import Accelerator

FILE = "state.safetensors"
KEY, FORMAT = "gradcli.accelerator", 1


def save(accelerator: Accelerator, folder: Path) -> None:
    """Write the state; returns on every rank once the file is on rank 0's disk."""

    def write() -> bytes:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"cannot make {path_text(folder)}: {error.strerror}") from error
        numbers = json.dumps(_numbers(accelerator))
        save_tensors(folder / FILE, dict(_tensors(accelerator)), {KEY: numbers})
        return b""

    from_main(accelerator.group, "save_state", write)


def load(accelerator: Accelerator, folder: Path) -> None:
    """Take over a state. All tensors are compared before any is copied.

    Raises:
        CheckpointError: there is no such file, it is damaged, or holds another model's state.
        OptionError: a loader cannot go on there.
    """

    def read() -> bytes:
        try:
            return (folder / FILE).read_bytes()
        except OSError as error:
            raise CheckpointError(f"{path_text(folder / FILE)}: {error.strerror}") from error

    source = path_text(folder / FILE)
    contents = decode(from_main(accelerator.group, "load_state", read), source)
    numbers = _read_numbers(contents, source, accelerator)
    fault = differences(contents.tensors, dict(_tensors(accelerator)), source)
    if fault is not None:
        raise fault
    for loader, state in zip(accelerator.loaders, numbers["loaders"], strict=True):
        loader.load_state_dict(state)
    _copy_tensors(accelerator, contents, numbers["optimizers"])
    for scheduler, state in zip(accelerator.schedulers, numbers["schedulers"], strict=True):
        scheduler.load_state_dict(state)
    default_generator.manual_seed(numbers["seed"]).set_state(*numbers["generator"])
    accelerator.updates, accelerator.skipped = numbers["updates"], numbers["skipped"]


def _tensors(accelerator: Accelerator) -> Iterator[tuple[str, Tensor]]:
    """All tensors of the state by name."""
    for i, model in enumerate(accelerator.models):
        for name, tensor in model.state_dict().items():
            yield _prefix("model", i) + name, tensor
    for i, optimizer in enumerate(accelerator.optimizers):
        for name, tensor in optimizer.state_tensors().items():
            yield _prefix("optimizer", i) + name, tensor


def _prefix(kind: str, number: int) -> str:
    return f"{kind}_{number}." if number else f"{kind}."


def _numbers(accelerator: Accelerator) -> dict[str, Any]:
    """All of the state but tensors."""
    return {
        "format": FORMAT,
        "updates": accelerator.updates,
        "skipped": accelerator.skipped,
        "seed": default_generator.initial_seed(),
        "generator": accelerator.passes.common_state,
        "optimizers": [
            [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
            for optimizer in accelerator.optimizers
        ],
        "schedulers": [scheduler.state_dict() for scheduler in accelerator.schedulers],
        "loaders": [loader.state_dict() for loader in accelerator.loaders],
    }


def _read_numbers(contents: Contents, source: str, accelerator: Accelerator) -> dict[str, Any]:
    """The JSON object of a file; raises unless it fits these objects like that of `_numbers`."""
    if KEY not in contents.metadata:
        raise CheckpointError(f"{source}: a safetensors file, but not one of save_state")
    try:
        numbers: dict[str, Any] = json.loads(contents.metadata[KEY])
        there = {name: len(numbers[name]) for name in ("optimizers", "schedulers", "loaders")}
        generator, version = numbers["generator"], numbers["format"]
        whole = [numbers["updates"], numbers["skipped"], numbers["seed"], *generator]
        usable = len(generator) == 3 and all(type(number) is int for number in whole)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{source}: unreadable metadata: {error}") from error
    if version != FORMAT:
        raise CheckpointError(f"{source}: format {version}, this gradcli reads {FORMAT}")
    if not usable or min(whole[:2]) < 0:
        raise CheckpointError(f"{source}: unreadable metadata: counts are {whole}")
    for name, count in there.items():
        here = len(getattr(accelerator, name))
        if count != here:
            raise CheckpointError(
                f"{source} has the state of {quantity(count, name[:-1])}, prepared "
                f"{'is' if here == 1 else 'are'} {here}"
            )
    return numbers


def _copy_tensors(
    accelerator: Accelerator, contents: Contents, options: list[list[dict[str, Any]]]
) -> None:
    """Copy weights, and the optimizers' tensors and options."""
    with no_grad():
        for i, model in enumerate(accelerator.models):
            for name, tensor in model.state_dict().items():
                raw = contents.tensors[_prefix("model", i) + name]
                tensor.copy_(as_tensor(raw).to(tensor.device))
    for i, (optimizer, groups) in enumerate(zip(accelerator.optimizers, options, strict=True)):
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in optimizer.state_tensors().items():
            kind, _, number = name.rpartition(".")
            raw = contents.tensors[_prefix("optimizer", i) + name]
            state.setdefault(int(number), {})[kind] = as_tensor(raw).to(tensor.device)
        parameters = [group["params"] for group in optimizer.state_dict()["param_groups"]]
        optimizer.load_state_dict(
            {
                "state": state,
                "param_groups": [
                    {**_tuples(group), "params": numbers}
                    for group, numbers in zip(groups, parameters, strict=True)
                ],
            }
        )


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they were before JSON made lists of tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
