"""Host builds of GPU kernels: the runtime of tests/standin/host, and modules compiled for it.

What was built once is found again by the hash of all that went into it, in a folder that every run
of the tests shares.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cuda_text
from cffi import FFI

from gradcli.engine.device.gpu.source import prelude_text
from gradcli.errors import DeviceError

HOST = Path(__file__).parents[1] / "standin" / "host"
COMPILER = os.environ.get("CXX", "g++")
FOLDER = Path(tempfile.gettempdir()) / f"gradcli-host-kernels-{os.getuid()}"
_FLAGS = (
    "-std=c++14",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fwrapv",
    "-w",
)
# What C++ leaves undefined and GPUs do not agree on; tests/standin/host/undefined.cpp is told.
_CHECKS = "-fsanitize=bounds-strict,shift-exponent,integer-divide-by-zero,float-cast-overflow"
_RUNTIME_FLAGS = (*_FLAGS, "-O2", "-fvisibility=default")

ffi = FFI()
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ffi.cdef(_COMMENT.sub("", (HOST / "abi.h").read_text(encoding="utf-8")))


@cache
def fma_flags() -> tuple[str, ...]:
    """Kernels ask for fused multiply-adds; without the instruction each is a slow call."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ()
    return ("-mfma",) if re.search(r"^flags\s.* fma ", facts, re.MULTILINE) else ()


@cache
def _headers() -> bytes:
    listed = sorted(p for p in HOST.iterdir() if p.suffix in (".h", ".cpp"))
    version = subprocess.run([COMPILER, "--version"], capture_output=True, check=True).stdout
    return version + b"\0".join(p.read_bytes() for p in listed)


def built(name: str, text: str, command: list[str], compiling: Sequence[str] = ()) -> Path:
    """The library that a command makes of a text, compiled unless it was before.

    Flags of `compiling` are kept from the linker, which would bring their libraries along.
    """
    made_of = _headers() + text.encode() + " ".join((*command, *compiling)).encode()
    digest = hashlib.sha256(made_of).hexdigest()[:24]
    library = FOLDER / f"{name}-{digest}.so"
    if library.exists():
        return library
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        source, compiled, made = (Path(folder) / f"{name}.{end}" for end in ("cpp", "o", "so"))
        source.write_text(text, encoding="utf-8")
        steps = [[*command, "-o", str(made), str(source)]]
        if compiling:
            steps[:] = [[*command, *compiling, "-c", "-o", str(compiled), str(source)]]
            steps += [[*command, "-o", str(made), str(compiled)]]
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                raise DeviceError(f"{name} does not compile for the host:\n{done.stderr[:4000]}")
        made.replace(library)  # whole or not at all, whoever else builds it
    return library


@cache
def runtime_path() -> Path:
    """The runtime as a library; modules are linked with it."""
    parts = "".join(f'#include "{path}"\n' for path in sorted(HOST.glob("*.cpp")))
    return built("runtime", parts, [COMPILER, *_RUNTIME_FLAGS, f"-I{HOST}"])


@cache
def runtime() -> Any:
    """The runtime, loaded."""
    return ffi.dlopen(str(runtime_path()))


def module_path(name: str, text: str, checked: bool = True, prelude: str = "") -> Path:
    """A module's library from its text and the prelude before it, prelude_cuda.h if none is named;
    raises DeviceError where it is wrong."""
    plain = re.sub(r"\W+", "-", name).strip("-")
    whole = cuda_text.host_text(prelude or prelude_text("cuda"), text, checked=checked)
    # Named even where the linker sees no need: loading a module loads the runtime.
    linked = ("-Wl,--no-as-needed", str(runtime_path()))
    command = [COMPILER, *_FLAGS, "-O1", *fma_flags(), f"-I{HOST}", *linked]
    return built(plain, whole, command, [_CHECKS] if checked else [])


class HostModule:
    """The kernels of one library, loaded."""

    def __init__(self, path: Path) -> None:
        runtime()
        self._library: Any = ffi.dlopen(str(path))
        self.kernels: dict[str, Any] = {}
        kernel = self._library.gc_host_kernels()
        while kernel != ffi.NULL:
            self.kernels[ffi.string(kernel.name).decode()] = kernel
            kernel = kernel.next
