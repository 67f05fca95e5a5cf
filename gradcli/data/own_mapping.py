"""Files that own code has mapped: looked after like those that gradcli maps itself."""

from __future__ import annotations

import weakref
from mmap import mmap
from pathlib import Path

from gradcli.data import hashes
from gradcli.data.prepared.identity import FileIdentity
from gradcli.data.prepared.mapped import Mapping
from gradcli.engine.device import cpu
from gradcli.engine.device.guard import Guard

_NAMELESS = FileIdentity(0, 0, 0, 0)
# What is known of each file beside its memory, which belongs to own code.
_watched: dict[int, tuple[weakref.ref[mmap], Path, FileIdentity, int, Guard]] = {}


def watch(memory: mmap, name: object) -> None:
    """Look after a file as long as its memory is there; `name` is its path, where that is known.

    Zeros take the place of what is cut off, and the watching guard notes it; without a guard the
    system would end the process.
    """
    number = id(memory)
    if number in _watched or not _has_file(memory):
        return
    path = Path(name) if isinstance(name, str | Path) else None
    identity = FileIdentity.of(path) if path is not None and path.is_file() else _NAMELESS
    address = cpu.address(cpu.borrow(memory))
    guard = Guard(address, len(memory))
    label = path if path is not None else Path("mapped by own code")
    _watched[number] = (weakref.ref(memory), label, identity, address, guard)
    weakref.finalize(memory, _forget, number, guard)


def _has_file(memory: mmap) -> bool:
    try:
        memory.size()
    except (OSError, ValueError):  # memory of no object, or a file that Python does not hold open
        return False
    return True


def _forget(number: int, guard: Guard) -> None:
    _watched.pop(number, None)
    guard.take_off()


def check_watched(closely: bool) -> None:
    """Raise where a file has changed since it was first used."""
    for reference, path, identity, address, guard in list(_watched.values()):
        memory = reference()
        if memory is not None:
            mapping = Mapping(path, identity, memory, 0, address, len(memory), guard, alone=True)
            mapping.check(closely and identity is not _NAMELESS)


hashes.lookouts.append(check_watched)
