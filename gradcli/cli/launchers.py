"""Launchers of several processes: a training is one, until it can be divided among ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gradcli.errors import ConfigError
from gradcli.wording import quantity

_NUMBER = re.compile(r"[0-9]{1,9}")


class Mark(NamedTuple):
    """A variable that a launcher gives to each process that it starts.

    Attributes:
        name: it holds the number of processes; or, of a launcher that gives none, a process's own
            number from 0.
        launcher: which command sets it.
        beside: only where this variable is set as well, for people set `name` for other ends.
    """

    name: str
    launcher: str
    beside: str = ""
    own_number: bool = False


# SLURM_NTASKS and SLURM_PROCID are no such marks: the one process of a script of sbatch has them
# too. Only srun sets SLURM_STEP_NUM_TASKS, for the tasks of its step.
MARKS = (
    Mark("OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"),
    Mark("PMI_SIZE", "mpiexec of MPICH, Intel MPI or PALS"),
    Mark("MPI_LOCALNRANKS", "mpiexec of MPICH or Intel MPI"),
    Mark("MV2_COMM_WORLD_SIZE", "mpirun_rsh of MVAPICH"),
    Mark("SLURM_STEP_NUM_TASKS", "srun"),
    Mark("JSM_NAMESPACE_SIZE", "jsrun"),
    Mark("HOROVOD_SIZE", "horovodrun"),
    Mark("WORLD_SIZE", "torchrun", beside="RANK"),
    Mark("PMIX_RANK", "a launcher with PMIx", own_number=True),
    Mark("PALS_RANKID", "mpiexec of PALS", own_number=True),
    Mark("ALPS_APP_PE", "aprun", own_number=True),
)


def refuse_several(environment: Mapping[str, str] = os.environ) -> None:
    """Refuse to train where this is one of several processes: each would train the same again."""
    first = next(_marks(environment), None)
    if first is None:
        return
    value = environment[first.name]
    names = " ".join(f"-u {mark.name}" for mark in MARKS if mark.name in environment)
    which = (
        f"process {value}, counted from 0,"
        if first.own_number
        else f"one of {quantity(value, 'process')}"
    )
    raise ConfigError(
        f"{first.name}={value}: this is {which} of {first.launcher}, and each would train a whole "
        "run of its own: a training cannot be divided among processes yet",
        code="E129",
        notes=(
            f"start it once, without {first.launcher.partition(' of ')[0]}: it takes all cores",
            "where each process is to train something else, take away what says that they belong "
            f"together: env {names} gradcli ...",
        ),
    )


def _marks(environment: Mapping[str, str]) -> Iterator[Mark]:
    """The variables that say that there are more processes than this one."""
    for mark in MARKS:
        value = environment.get(mark.name, "")
        alone = 0 if mark.own_number else 1
        several = _NUMBER.fullmatch(value) is not None and int(value) > alone
        if several and (not mark.beside or mark.beside in environment):
            yield mark
