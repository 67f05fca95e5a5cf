"""What a run of a config will be, layer by layer and as a whole: known before it begins.

The step is recorded on the meta device and becomes the list of calls that `train` replays; whose
each call is, and how much work, is counted from its shapes. Nothing is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.bench import counting, layers
from gradcli.bench.calls import CallOwners, Owned
from gradcli.bench.layers import Scope, Scopes
from gradcli.bench.step import MarkedStep
from gradcli.config.build import job_of
from gradcli.config.rehearsal import imagined_data, rehearse, undisturbed
from gradcli.dataclass import dataclass
from gradcli.engine import recording
from gradcli.engine.device import meta, scope
from gradcli.engine.program.passes import PASSES, optimized
from gradcli.engine.program.planned import Rehearsal
from gradcli.errors import CaptureError, DeviceError
from gradcli.train.disk import files_at_once, outlines
from gradcli.train.first_loss import guess_loss
from gradcli.train.job import steps_per_epoch
from gradcli.train.state import all_tensors

if TYPE_CHECKING:
    from gradcli.config.load import Config
    from gradcli.config.planned import PlannedLayer
    from gradcli.engine import Tensor
    from gradcli.engine.device.cpu import Storage
    from gradcli.engine.program.record import Call
    from gradcli.train.job import Job


@dataclass
class PartCost:
    """What a layer or another part of a step does.

    Attributes:
        kept: bytes of the step's own memory that the way back needs, of one part of a batch; what
            two layers need counts once, for the first of them.
    """

    flops_forward: int = 0
    flops_backward: int = 0
    bytes_forward: int = 0
    bytes_backward: int = 0
    kept: int = 0

    def add(self, work: PartCost) -> None:
        """Add the work of another to this."""
        for name, value in asdict(work).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class _OwnedRehearsal(Owned, Rehearsal):
    """A recording on meta that knows whose each call is."""

    def is_made(self, storage: Storage) -> bool:
        """Whether the step itself made this memory."""
        buffer = self._buffers.get(id(storage))
        return buffer is not None and buffer.internal


def layer_work(config: Config) -> dict[str, PartCost]:
    """The work of each layer and other part of a captured step, by its title.

    Raises:
        CaptureError, DeviceError: the step looks at numbers.
    """
    scopes = Scopes()
    recorded = _OwnedRehearsal(scopes=scopes)
    works: dict[str, PartCost] = {}
    with undisturbed():
        with engine.device("meta"):
            job = job_of(config, imagined_data(config))
        with layers.watched(job, config.model, scopes) as watched:
            loss = _counting(watched.loss, scopes, recorded, works)
            step = MarkedStep(replace(watched, loss=loss), job.dataset.splits["train"], scopes)
            with engine.device("meta"):
                size = min(config.train.batch, job.dataset.splits["train"].size)
                indices = engine.empty(size, dtype=engine.int64)
            inputs = [row[0] for row in step.inputs([1])]
            with meta.blank(False), scope.on(meta.DEVICE), recording.to(recorded):
                result = step(indices, *inputs)
        recorded.close()
        del result
        calls = optimized(recorded.calls, tuple(PASSES))
    origins = CallOwners(recorded)
    for call in calls:
        _count(call, origins.owner(call), works)
    return works


def _count(call: Call, turn: Scope, works: dict[str, PartCost]) -> None:
    flops, nbytes = counting.work(call) if call.kernel else (0, 0)
    work = works.setdefault(turn.owner, PartCost())
    if turn.backward:
        work.add(PartCost(flops_backward=flops, bytes_backward=nbytes))
    else:
        work.add(PartCost(flops_forward=flops, bytes_forward=nbytes))


def _counting(
    loss: Callable[[Tensor, Tensor], Tensor],
    scopes: Scopes,
    recorded: _OwnedRehearsal,
    works: dict[str, PartCost],
) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss; what the nodes of its first graph keep is counted."""
    ids: set[int] = set()

    def call(outputs: Tensor, targets: Tensor) -> Tensor:
        result = loss(outputs, targets)
        if not ids:
            for node in sorted(layers.graph(result), key=lambda node: node.number):
                work = works.setdefault(scopes.of_node(node).owner, PartCost())
                for storage, _ in node.versions:
                    if id(storage) not in ids and recorded.is_made(storage):
                        ids.add(id(storage))
                        work.kept += storage.nbytes
        return result

    return call


