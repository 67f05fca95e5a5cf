"""The stand-in for NVIDIA's driver (tests/standin/cuda): built, and put under other processes.

A process takes the first libcuda.so.1 that it loads, and a kernel that fails takes the device from
it for good. So whatever uses the stand-in runs in a process of its own (cuda_process.py).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import host_build

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "standin" / "cuda"
COMPILER = os.environ.get("CC", "gcc")
FLAGS = (
    "-std=c11",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
)
_NAME = "libcuda.so.1"


@cache
def library() -> Path:
    """The stand-in, compiled unless it was before."""
    files = sorted(SOURCES.iterdir())
    text = b"\0".join(p.read_bytes() for p in [*files, host_build.HOST / "abi.h"])
    digest = hashlib.sha256(text + " ".join((COMPILER, *FLAGS)).encode()).hexdigest()[:24]
    folder = host_build.FOLDER / f"libcuda-{digest}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / _NAME).exists():
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            made = Path(fresh) / _NAME
            sources = [str(p) for p in files if p.suffix == ".c"]
            command = [COMPILER, *FLAGS, f"-Wl,-soname,{_NAME}", "-o", str(made), *sources]
            subprocess.run(command, check=True)
            made.replace(folder / _NAME)
    return folder / _NAME


def environment(**settings: object) -> dict[str, str]:
    """The variables under which a process finds the stand-in; `memory=1 << 20` and such."""
    own = {f"STANDIN_CUDA_{key.upper()}": str(value) for key, value in settings.items()}
    paths = [str(ROOT), str(ROOT / "tests" / "gpu"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{library().parent}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "PYTHONPATH": ":".join(path for path in paths if path),
        "STANDIN_CUDA_RUNTIME": str(host_build.runtime_path()),
        "STANDIN_CUDA_KERNELS": str(host_build.FOLDER / "cuda"),
        "XDG_CACHE_HOME": str(host_build.FOLDER / "cache"),
        **own,
    }


def run(*command: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """`run("gradcli", "train", ...)`, or `run("case", NAME)` of cuda_cases.py, on the stand-in."""
    variables = settings.pop("variables", {})
    assert isinstance(variables, dict)
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "cuda_process", *command],
        env=environment(**settings) | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
