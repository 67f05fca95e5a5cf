"""Names of devices: what computes ("cpu", "cuda", "metal"), and which one of several ("cuda:1").

The library has one more, "meta", which computes nothing: see engine/device/meta.py.
"""

from __future__ import annotations

import re

from gradcli.errors import OptionError

DEVICES = ("cpu", "cuda", "metal")
GPUS = DEVICES[1:]
META = "meta"
_LONGEST = 50  # letters of a name in a sentence
_INDEX = re.compile("0|[1-9][0-9]{0,5}")


def parsed(name: object, op: str) -> tuple[str, int]:
    """The kind of a device and its number; errors begin with `op`.

    Raises:
        OptionError: no kind of that name, or no number behind it.
    """
    if not isinstance(name, str):
        raise OptionError(
            f"{op}: a device is a name such as 'cpu' or 'cuda:1', got {type(name).__name__}"
        )
    kind, colon, index = name.partition(":")
    none = f"{op}: no device '{name if len(name) <= _LONGEST else name[:_LONGEST] + '...'}'"
    if kind not in DEVICES:
        raise OptionError(f"{none}; there are {', '.join(DEVICES)} and {META}")
    if colon and not _INDEX.fullmatch(index):
        raise OptionError(
            f"{none}; behind '{kind}:' stands a number, counted from 0 without "
            f"zeros before it{_by_uuid(index)}"
        )
    if kind == "cpu" and int(index or 0):
        raise OptionError(f"{none}; the CPU is one device, 'cpu'")
    return kind, int(index or 0)


def _by_uuid(index: str) -> str:
    """How a GPU, or a part of one (MIG), is chosen by what nvidia-smi -L calls it."""
    if not index.startswith(("GPU-", "MIG-")):
        return ""
    return f"; CUDA_VISIBLE_DEVICES={index} in the environment makes it 'cuda'"


def name_of(kind: str, index: int) -> str:
    """The name of a device; the first of its kind has no number."""
    return f"{kind}:{index}" if index else kind


def kind_of(name: str) -> str:
    """What computes: "cuda" of "cuda:1"."""
    return name.partition(":")[0]


def too_high(index: int, count: int, seen_by: str) -> str:
    """Why a device with this number cannot be used; empty where there are enough."""
    if index < count:
        return ""
    there = "1 GPU, number 0" if count == 1 else f"{count} GPUs, numbers 0 to {count - 1}"
    return f"there is no GPU {index}: {seen_by} shows {there}"
