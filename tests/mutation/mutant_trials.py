"""Runs the tests on a mutant, those of its file first, each run in a process of its own."""

from __future__ import annotations

import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = "gradcli/engine/device/_cpu.abi3.so"
MEMORY = 4 << 30  # bytes of address space
PATIENCE = 120.0  # seconds without a word: a test hangs
SILENT = "hangs"
# The tests of what has no folder in tests/engine/ops, by the folder or file of the C text.
ENGINE = {
    "elementwise": "test_chain test_maths test_decomposed",
    "norm": "ops/loss test_nn_layers",
    "optim": "test_optim test_optim_formulas",
    "random": "test_random test_draw",
    "sequence": "test_nn_recurrent test_nn_attention",
    "index": "ops/sort",
    "matmul": "test_matmul_then test_bfloat16",
    "loss": "ops/norm",
    "builds": "test_bfloat16",
    "check.c": "test_calls test_fitting_calls test_accepted",
    "memory.c": "test_memory ops/test_rooms",
    "program.c": "program test_capture",
    "waves.c": "program test_threads",
    "threads.c": "test_threads test_num_threads",
    "ceilings.h": "../bench/test_ceilings",
    "tables.c": "test_kernel_facts test_calls",
    "run.c": "test_calls program",
}
_HEADING = re.compile(r"^/\* ((?:\w+\.h(?:, )?)+) \*/$", re.MULTILINE)
_ROW = re.compile(r"^KERNEL_\w+\((\w+),", re.MULTILINE)
_SCALAR = re.compile(r"^(?:UNARY|BINARY|COMPARE)\w*\((\w+),")
_BEHIND = re.compile(r"_(?:forward|backward|grad|step|train|eval|then|along).*$")
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def kernels_by_file() -> dict[str, list[str]]:
    """The kernels that kernels.h lists under each header."""
    text = (ROOT / "gradcli/csrc/kernels.h").read_text(encoding="utf-8")
    pieces = _HEADING.split(text)
    return {
        name: _ROW.findall(body)
        for heading, body in zip(pieces[1::2], pieces[2::2], strict=True)
        for name in heading.split(", ")
    }


def ops_of(file: str, line: str) -> list[str]:
    """The ops that a line of a file is part of; none where all are."""
    if row := _SCALAR.match(line):
        return [row[1]]
    listed = kernels_by_file()
    path = ROOT / file
    names = listed.get(path.name, [])
    if not names and path.parent.name not in ("csrc", "cpu", "builds"):
        near = {one.name for one in path.parent.glob("*.h")}
        names = [kernel for header in sorted(near & set(listed)) for kernel in listed[header]]
    return sorted({_BEHIND.sub("", name) for name in names})


def own_tests(file: str) -> list[str]:
    """The files and folders of tests that are about a file's part of the engine."""
    path = Path(file)
    part = path.name if path.name in ENGINE else path.parent.name
    named = [f"ops/{part}", *ENGINE.get(part, "").split()]
    places = [ROOT / "tests/engine" / name for name in named]
    places = [p if p.exists() else p.with_suffix(".py") for p in places]
    return [str(p.resolve().relative_to(ROOT)) for p in places if p.exists()]


def near(file: str, line: str) -> dict[str, list[str]]:
    """What is run on a mutant first, one after the other until something fails."""
    ops, own = ops_of(file, line), own_tests(file)
    stages = {"the file's tests": own} if own else {}
    if ops:
        stages = {"its ops": ["tests/test_ops.py", "-k", " or ".join(ops)], **stages}
    else:
        stages["all ops"] = ["tests/test_ops.py"]
    return {**stages, "hostile calls": list(HOSTILE)}


def far(file: str, line: str) -> dict[str, list[str]]:
    """What is run where that notices nothing."""
    slow = [f"--ignore={name}" for name in SLOW]
    return {
        "the engine": ["tests/engine", *OTHERS, *slow],
        "all ops": ["tests/test_ops.py"],
        "the rest": list(SLOW),
    }


# The checked door, and the size of scratch.
HOSTILE = (
    "tests/engine/test_calls.py",
    "tests/engine/test_fitting_calls.py",
    "tests/engine/test_index_limits.py",
    "tests/engine/program/test_scratch.py",
)
Stages = Callable[[str, str], dict[str, list[str]]]
SLOW = (
    "tests/engine/test_gradgradcheck.py",
    "tests/engine/test_capture_modules.py",
)
OTHERS = (
    "tests/test_types.py",
    "tests/test_result_memory.py",
    "tests/test_view_writes.py",
    "tests/test_devices.py",
    "tests/bench/test_ceilings.py",
    "tests/bench/test_rates.py",
    "tests/mutation/test_mutated_calls.py",
)


@dataclass
class Tree:
    """A copy of the project whose compiled kernels are replaced by a mutant's."""

    folder: Path

    def __post_init__(self) -> None:
        ls = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(ls, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            source, target = ROOT / name, self.folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    @property
    def kernels(self) -> Path:
        """Where the mutant's kernels belong."""
        return self.folder / KERNELS

    def failures(self, arguments: Sequence[str], memory: int = MEMORY, **more: str) -> list[str]:
        """What fails: names of tests, or one sentence on how the process ended."""

        def limits() -> None:
            os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=no",
            "-rfE",
        ]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), **more}
        with subprocess.Popen(
            [*command, "-m", "not parity and not mpi", *arguments],
            cwd=self.folder,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=limits,
        ) as process:
            said, hangs = _listen(process)
        return _failures(said, process.returncode, hangs)


def _listen(process: subprocess.Popen[bytes]) -> tuple[str, bool]:
    """All that a process says, and whether it had to be ended."""
    assert process.stdout is not None
    said, hangs = b"", False
    while True:
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        piece = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if not piece:
            hangs = not ready
            break
        said += piece
    if hangs:
        os.killpg(process.pid, signal.SIGKILL)
    return said.decode(errors="replace"), hangs


def _failures(said: str, code: int, hangs: bool) -> list[str]:
    if hangs:
        return [SILENT]
    if code in (0, 5):  # 5: no test has one of the names
        return []
    names = _FAILURE.findall(said)
    if code < 0:
        return [f"ends by {signal.Signals(-code).name}"]
    return names or [f"exit {code}: {said.strip()[-300:]}"]


def catch(tree: Tree, asked: Mapping[str, Sequence[str]], failing: Sequence[str]) -> str:
    """The stage and the test that notice the mutant in the tree; empty where none does."""
    without = [f"--deselect={name}" for name in failing]
    for name, arguments in asked.items():
        began = time.monotonic()
        failures = tree.failures([*arguments, "-x", *without])
        if failures:
            return f"{name}, {time.monotonic() - began:.0f} s: {failures[0]}"
    return ""
