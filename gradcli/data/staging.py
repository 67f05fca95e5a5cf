"""Data that is too large for a GPU: it stays on the host, and batches go there one by one.

The CPU's kernels gather the samples of a step, as they are stored, while the GPU computes the step
before: program/on_device.py makes the CPU's calls of a step first, and the driver's staging memory
takes what they gathered along. All that follows is computed on the GPU, as if the samples had come
from there, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gradcli import engine
from gradcli.devices import META
from gradcli.engine import Tensor
from gradcli.wording import byte_size

if TYPE_CHECKING:
    from gradcli.data.dataset import Split

SHARE = 0.25  # of a GPU's free memory: more data than that stays on the host


@runtime_checkable
class StageableSplit(Protocol):
    """A split that can stay on the host while a GPU computes."""

    def staged(self, device: str) -> Split:
        """The same samples where they are, whose batches go to a device."""


def gathered(tensor: Tensor, indices: Tensor, device: str | None) -> Tensor:
    """The rows at these places, moved to `device` unless that is None."""
    rows = engine.index_select(tensor, 0, indices)
    if device is None:
        return rows
    return rows.clone() if device == META else rows.to(device)


def all_stored(splits: Mapping[str, Split]) -> list[Tensor]:
    """The tensors of splits that can stay on the host, each once."""
    tensors = {}
    for split in splits.values():
        if isinstance(split, StageableSplit):
            for value in vars(getattr(split, "plain", split)).values():
                if isinstance(value, Tensor):
                    tensors[id(value.array.storage), value.array.offset, value.shape] = value
    return list(tensors.values())


def nbytes(splits: Mapping[str, Split]) -> int:
    """Bytes of these splits on a device."""
    return sum(tensor.numel() * tensor.dtype.size for tensor in all_stored(splits))


def staging_reason(splits: Mapping[str, Split], free: int | None) -> str:
    """Why these splits stay on the host of a GPU with `free` bytes; empty where they do not."""
    from gradcli.engine.device.gpu.device import MOST_COUNTED

    if not all(isinstance(split, StageableSplit) for split in splits.values()):
        return ""
    size = nbytes(splits)
    if free is not None and size > SHARE * free:
        return f"more than {SHARE:.0%} of the {byte_size(free)} that it has free"
    if any(tensor.numel() > MOST_COUNTED for tensor in all_stored(splits)):
        return f"and its kernels count no more than {MOST_COUNTED:,} elements of a tensor"
    return ""


def staged(splits: Mapping[str, Split], device: str) -> dict[str, Split]:
    """The same splits, whose batches go to a device."""
    return {
        name: split.staged(device) if isinstance(split, StageableSplit) else split.to(device)
        for name, split in splits.items()
    }


def placed(
    splits: Mapping[str, Split], device: str, memory: int | None = None
) -> tuple[dict[str, Split], tuple[str, ...]]:
    """The same splits in a device's memory; where they are if they are large, and a line of it.

    `memory` limits the bytes to use there; None: no limit.
    """
    free = free_on(device, memory)
    reason = "" if free is None else staging_reason(splits, free)
    if reason:
        return staged(splits, device), (note(splits, device, reason),)
    return {name: split.to(device) for name, split in splits.items()}, ()


def free_on(device: str, memory: int | None = None) -> int | None:
    """Bytes that a GPU has free, of which no more than `memory` are to be used; None of others."""
    from gradcli.engine.device.gpu import opened

    gpu = None if device in ("cpu", META) else opened.device(device)
    if gpu is None:
        return None
    free = gpu.driver.free_memory()
    return free if memory is None else min(free, memory)


def note(splits: Mapping[str, Split], device: str, reason: str) -> str:
    """A line for the user."""
    return (
        f"the data stays in the host's memory: it would take {byte_size(nbytes(splits))} of "
        f"{device}, {reason}; batches go there while the step before computes"
    )
