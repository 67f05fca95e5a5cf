"""Check before the first step that the disk has room for the checkpoints to come."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli.errors import CheckpointError, RunError
from gradcli.train.checkpoint import names
from gradcli.train.safetensors_file import RawTensor
from gradcli.train.state import dtype_name
from gradcli.wording import byte_size, quantity

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.train.job import TrainSettings

LEAST_KEPT = 2  # of the newest, whatever `train.keep` says


def outlines(tensors: Mapping[str, Tensor]) -> dict[str, RawTensor]:
    """The types and shapes of a checkpoint's tensors, without the numbers."""
    return {
        name: RawTensor(dtype_name(tensor), tuple(tensor.shape), b"")
        for name, tensor in tensors.items()
    }


def files_at_once(
    settings: TrainSettings, evaluates: bool, begin: int, end: int, per_epoch: int
) -> int:
    """How many checkpoints lie on the disk at a time: the newest, the best, one being written.

    `begin` is the first step at which one may be saved, `end` the last.
    """
    watches = evaluates and settings.judge is not None
    after = max(settings.keep, LEAST_KEPT) + watches
    return min(after + 1, _saves(settings, watches, begin, end, per_epoch))


def _saves(settings: TrainSettings, watches: bool, begin: int, end: int, per_epoch: int) -> int:
    """The most checkpoints that can be saved from one step to another."""
    if begin > end:
        return 0
    if settings.checkpoint_minutes is not None:
        return end - begin + 1
    saves = settings.checkpoint_every or per_epoch
    evaluations = settings.eval_every or per_epoch

    def times(period: int) -> int:
        return (end - 1) // period - (begin - 1) // period

    also = times(evaluations) - times(math.lcm(saves, evaluations)) if watches else 0
    return times(saves) + also + 1


def check_room(folder: Path, size: int, files: int, keep: int) -> None:
    """Raise if so many checkpoints of a size do not fit on the disk.

    Checkpoints already in the folder count as room: they are replaced.

    Raises:
        RunError: E703, with what is needed and what is free.
    """
    space = _space(folder)
    if space is None:
        return
    free, block = space
    whole = -(-size // block) * block
    more = max(files - _present(folder), 1) if files else 0
    if more * whole <= free:
        return
    lower = ("or set train.keep lower",) if keep > LEAST_KEPT else ()
    raise RunError(
        f"{quantity(more, 'checkpoint')} of {byte_size(size)} each would not fit on the disk of "
        f"{folder}: {byte_size(more * whole)} needed, {byte_size(free)} free",
        code="E703",
        notes=(
            f"make room for {byte_size(more * whole - free)} more, or begin the run on another "
            "disk: gradcli train --runs DIR",
            *lower,
        ),
    )


def _present(folder: Path) -> int:
    try:
        return len(names(folder))
    except CheckpointError:
        return 0


def _space(folder: Path) -> tuple[int, int] | None:
    """Free bytes for this user, and those of a block; None where the file system does not say."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return None
    if not space.f_blocks or not space.f_frsize:
        return None
    blocks = space.f_bfree if os.geteuid() == 0 else space.f_bavail
    return blocks * space.f_frsize, space.f_frsize
