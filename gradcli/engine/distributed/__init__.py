"""Ranks: the processes that a launcher such as mpirun or srun has started together.

`join` makes the group of them, once; before that, and without a launcher, `group()` is this process
alone. Nothing here prints, mpi4py is imported by `mpi_version` and `join` only, and what others
than a process alone need by the functions that need it.

What ranks give is 1/N of the work each: `all_reduce_` adds their tensors, `all_gather` puts them
side by side, `broadcast_` hands one round. All ranks call the same functions in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from gradcli.engine.distributed.group import ALONE, Group
from gradcli.engine.tensor import Tensor

if TYPE_CHECKING:
    from gradcli.engine.distributed.sum import Sum as Sum
else:

    def __getattr__(name: str) -> Any:
        """Sum is imported when it is first asked for: most processes are alone."""
        if name != "Sum":
            raise AttributeError(f"gradcli.engine.distributed has no '{name}'")
        from gradcli.engine.distributed.sum import Sum

        return Sum


__all__ = [
    "ALONE",
    "Group",
    "Sum",
    "all_gather",
    "all_reduce_",
    "at_work",
    "barrier",
    "broadcast_",
    "group",
    "join",
    "local_rank",
    "mpi_version",
    "rank",
    "size",
]

_groups: list[Group] = [ALONE]


def mpi_version() -> str:
    """The MPI that mpi4py works with: "MPICH 5.0.2"; loaded, and not begun.

    Raises:
        ImportError: mpi4py is not installed, or has no MPI to load.
    """
    from gradcli.engine.distributed import mpi

    return mpi.version()


def join(timeout: float = 300.0, note: Callable[[str], None] | None = None) -> Group:
    """The group of all processes that the launcher has started, from here on `group()`.

    Args:
        timeout: seconds after which a rank that does not come is an error.
        note: is called with a sentence when a rank has not come for 30 seconds.

    Raises:
        ImportError: mpi4py is not installed, or has no MPI to load.
        LostRankError: E806, a rank did not come.
    """
    if group() is ALONE:
        from gradcli.engine.distributed.mpi import MPIGroup

        _groups.append(MPIGroup(timeout, note))
    return group()


def group() -> Group:
    """The ranks that this process has joined; itself alone where it has not."""
    return _groups[-1]


def at_work() -> AbstractContextManager[None]:
    """Inside the block the other ranks wait for this one as long as it lives.

    It works by itself there, on data of its own, and exchanges nothing.
    """
    if size() == 1:
        return nullcontext()
    from gradcli.engine.distributed.pulse import Pulse

    return Pulse(group())


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
    """Return once every rank has called this.

    Raises:
        LostRankError: E806, a rank did not come within the group's timeout.
    """
    group().barrier("a barrier")


def broadcast_(tensor: Tensor, source: int = 0) -> Tensor:
    """Overwrite a tensor with that of rank `source`; returns it.

    Raises:
        ShapeError: the ranks have other shapes or types.
        LostRankError: E806, a rank did not come.
    """
    from gradcli.engine.distributed import tensors

    return tensors.broadcast_(group(), tensor, source)


def all_reduce_(tensor: Tensor) -> Tensor:
    """Overwrite a tensor with the sum of all ranks' tensors, added along the tree; returns it.

    Raises:
        ShapeError: the ranks have other shapes or types.
        LostRankError: E806, a rank did not come.
    """
    from gradcli.engine.distributed import tensors

    return tensors.all_reduce_(group(), tensor)


def all_gather(tensor: Tensor) -> list[Tensor]:
    """The tensors of all ranks, in order of ranks; each has its own shape.

    Raises:
        LostRankError: E806, a rank did not come.
    """
    from gradcli.engine.distributed import tensors

    return tensors.all_gather(group(), tensor)
