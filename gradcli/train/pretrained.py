"""Pretrained weights from a checkpoint, any safetensors file, a run, or a published model."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.engine.nn.lora import LoRALinear, is_adapter
from gradcli.errors import CheckpointError, GradcliError, RunError
from gradcli.registry import did_you_mean
from gradcli.train import checkpoint
from gradcli.train.directory import checkpoint_file
from gradcli.train.published.folder import is_part, is_published
from gradcli.train.run_name import find
from gradcli.train.safetensors_file import RawTensor, read
from gradcli.train.state import MODEL, OPTIMIZER, as_evaluated, as_tensor, dtype_name, readable
from gradcli.wording import further, quantity, verb

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn, optim
    from gradcli.train.checkpoint import CheckpointMeta

# These keys decide the order of the parameters, by whose numbers an optimizer stores its state.
ORDER = ("optim.no_decay", "optim.groups", "lora", "freeze")
_NO_STATE = "without pretrained.optimizer the weights alone are taken"


@dataclass(frozen=True)
class State:
    """An optimizer that begins with the state of another one.

    Attributes:
        name: its name in the config.
        config: the resolved config that it belongs to.
    """

    optimizer: optim.Optimizer
    name: str
    config: Mapping[str, Any]


@dataclass(frozen=True)
class WeightSource:
    """The contents of a file: tensors of model and optimizer by name, and a checkpoint's `meta`.

    Averages take the place of averaged weights.
    """

    model: Mapping[str, RawTensor]
    optimizer: Mapping[str, RawTensor] = field(default_factory=dict)
    meta: CheckpointMeta | None = None


def locate(text: str, root: Path, runs: Path) -> Path:
    """Resolve `pretrained.from`: a file, a published folder, or the checkpoint of RUN[@W].

    A relative path begins in `root`, the config's folder, or else in the current one; a run's name
    works too. Without W it is the best checkpoint if the run keeps one, else the last.
    """
    for file in (root / text, Path(text)):
        # (os.path is false, and no OSError, for a name that is too long.)
        if os.path.isfile(file) or is_published(file):  # noqa: PTH113
            return file
    reason: RunError | None = None
    for run in (str(root / text), text):
        try:
            path, which = find(runs, run)
        except RunError as error:
            reason = error
            continue
        try:
            return checkpoint_file(path, which)
        except GradcliError as error:
            error.message = f"pretrained.from: {error.message}"
            raise
    assert reason is not None
    raise CheckpointError(
        f"pretrained.from: there is no file {ascii(str(root / text))[1:-1]}, and {reason.message}",
        code="E707",
        notes=(
            "give a safetensors file, a checkpoint, the folder of a published model, or a run as "
            "RUN, RUN@best, RUN@last, RUN@STEP",
            *reason.notes,
        ),
    )


def take_over(
    model: nn.Module, file: Path, names: Collection[str], state: State | None = None
) -> str:
    """Copy the weights called `names` from a file or published folder; returns a line to show.

    With a `state` its optimizer gets the state of the file's optimizer too, step counts included.
    Everything is compared before anything is copied. The rest of the file is ignored.
    """
    if file.is_dir():
        _check_stateless(file, state)
        from gradcli.train.published.loading import take_over_published  # few begin so

        return take_over_published(model, file, names)
    source, weights, memory = _compare(model, file, names, state)
    with engine.no_grad():
        for name, tensor in weights.items():
            tensor.copy_(as_tensor(source.model[name]))
        for name, tensor in memory.items():
            tensor.copy_(as_tensor(source.optimizer[name]))
    beginning = f"{quantity(len(weights), 'weight')} {verb(len(weights), 'begins', 'begin')}"
    if state is None or source.meta is None:
        return f"{beginning} as in {file}"
    after = f"the optimizer's state after {quantity(source.meta.step, 'step')}"
    return (
        f"{quantity(len(weights), 'weight')} and {after} begin as in {file}; the schedule begins "
        "anew"
    )


def check_source(
    model: nn.Module, file: Path, names: Collection[str], state: State | None = None
) -> None:
    """Raise the errors that `take_over` would raise; the model may be on meta."""
    if not file.is_dir():
        _compare(model, file, names, state)
        return
    _check_stateless(file, state)
    from gradcli.train.published.loading import compare

    compare(model, file, names)


def _check_stateless(folder: Path, state: State | None) -> None:
    if state is not None:
        raise _refusal("no optimizer's state", [f"{folder} is a published model"], _NO_STATE)


def _compare(
    model: nn.Module, file: Path, names: Collection[str], state: State | None
) -> tuple[WeightSource, dict[str, Tensor], Mapping[str, Tensor]]:
    """A file's contents, and the weights and state to copy from it; raises unless all fit."""
    if is_part(file):
        raise CheckpointError(
            f"pretrained: {file} is a part of a published model; give its folder, {file.parent}",
            code="E704",
        )
    source = _read(file)
    # Adapters that the file lacks begin anew.
    weights = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if name in names and (name in source.model or not is_adapter(name))
    }
    _check_adapters(model, weights, source, file)
    problems = _problems(weights, source.model)
    if problems:
        share = f"{len(problems)} of {quantity(len(weights), 'weight')}"
        message = f"{share} {verb(len(problems), 'does', 'do')} not come from {file}"
        cure = "pretrained.layers names the layers whose weights are there"
        raise _refusal(message, problems, cure)
    memory = {} if state is None else state.optimizer.state_tensors()
    problems = [] if state is None else list(_misfits(state, memory, model, source))
    if problems:
        message = f"the optimizer's state does not come from {file}"
        raise _refusal(message, problems, _NO_STATE)
    return source, weights, memory


