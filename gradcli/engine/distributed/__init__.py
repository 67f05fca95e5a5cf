"""Ranks: the processes that a launcher such as mpirun or srun has started together.

`join` makes the group of them, once; before that, and without a launcher, `group()` is this process
alone. Nothing here prints, and mpi4py is imported by `join` only.
"""

from __future__ import annotations

from gradcli.engine.distributed.group import ALONE, Group
from gradcli.engine.distributed.sum import Sum

__all__ = ["ALONE", "Group", "Sum", "barrier", "group", "local_rank", "rank", "size"]

_groups: list[Group] = [ALONE]


def group() -> Group:
    """The ranks that this process has joined; itself alone where it has not."""
    return _groups[-1]


def rank() -> int:
    """The number of this process, from 0."""
    return group().rank


def size() -> int:
    """How many processes there are."""
    return group().size


def local_rank() -> int:
    """How many processes of lower number this host has."""
    return group().local_rank


def barrier() -> None:
    """Return once every rank has called this."""
    group().barrier("a barrier")
