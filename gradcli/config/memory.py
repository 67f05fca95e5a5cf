"""The memory of a training, known before it begins: its first step planned on the meta device."""

from __future__ import annotations

import gc
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.config.build import job_of
from gradcli.config.crosscheck import location_of
from gradcli.config.room import Room
from gradcli.data import LoadedData, staging
from gradcli.dataclass import dataclass
from gradcli.devices import META
from gradcli.engine import distributed
from gradcli.engine.device import cpu, meta
from gradcli.engine.device.meta import Imagined
from gradcli.engine.program.planned import arena_bytes
from gradcli.errors import CaptureError, DeviceError, ErrorGroup, OptionError, ShapeError
from gradcli.train.order import MAX_LISTED
from gradcli.train.step import OneStep
from gradcli.wording import byte_size, quantity

if TYPE_CHECKING:
    from gradcli.config.load import Config
    from gradcli.data import Split
    from gradcli.engine.distributed import Group

MAX_BYTES = 2**63 - 1
# Of one step as it is replayed: what learning it and all else takes is below so many times that.
FAR = 4


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of a training.

    Attributes:
        persistent: parameters, gradients, what the optimizer keeps, running statistics, the data;
            on ranks the rows of the sum too, its own and those that arrive.
        arena: all intermediates of a captured step, as `gradcli bench --json` says.
        mapped: of data files that are looked at where they lie, and of data that stays on the host
            while a GPU computes; they take none of that memory.
    """

    persistent: int
    arena: int
    mapped: int = 0

    @property
    def total(self) -> int:
        """Persistent and arena together."""
        return self.persistent + self.arena


def program_memory(
    config: Config, group: Group | None = None, device: str = "cpu", free: int | None = None
) -> TrainingMemory:
    """What `train` needs for this config on the CPU, to the byte; no number is computed.

    On a GPU with so many bytes free the data may stay on the host.
    Of the ranks of `group`, all that this process has joined, each makes its own parts of a batch.
    The threads' own scratch and Python are not counted.

    Raises:
        ErrorGroup: a pattern of parameters' names matches none.
        CaptureError, DeviceError: the step looks at numbers, and is not captured.
    """
    group = group or distributed.group()
    config = on_ranks(config, group)
    state, collects = engine.get_rng_state(), gc.isenabled()
    gc.disable()  # what others left in cycles must not be given back while memory is counted
    before, mapped = meta.DEVICE.allocated + cpu.allocated(), meta.DEVICE.mapped
    splits = placed(config.data.outline(config.facts), device, free)
    dataset = LoadedData(config.data, config.facts, splits, sha256={})
    try:
        with engine.device("meta"):
            job = job_of(config, dataset)
            step = OneStep(job, splits["train"], group)
            # The order of more is computed place by place.
            length = min(splits["train"].size, MAX_LISTED)
            order = engine.empty(length, dtype=engine.int64)
        args = order[: config.train.batch], *(row[0] for row in step.inputs([1]))
        arena = arena_bytes(step, args)
        arriving = step.ranks.arriving if step.ranks is not None else 0
        persistent = meta.DEVICE.allocated + cpu.allocated() - before + arriving
        return TrainingMemory(persistent, arena, meta.DEVICE.mapped - mapped)
    finally:
        engine.set_rng_state(state)
        if collects:
            gc.enable()


def placed(splits: Mapping[str, Split], device: str, free: int | None) -> dict[str, Split]:
    """Splits on "meta", counted as they take the memory of a device with so many bytes free.

    On a GPU no file is mapped: what stays on the host takes nothing of it but batches.
    """
    if device == "cpu":
        return dict(splits)
    reason = staging.staging_reason(splits, free)
    for tensor in staging.all_stored(splits):
        storage = tensor.array.storage
        if isinstance(storage, Imagined):
            storage.count(0 if reason else storage.nbytes)
    return staging.staged(splits, META) if reason else dict(splits)


def on_ranks(config: Config, group: Group) -> Config:
    """With the parts in which so many ranks cut a batch."""
    if group.size == 1:
        return config
    from gradcli.train.division import with_parts  # whoever is alone does not wait for it

    return replace(config, train=with_parts(config.train, config.facts.sizes["train"], group.size))


def fitting(config: Config, room: Room) -> TrainingMemory | None:
    """The memory of the training, None where it is not known: own code may look at numbers.

    Patterns of names that match nothing are `check_model`'s to refuse, and parts that are too
    small on so many ranks `check_parts`'.

    Raises:
        ErrorGroup: it does not fit where it shall run.
    """
    config, free = on_ranks(config, distributed.group()), room.free()
    least = _least(config)
    if free is not None and least + room.process > free:
        raise _too_large(config, f"more than {_distinct(least + room.process, free)}", room, free)
    try:
        memory = program_memory(config, device=room.device, free=free)
    except (CaptureError, DeviceError, ErrorGroup):
        return None
    except OptionError:
        if distributed.size() == 1:
            raise
        return None
    if free is not None and FAR * memory.total > free:
        _rehearsed(config, memory, room, free)
    return memory


def _rehearsed(config: Config, memory: TrainingMemory, room: Room, free: int) -> None:
    """Where the room may be too small: raise if it is, by a rehearsal of the whole training."""
    from gradcli.config.rehearsal import rehearse_training  # most trainings have room enough

    most, alone = memory.total, distributed.size() == 1
    rehearsed: dict[int, int] = {}
    if alone:
        with suppress(DeviceError):  # of an evaluation; the step itself is known
            portion = config.train.micro_batch or config.train.batch
            rehearsed[portion] = most = max(
                most, rehearse_training(config, device=room.device, free=free)[0].most
            )
    if most + room.process > free:
        error = _too_large(config, _distinct(most + room.process, free), room, free)
        error.errors[0].notes += _largest(config, free, room, rehearsed) if alone else ()
        raise error


def _distinct(size: int, free: int) -> str:
    """Format bytes so that the text differs from that of the free bytes."""
    text = byte_size(size)
    return text if text != byte_size(free) else quantity(size, "byte", form=",")


def _largest(
    config: Config, free: int, room: Room, rehearsed: Mapping[int, int]
) -> tuple[str, ...]:
    """What batch would fit."""
    from gradcli.config.largest import largest_batch

    largest = largest_batch(config, free - room.process, rehearsed, room.device)
    if largest is None:
        return ()
    if not largest.size:
        return (f"not even {largest.key}={largest.least} fits",)
    return (f"the largest that fits: -s {largest.key}={largest.size}",)


def _least(config: Config) -> int:
    """Bytes without which it cannot be: of the weights, and of the largest output in bfloat16.

    Raises:
        ErrorGroup: no number of 64 bits counts the bytes of all of them.
    """
    leaves = [leaf for layer in config.model for leaf in layer.flat() if not leaf.children]
    count = sum(leaf.parameters for leaf in leaves)
    portion = min(config.train.micro_batch or config.train.batch, config.facts.sizes["train"])
    values = [portion * math.prod(leaf.output.shape) for leaf in leaves]
    if 8 * (count + sum(values)) > MAX_BYTES:
        sentence = (
            f"the model has {quantity(count, 'parameter')} and {quantity(sum(values), 'value')} a "
            "batch; their bytes overflow 64 bits"
        )
        raise ErrorGroup([ShapeError(sentence, location=location_of(config.tree, "model"))])
    return 4 * count + 2 * max(values)


def _too_large(config: Config, need: str, room: Room, free: int) -> ErrorGroup:
    """The error at the model, with what to make smaller."""
    count = sum(layer.parameters for layer in config.model)
    batch = config.train.micro_batch or config.train.batch
    cure = "make the largest layer, train.batch or train.micro_batch smaller"
    if free <= room.process:
        cure = f"allow it more: Python alone takes about {byte_size(room.process)} of that"
    error = DeviceError(
        f"training needs {need}, {room.where} has {byte_size(free)} available",
        code="E402",
        location=location_of(config.tree, "model"),
        notes=(
            f"{quantity(count, 'parameter')}, {config.optim.name}, batches of {batch}",
            cure,
        ),
    )
    return ErrorGroup([error])