def _refusal(message: str, problems: list[str], cure: str) -> CheckpointError:
    return CheckpointError(
        f"pretrained: {message}: {problems[0]}", code="E704", notes=(*further(problems), cure)
    )


def _read(file: Path) -> WeightSource:
    """The contents of a file; verifies a checkpoint."""
    contents = read(file)
    if checkpoint.KEY not in contents.metadata:
        return WeightSource(_bare(contents.tensors, MODEL))
    del contents
    saved = checkpoint.read(file)
    model = _bare(as_evaluated(saved.tensors), MODEL)
    return WeightSource(model, _bare(saved.tensors, OPTIMIZER, alone=True), saved.meta)


def _bare(
    tensors: Mapping[str, RawTensor], prefix: str, *, alone: bool = False
) -> dict[str, RawTensor]:
    """The tensors under a prefix, by their bare names; all if none has it, unless `alone`."""
    some = {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
    return some if some or alone else dict(tensors)


def _problems(weights: Mapping[str, Tensor], tensors: Mapping[str, RawTensor]) -> list[str]:
    """A line for each weight that cannot come from the file."""
    return [problem for name in weights if (problem := _problem(name, weights[name], tensors))]


def _problem(name: str, tensor: Tensor, tensors: Mapping[str, RawTensor]) -> str:
    """Why a weight cannot come from the file; empty if it can."""
    ours = f"{dtype_name(tensor)}{list(tensor.shape)}"
    if name not in tensors:
        return f"{name} {ours} is not in it; {did_you_mean(name, tensors, 'nothing is called so')}"
    theirs = tensors[name]
    if not readable(theirs, tensor) or theirs.shape != tuple(tensor.shape):
        return f"{name} is {theirs.dtype}{list(theirs.shape)} in it, {ours} in the model"
    return ""


def _check_adapters(
    model: nn.Module, weights: Mapping[str, Tensor], source: WeightSource, file: Path
) -> None:
    """Raise if trained weights would lose their A and B of lora, or their factor."""
    theirs = {name for name in source.model if is_adapter(name)}
    layers = {name.rpartition(".")[0] for name in theirs - weights.keys()}
    layers = {layer for layer in layers if f"{layer}.weight" in weights}
    if layers:
        raise CheckpointError(
            f"pretrained: {file} holds the A and B of lora beside "
            f"{quantity(len(layers), 'layer')}, such as {min(layers)}, where the model has none",
            code="E704",
            notes=("`gradcli export RUN FILE --merge` adds them to the weights; begin with FILE",),
        )
    alpha = _at({} if source.meta is None else source.meta.config, "lora.alpha")
    ours = {module.alpha for module in model.modules() if isinstance(module, LoRALinear)}
    if theirs & weights.keys() and alpha and ours != {alpha}:
        raise CheckpointError(
            f"pretrained: {file} was trained with lora.alpha {alpha}, the config has {ours.pop()}",
            code="E704",
        )


def _misfits(
    state: State, memory: Mapping[str, Tensor], model: nn.Module, source: WeightSource
) -> Iterator[str]:
    """A line for each reason why the optimizer cannot begin with the state in a file.

    The state refers to parameters by number, not name, so whatever orders them must agree.
    """
    if source.meta is None:
        yield "it is no checkpoint of gradcli"
        return
    if source.meta.optimizer != state.name:
        yield f"optim: it has the state of {source.meta.optimizer}, the config {state.name}"
        return
    for key in ORDER:
        theirs, ours = (
            json.dumps(_at(config, key)) for config in (source.meta.config, state.config)
        )
        if theirs != ours:
            yield f"{key}: it was made with {theirs}, the config has {ours}"
    weights = model.state_dict()
    yield from _problems(weights, source.model)
    for name in sorted(source.model.keys() - weights.keys()):
        yield f"{name} is in it and not in the model"
    yield from _problems(memory, source.optimizer)


def _at(config: Mapping[str, Any], key: str) -> Any:
    """The value at a key of a resolved config; an empty list if there is none."""
    section, _, name = key.rpartition(".")
    return (config.get(section) or {} if section else config).get(name) or []
