"""What launchers say to each of their processes, and the ranks that MPI makes of these."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradcli.errors import RankError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine.distributed import Group

OPEN_MPI = "Open MPI"

_NUMBER = re.compile(r"[0-9]{1,9}")


class LauncherVariable(NamedTuple):
    """A variable that a launcher gives to each process that it starts.

    Attributes:
        name: of the variable.
        launcher: which command sets it.
        number: the variable that has the process's own number, from 0.
        local: the one that has its number on its host.
        beside: only where this variable is set as well, for people set `name` for other ends.
        meaning: how many processes there are, how many on this host, or, of a launcher that gives
            no number of them, a process's own number from 0.
        mpi: the only MPI that its processes can start, which would end them unheard otherwise.
        cures: what to try first where MPI does not see the others.
    """

    name: str
    launcher: str
    number: str
    local: str = ""
    beside: str = ""
    meaning: Literal["all", "here", "own"] = "all"
    mpi: str = ""
    cures: tuple[str, ...] = ()


# SLURM_NTASKS and SLURM_PROCID are no such marks: the one process of a script of sbatch has them
# too. Only srun sets SLURM_STEP_NUM_TASKS, for the tasks of its step. Launchers that use srun to
# reach their hosts stand above it.
MARKS = (
    LauncherVariable(
        "OMPI_COMM_WORLD_SIZE",
        "mpirun of Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        mpi=OPEN_MPI,
    ),
    LauncherVariable(
        "PMI_SIZE", "mpiexec of MPICH, Intel MPI or PALS", "PMI_RANK", "MPI_LOCALRANKID"
    ),
    LauncherVariable(
        "MPI_LOCALNRANKS",
        "mpiexec of MPICH or Intel MPI",
        "PMI_RANK",
        "MPI_LOCALRANKID",
        meaning="here",
    ),
    LauncherVariable(
        "MV2_COMM_WORLD_SIZE",
        "mpirun_rsh of MVAPICH",
        "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_LOCAL_RANK",
    ),
    LauncherVariable(
        "SLURM_STEP_NUM_TASKS",
        "srun",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        cures=(
            "srun --mpi=pmi2 starts MPICH, --mpi=pmix Open MPI; --mpi=list shows what there is",
        ),
    ),
    LauncherVariable(
        "JSM_NAMESPACE_SIZE", "jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK"
    ),
    LauncherVariable("HOROVOD_SIZE", "horovodrun", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK"),
    LauncherVariable("WORLD_SIZE", "torchrun", "RANK", "LOCAL_RANK", beside="RANK"),
    LauncherVariable("PMIX_RANK", "a launcher with PMIx", "PMIX_RANK", meaning="own"),
    LauncherVariable(
        "PALS_RANKID", "mpiexec of PALS", "PALS_RANKID", "PALS_LOCAL_RANKID", meaning="own"
    ),
    LauncherVariable("ALPS_APP_PE", "aprun", "ALPS_APP_PE", meaning="own"),
)


class LauncherInfo(NamedTuple):
    """What a launcher says to this process."""

    mark: LauncherVariable
    value: int

    def __str__(self) -> str:
        which = (
            f"process {self.value}, counted from 0,"
            if self.mark.meaning == "own"
            else f"one of {quantity(self.value, 'process')}"
        )
        return f"{self.mark.name}={self.value}: this is {which} of {self.mark.launcher}"

    @property
    def several(self) -> bool:
        """Whether there are more processes than this one, as far as it says."""
        return self.value > (0 if self.mark.meaning == "own" else 1)

    def fits(self, size: int) -> bool:
        """Whether there may be so many processes."""
        return {"all": size == self.value, "here": size >= self.value, "own": size > self.value}[
            self.mark.meaning
        ]


def find_launch(environment: Mapping[str, str] = os.environ) -> LauncherInfo | None:
    """The first launch that says that there are more processes; None where this one is alone.

    Process 0 of a launcher that says no more may be alone: then MPI is asked, where it is there.
    """
    launches = list(_launches(environment))
    for launch in launches:
        if launch.several:
            return launch
    unknown = launches and all(launch.mark.meaning == "own" for launch in launches)
    return launches[0] if unknown and find_spec("mpi4py") else None


def _launches(environment: Mapping[str, str]) -> Iterator[LauncherInfo]:
    for mark in MARKS:
        value = environment.get(mark.name, "")
        if _NUMBER.fullmatch(value) and (not mark.beside or mark.beside in environment):
            yield LauncherInfo(mark, int(value))


def is_first(here: bool = False, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the first of its launcher, or on its host: as far as that says it."""
    launch = find_launch(environment)
    if launch is None:
        return True
    value = environment.get(launch.mark.local if here else launch.mark.number, "")
    return not _NUMBER.fullmatch(value) or int(value) == 0


def join_ranks(launch: LauncherInfo, environment: Mapping[str, str] = os.environ) -> Group:
    """The ranks of the launcher, which are the group from here on.

    Raises:
        RankError: E801, mpi4py is absent, or its MPI does not see them.
    """
    from gradcli.engine import distributed

    names = " ".join(f"-u {mark.name}" for mark in MARKS if mark.name in environment)
    apart = (
        "where each process is to train something else, take away what says that they belong "
        f"together: env {names} gradcli ..."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what mpi4py suspects is E801 below
        try:
            version = distributed.mpi_version()
        except ImportError as error:
            raise RankError(
                f"{launch}, but mpi4py, by which they train together, cannot be used: {error}",
                notes=("pip install 'gradcli[mpi]', and an MPI where the machine has none", apart),
            ) from None
        group = distributed.join() if version.startswith(launch.mark.mpi) else None
    if group is None or not launch.fits(group.size):
        sees = f"sees {quantity(group.size, 'process')}" if group else "cannot start there"
        raise RankError(
            f"{launch}, but mpi4py is of another MPI: {version}, which {sees}",
            notes=(
                *launch.mark.cures,
                f"start it with the mpirun of {version}, or pip install 'gradcli[mpi]' where the "
                "launcher's MPI is the only one",
                apart,
            ),
        )
    return group
