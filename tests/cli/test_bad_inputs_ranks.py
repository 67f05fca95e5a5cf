"""Rows 63 to 69: processes of a launcher that cannot train together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, only_run
from rank_threads import Ended as Aborted
from rank_threads import Network, ThreadGroup
from refusals import gradcli, refused

from gradcli.cli import launchers, main, options
from gradcli.engine import distributed
from gradcli.train import agreement
from gradcli.train.launcher import MARKS, LauncherVariable

__all__ = ["gradcli", "refused"]

GPUS = ("cuda", "cuda:0", "cpu")
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


def of_two(mark: LauncherVariable) -> dict[str, str]:
    value = "1" if mark.meaning == "own" else "2"
    return {mark.name: value, **({mark.beside: "0"} if mark.beside else {})}


@pytest.fixture
def without_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)


@pytest.mark.usefixtures("without_mpi")
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
def test_ranks_without_mpi4py_are_refused(
    refused: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    first: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    message = f"error[E801] {first}={variables[first]}: this is "
    errors = set()
    for command in (("train", "dots.yaml"), ("resume", "last"), ("eval", "last"), ("doctor",)):
        said = refused(2, message, *command).err
        assert "mpi4py, by which they train together, cannot be used" in said
        assert "pip install 'gradcli[mpi]'" in said
        names = [mark.name for mark in MARKS if mark.name in variables]
        assert f"env -u {' -u '.join(names)} gradcli" in said
        errors.add(said)
    assert len(errors) == 1


@pytest.mark.parametrize("variables", [OPEN_MPI, MPICH, SRUN, TORCHRUN])
def test_an_mpi_that_does_not_see_the_ranks_is_refused(
    refused: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "mpi_version", lambda: "Open MPI 5.0.11")
    monkeypatch.setattr(distributed, "join", lambda: distributed.ALONE)
    message = "another MPI: Open MPI 5.0.11, which sees 1 process"
    said = refused(2, message, "train", "dots.yaml").err
    assert "error[E801]" in said
    assert "the mpirun of Open MPI 5.0.11, or pip install 'gradcli[mpi]'" in said
    assert ("--mpi=pmix" in said) == (variables is SRUN)


def test_an_mpi_that_would_end_unheard_is_not_begun(
    refused: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OPEN_MPI.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "mpi_version", lambda: "MPICH 5.0.2")
    monkeypatch.setattr(distributed, "join", pytest.fail)
    refused(2, "another MPI: MPICH 5.0.2, which cannot start there", "train", "dots.yaml")


@pytest.mark.parametrize("command", sorted(set(main.COMMANDS) - set(launchers.COMMANDS)))
def test_a_command_that_knows_no_ranks_is_refused(
    refused: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name, value in MPICH.items():
        monkeypatch.setenv(name, value)
    said = refused(2, "error[E807] PMI_SIZE=2: this is one of 2 processes", command).err
    assert f"`gradcli {command}` knows no ranks\n  = start it once" in said


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_a_host_with_more_ranks_than_gpus_is_refused(
    gradcli: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    device: str,
) -> None:
    group = ThreadGroup(Network(4), 3)  # two ranks a host
    monkeypatch.setattr(launchers, "ranks", lambda: group)
    monkeypatch.setattr(launchers, "TURN", 0)
    monkeypatch.setattr(options, "unavailable", lambda name: "" if name in GPUS else "not there")
    with pytest.raises(Aborted, match="4"):
        gradcli("train", "dots.yaml", "--device", device)
    said = capfd.readouterr().err
    assert "error[E803] rank 3 on node1 (pid 1003): node1 has 2 ranks and 1 GPU (cuda)" in said
    assert "--device cuda:0" in said and "start 1 on this host" in said


def test_fewer_parts_than_ranks_are_refused(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = ThreadGroup(Network(64), 0)
    monkeypatch.setattr(launchers, "ranks", lambda: group)
    monkeypatch.setattr(distributed, "group", lambda: group)
    monkeypatch.setattr(agreement, "agree_at_start", lambda *_: None)
    ended = gradcli("train", "dots.yaml", "-s", "train.batch=16")
    said = ended.err
    assert ended.code == 2
    assert "error[E802] a batch of 16 samples has 16 parts of 1, and there are 64 ranks" in said
    assert "start 16 ranks: no more are of use\n  = or make train.batch larger" in said


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        (("--help",), 0),
        (("train", "-h"), 0),
        (("--version",), 0),
        (("check", "--help"), 0),
        (("trian", "dots.yaml"), 2),
        (("check", "dots.yaml"), 2),
        (("--bogus",), 2),
    ],
)
def test_what_all_would_say_the_first_process_says(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr(distributed, "join", pytest.fail)
    said = []
    for number in ("0", "1"):
        for name, value in {**MPICH, "PMI_RANK": number}.items():
            monkeypatch.setenv(name, value)
        assert main.run(words) == code
        said.append("".join(capfd.readouterr()))
    assert said[0] and not said[1]


@pytest.mark.usefixtures("without_mpi")
def test_a_host_without_mpi4py_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    said = []
    for number, local in (("0", "0"), ("1", "1"), ("2", "0")):
        for name, value in {**MPICH, "PMI_RANK": number, "MPI_LOCALRANKID": local}.items():
            monkeypatch.setenv(name, value)
        assert main.run(("doctor",)) == 2
        said.append(capfd.readouterr().err.count("error[E801]"))
    assert said == [1, 0, 1]


def test_the_commands_of_ranks_are_commands() -> None:
    assert set(launchers.COMMANDS) < set(main.COMMANDS)


@pytest.mark.parametrize("command", [("--help",), ("train", "--help"), ("check", "c.yaml")])
def test_one_process_does_not_import_mpi4py(tmp_path: Path, command: tuple[str, ...]) -> None:
    program = (
        "import sys; from gradcli.cli.main import run; run(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    child = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=tmp_path, capture_output=True, text=True
    )
    modules = child.stderr.split()
    assert "gradcli.cli.launchers" in modules
    assert not [name for name in modules if name.startswith("mpi4py")]


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
        {"PMIX_RANK": "0"},
        {"PMI_SIZE": "", "OMPI_COMM_WORLD_SIZE": "two", "SLURM_STEP_NUM_TASKS": "-2"},
    ],
    ids=[
        "none",
        "sbatch",
        "salloc",
        "array",
        "mpirun-1",
        "mpiexec-1",
        "torchrun-1",
        "own",
        "pmix",
        "odd",
    ],
)
@pytest.mark.usefixtures("without_mpi")
def test_a_process_that_is_alone_trains(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert gradcli("train", "dots.yaml", "--max-steps", "1").code == 0
    assert Path(only_run()).is_dir()