def tree(plan: Sequence[PlannedLayer], works: Mapping[str, PartCost]) -> list[dict[str, Any]]:
    """The layers, each with its work and that of all inside it, as plain values."""
    return [_branch(layer, works) for layer in plan]


def _branch(layer: PlannedLayer, works: Mapping[str, PartCost]) -> dict[str, Any]:
    work = PartCost()
    for deep in layer.flat():
        work.add(works.get(f"{deep.index} {deep.title}", PartCost()))
    return {
        "index": layer.index,
        "title": layer.title,
        "kind": layer.spelling,
        "input": list(layer.input.shape),
        "output": list(layer.output.shape),
        "parameters": layer.parameters,
        **asdict(work),
        "turn": len(layer.children) // int(layer.fields.get("times", 1) or 1),
        "children": tree(layer.children, works),
    }


def parts(plan: Sequence[PlannedLayer], works: Mapping[str, PartCost]) -> dict[str, Any]:
    """What a step does beside its layers: the batch, the loss, the optimizer."""
    titles = {f"{deep.index} {deep.title}" for layer in plan for deep in layer.flat()}
    return {name: asdict(work) for name, work in works.items() if name not in titles}


def course(config: Config) -> dict[str, Any]:
    """Steps, checkpoints on the disk at the end, and the first loss to expect."""
    per_epoch = steps_per_epoch(config.train, config.facts.sizes["train"])
    with undisturbed(), engine.device("meta"):
        job = job_of(config, imagined_data(config, splits=False))
        count = files_at_once(config.train, "val" in config.facts.sizes, 1, config.steps, per_epoch)
        tensors = outlines(all_tensors(job.model, job.optimizer))
    average = 1 if config.train.ema is None else 2
    weights = sum(p.numel() * p.dtype.size for p in job.model.parameters())
    size = sum(tensor.size for tensor in tensors.values()) + (average - 1) * weights
    return {
        "steps": config.steps,
        "steps_per_epoch": per_epoch,
        "checkpoints": {"count": count, "bytes": count * size},
        "first_loss": first_loss(config, job),
    }


def first_loss(config: Config, job: Job) -> float | None:
    """The loss of a model that knows nothing yet; None where nothing can be said."""
    name, facts = config.loss.name, config.facts
    if name == "bce_with_logits" or (name == "bce" and facts.classes is None):
        return math.log(2)
    if name == "mse" and getattr(config.data, "target_scale", None) == "standard":
        return 1.0  # the variance of scaled targets
    if name == "nll" and facts.classes and facts.classes > 1:
        return math.log(facts.classes)
    return guess_loss(job)


def sheet(config: Config, device: str = "cpu", free: int | None = None) -> dict[str, Any]:
    """All of it as plain values, for plan.json and `plan --json`.

    Where the step looks at numbers it is not known what the layers do, and `why_not_planned` says
    so. A GPU with so many bytes free may leave the data on the host.
    """
    try:
        works, memory = layer_work(config), rehearse(config, device=device, free=free)
    except (CaptureError, DeviceError) as error:
        return {**course(config), "why_not_planned": error.message}
    return {
        **course(config),
        "model": tree(config.model, works),
        "parts": parts(config.model, works),
        "memory": memory.as_json(),
        "why_not_captured": memory.fallback_reason,
    }


def branches(
    model: Sequence[Mapping[str, Any]], depth: int = 0
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Each layer of a tree with its depth; of a repeat the first turn alone."""
    for branch in model:
        yield branch, depth
        yield from branches(branch["children"][: branch["turn"]], depth + 1)
