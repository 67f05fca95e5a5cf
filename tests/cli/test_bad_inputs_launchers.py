"""Row 56: several processes of a launcher, of which each would train a whole run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, only_run
from refusals import gradcli, refused

from gradcli.cli.launchers import MARKS, Mark

__all__ = ["gradcli", "refused"]

# What the processes of two find, as `env` shows it under each launcher.
OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}
MPICH = {"PMI_SIZE": "2", "PMI_RANK": "0", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "0"}
SRUN = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "2", "SLURM_PROCID": "0"}
TORCHRUN = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}
# One process, although others could be started.
SBATCH = {
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_TASKS_PER_NODE": "4",
}
SALLOC = {"SLURM_NTASKS": "4", "SLURM_JOB_NUM_NODES": "2"}
ARRAY = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_STEP_NUM_TASKS": "1"}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for mark in MARKS:
        monkeypatch.delenv(mark.name, raising=False)


def of_two(mark: Mark) -> dict[str, str]:
    value = "1" if mark.own_number else "2"
    return {mark.name: value, **({mark.beside: "0"} if mark.beside else {})}


@pytest.mark.parametrize(
    ("variables", "first"),
    [
        *((of_two(mark), mark.name) for mark in MARKS),
        (OPEN_MPI, "OMPI_COMM_WORLD_SIZE"),
        (MPICH, "PMI_SIZE"),
        (SRUN, "SLURM_STEP_NUM_TASKS"),
        (TORCHRUN, "WORLD_SIZE"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_several_processes_of_a_launcher_are_refused(
    refused: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    first: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    message = f"{first}={variables[first]}: this is "
    for command in (("train", "dots.yaml"), ("resume", "last")):
        said = refused(2, message, *command).err
        assert "error[E129]" in said
        names = [mark.name for mark in MARKS if mark.name in variables]
        assert f"env -u {' -u '.join(names)} gradcli" in said
        assert refused(2, "cannot be divided among processes", *command).err == said


@pytest.mark.parametrize(
    "variables",
    [
        {},
        SBATCH,
        SALLOC,
        ARRAY,
        {**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "1"},
        {**MPICH, "PMI_SIZE": "1", "MPI_LOCALNRANKS": "1"},
        {**TORCHRUN, "WORLD_SIZE": "1"},
        {"WORLD_SIZE": "4"},  # set for another program
        {"PMI_SIZE": "", "OMPI_COMM_WORLD_SIZE": "two", "SLURM_STEP_NUM_TASKS": "-2"},
    ],
    ids=["none", "sbatch", "salloc", "array", "mpirun-1", "mpiexec-1", "torchrun-1", "own", "odd"],
)
def test_a_process_that_is_alone_trains(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert gradcli("train", "dots.yaml", "--max-steps", "1").code == 0
    assert Path(only_run()).is_dir()
