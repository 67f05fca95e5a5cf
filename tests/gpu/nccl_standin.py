"""The stand-in for NCCL (tests/standin/nccl), compiled, and processes that find it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import cuda_standin
import host_build

SOURCE = cuda_standin.ROOT / "tests" / "standin" / "nccl" / "libnccl.c"
_NAME = "libnccl.so.2"


@cache
def folder() -> Path:
    """Where the stand-in lies, compiled unless it was before."""
    key = hashlib.sha256(SOURCE.read_bytes() + cuda_standin.COMPILER.encode()).hexdigest()[:24]
    made = host_build.FOLDER / f"libnccl-{key}"
    made.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (made / _NAME).exists():
        with tempfile.TemporaryDirectory(dir=made) as fresh:
            path = Path(fresh) / _NAME
            command = [cuda_standin.COMPILER, *cuda_standin.FLAGS, f"-Wl,-soname,{_NAME}"]
            subprocess.run([*command, "-o", str(path), str(SOURCE)], check=True)
            path.replace(made / _NAME)
    return made / _NAME


def environment(nccl: bool = True) -> dict[str, str]:
    """The variables under which a process finds the stand-ins: both, or that for CUDA alone."""
    found = cuda_standin.environment(checked=0)
    if nccl:
        found["LD_LIBRARY_PATH"] = f"{folder().parent}:{found['LD_LIBRARY_PATH']}"
    return found


def started(case: str, *arguments: object, nccl: bool = True) -> subprocess.Popen[str]:
    """A case of nccl_cases.py in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "cuda_process", "case", case]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        env=environment(nccl),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check(*processes: subprocess.Popen[str]) -> None:
    """All come to their end without a word; whoever waits for one that has not is ended."""
    try:
        ended = [(*one.communicate(timeout=120), one.returncode) for one in processes]
    finally:
        for one in processes:
            one.kill()
    assert ended == [("", "", 0)] * len(processes), "\n".join(err for _, err, _ in ended)
