"""Jobs of several ranks: started by mpirun, ended in time, and nothing of them stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="ranks need the extra: pip install '.[mpi]' mpich")

ROOT = Path(__file__).parents[2]
MARK = "GRADCLI_TEST_JOB"  # in the environment of every process of a job
# What this process was started with must not tell its jobs that they belong to another one.
LAUNCHERS = ("PMI_", "PMIX_", "OMPI_COMM_", "OMPI_UNIVERSE", "MPI_LOCAL", "HYDI_", "PRTE_")


@dataclass(frozen=True)
class Ended:
    """How a job ended, with what it wrote."""

    code: int
    out: str
    err: str


@dataclass
class Job:
    """A job that runs; `end` waits for it."""

    process: subprocess.Popen[str]
    name: str
    began: float = field(default_factory=time.monotonic)

    def end(self, timeout: float = 60) -> Ended:
        """Wait; a job that takes longer is killed whole, and that fails the test."""
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.process.communicate()
            pytest.fail(f"the job took more than {timeout:g} s\n{out}\n{err}")
        return Ended(self.process.returncode, out, err)

    def members(self) -> dict[int, str]:
        """The processes of the job that live: their numbers, and their command lines."""
        return {pid: line for pid, line, environment in _processes() if self._is_mine(environment)}

    def ranks(self) -> list[int]:
        """The processes of the job that are ranks and not their launchers, by rank."""
        names = ("PMI_RANK=", "OMPI_COMM_WORLD_RANK=")
        ranks = {}
        for pid, _, environment in _processes():
            numbers = [one.partition("=")[2] for one in environment if one.startswith(names)]
            if self._is_mine(environment) and numbers:
                ranks[int(numbers[0])] = pid
        return [ranks[rank] for rank in sorted(ranks)]

    def outlives(self, seconds: float) -> dict[int, str]:
        """The processes of the job that are still there after this time."""
        limit = time.monotonic() + seconds
        while (members := self.members()) and time.monotonic() < limit:
            time.sleep(0.05)
        return members

    def kill(self) -> None:
        """End every process of the job at once."""
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert not self.outlives(10)

    def _is_mine(self, environment: Sequence[str]) -> bool:
        return f"{MARK}={self.name}" in environment


def _processes() -> Iterator[tuple[int, str, list[str]]]:
    """Number, command line and environment of each process that may be looked at."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                environment = (folder / "environ").read_bytes().decode(errors="replace")
                line = (folder / "cmdline").read_bytes().decode(errors="replace")
                yield int(folder.name), line.replace("\0", " "), environment.split("\0")


def mpirun() -> str:
    """The launcher beside this Python, else that of the path."""
    beside = Path(sys.executable).with_name("mpirun")
    found = str(beside) if beside.is_file() else shutil.which("mpirun")
    return found or pytest.skip("no mpirun is installed")


@cache
def is_open_mpi() -> bool:
    """Whether the launcher is that of Open MPI, else of MPICH."""
    done = subprocess.run([mpirun(), "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in done.stdout


def launcher(ranks: int) -> list[str]:
    """The command line in front of a program that starts it on so many ranks."""
    options = ["--oversubscribe", "--bind-to", "none"] if is_open_mpi() else []
    return [mpirun(), *options, "-n", str(ranks)]


def environment(name: str = "") -> dict[str, str]:
    """That of a job: no launcher's variables but its own will be in it."""
    names = [one for one in os.environ if not one.startswith(LAUNCHERS)]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    own = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", MARK: name}
    return {**{one: os.environ[one] for one in names}, **root, **own}


@contextlib.contextmanager
def started(
    ranks: int,
    *arguments: str,
    cwd: Path,
    variables: Mapping[str, str] | None = None,
    by: Sequence[str] | None = None,
) -> Iterator[Job]:
    """A job of Python on so many ranks (0: without a launcher); nothing of it outlives the block.

    `arguments` are those of Python, such as `-m gradcli train ...`; `by` is another launcher.
    """
    name = uuid.uuid4().hex
    command = [*(by or (launcher(ranks) if ranks else ())), sys.executable, *arguments]
    with subprocess.Popen(
        command,
        cwd=cwd,
        env={**environment(name), **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        job = Job(process, name)
        try:
            yield job
        finally:
            job.kill()


def gradcli(
    ranks: int,
    *arguments: str,
    cwd: Path,
    timeout: float = 60,
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """A command of gradcli on so many ranks (0: without a launcher), from start to end.

    Each rank has one thread: the machines of CI have two cores.
    """
    alone = ("-m", "gradcli", *arguments)
    with started(ranks, *alone, cwd=cwd, variables=variables) as job:
        return job.end(timeout)
