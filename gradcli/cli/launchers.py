"""Launchers of several processes: what they set, which commands train together, how ranks end."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradcli.cli import output
from gradcli.errors import GradcliError, RankError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine.distributed import Group

COMMANDS = ("train", "resume", "eval", "doctor")  # those that ranks carry out together
OPEN_MPI = "Open MPI"
# Seconds for rank 0 to speak first: what all ranks find wrong is then said once.
TURN = 0.5

_NUMBER = re.compile(r"[0-9]{1,9}")


class Mark(NamedTuple):
    """A variable that a launcher gives to each process that it starts.

    Attributes:
        name: of the variable.
        launcher: which command sets it.
        beside: only where this variable is set as well, for people set `name` for other ends.
        says: how many processes there are, how many on this host, or, of a launcher that gives no
            number of them, a process's own number from 0.
        mpi: the only MPI that its processes can start, which would end them unheard otherwise.
    """

    name: str
    launcher: str
    beside: str = ""
    says: Literal["all", "here", "own"] = "all"
    mpi: str = ""


# SLURM_NTASKS and SLURM_PROCID are no such marks: the one process of a script of sbatch has them
# too. Only srun sets SLURM_STEP_NUM_TASKS, for the tasks of its step. Launchers that use srun to
# reach their hosts stand above it.
MARKS = (
    Mark("OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI", mpi=OPEN_MPI),
    Mark("PMI_SIZE", "mpiexec of MPICH, Intel MPI or PALS"),
    Mark("MPI_LOCALNRANKS", "mpiexec of MPICH or Intel MPI", says="here"),
    Mark("MV2_COMM_WORLD_SIZE", "mpirun_rsh of MVAPICH"),
    Mark("SLURM_STEP_NUM_TASKS", "srun"),
    Mark("JSM_NAMESPACE_SIZE", "jsrun"),
    Mark("HOROVOD_SIZE", "horovodrun"),
    Mark("WORLD_SIZE", "torchrun", beside="RANK"),
    Mark("PMIX_RANK", "a launcher with PMIx", says="own"),
    Mark("PALS_RANKID", "mpiexec of PALS", says="own"),
    Mark("ALPS_APP_PE", "aprun", says="own"),
)


class Launch(NamedTuple):
    """What a launcher says to this process."""

    mark: Mark
    value: int

    def __str__(self) -> str:
        which = (
            f"process {self.value}, counted from 0,"
            if self.mark.says == "own"
            else f"one of {quantity(self.value, 'process')}"
        )
        return f"{self.mark.name}={self.value}: this is {which} of {self.mark.launcher}"

    @property
    def several(self) -> bool:
        """Whether there are more processes than this one, as far as it says."""
        return self.value > (0 if self.mark.says == "own" else 1)

    def fits(self, size: int) -> bool:
        """Whether there may be so many processes."""
        return {"all": size == self.value, "here": size >= self.value, "own": size > self.value}[
            self.mark.says
        ]


def begin(command: str | None, environment: Mapping[str, str] = os.environ) -> None:
    """Join the ranks of the launcher, if there is one, or refuse a command that knows none.

    Raises:
        RankError: E801, MPI does not see them; E807, the command is to be started once.
    """
    launch = _several(environment)
    if launch is None or command is None:
        return
    if command not in COMMANDS:
        raise RankError(
            f"{launch}, and each would do the same again: `gradcli {command}` knows no ranks",
            code="E807",
            notes=("start it once; train, resume, eval and doctor divide their work among ranks",),
        )
    _join(launch, environment)


def _several(environment: Mapping[str, str]) -> Launch | None:
    """The first launch that says that there are more processes; None where this one is alone.

    Process 0 of a launcher that says no more may be alone: then MPI is asked, where it is there.
    """
    launches = list(_launches(environment))
    for launch in launches:
        if launch.several:
            return launch
    unknown = launches and all(launch.mark.says == "own" for launch in launches)
    return launches[0] if unknown and find_spec("mpi4py") else None


def _launches(environment: Mapping[str, str]) -> Iterator[Launch]:
    for mark in MARKS:
        value = environment.get(mark.name, "")
        if _NUMBER.fullmatch(value) and (not mark.beside or mark.beside in environment):
            yield Launch(mark, int(value))


def _join(launch: Launch, environment: Mapping[str, str]) -> None:
    """The ranks of the launcher are the group from here on; of what goes well rank 0 speaks."""
    from gradcli.engine import distributed

    names = " ".join(f"-u {mark.name}" for mark in MARKS if mark.name in environment)
    apart = (
        "where each process is to train something else, take away what says that they belong "
        f"together: env {names} gradcli ..."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what mpi4py suspects is E801 below
        try:
            library = distributed.library()
        except ImportError as error:
            raise RankError(
                f"{launch}, but mpi4py, by which they train together, cannot be used: {error}",
                notes=("pip install 'gradcli[mpi]', and an MPI where the machine has none", apart),
            ) from None
        joined = distributed.join() if library.startswith(launch.mark.mpi) else None
    if joined is None or not launch.fits(joined.size):
        sees = f"sees {quantity(joined.size, 'process')}" if joined else "cannot start there"
        raise RankError(
            f"{launch}, but mpi4py is of another MPI: {library}, which {sees}",
            notes=(
                f"start it with the mpirun of {library}, or pip install 'gradcli[mpi]' where the "
                "launcher's MPI is the only one",
                apart,
            ),
        )
    if joined.rank > 0:
        output.only_errors()
    from gradcli.train.agreement import meet

    for note in meet(joined):
        output.say_aside(note)


def has_the_word(shared: bool) -> bool:
    """Whether this process speaks of an error, in its turn.

    What all ranks raise at one place rank 0 says alone. Other errors each rank says itself, those
    behind rank 0 a moment later: if it has the same, it has ended all by then.
    """
    group = ranks()
    if group is None or group.rank == 0:
        return True
    if not shared:
        time.sleep(TURN)
    return not shared


def named(problem: GradcliError) -> GradcliError:
    """The problem, with this rank and its host where there are others."""
    group = ranks()
    if group is not None:
        problem.message = f"{group.names[group.rank]}: {problem.message}"
    return problem


def leave(code: int) -> int:
    """The exit code of this process; the other ranks, which may wait for this one, end with it."""
    group = ranks()
    if group is not None:
        if sys.stdout:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
        group.abort(code)
    return code


def ranks() -> Group | None:
    """The ranks that were joined, if any; whoever joined none has not imported them."""
    distributed = sys.modules.get("gradcli.engine.distributed")
    group: Group | None = distributed.group() if distributed else None
    return group if group is not None and group.size > 1 else None
