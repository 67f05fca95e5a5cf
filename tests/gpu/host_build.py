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
from functools import cache
from pathlib import Path
from typing import Any

from cffi import FFI

from gradcli.errors import DeviceError

HOST = Path(__file__).parents[1] / "standin" / "host"
COMPILER = os.environ.get("CXX", "g++")
FOLDER = Path(tempfile.gettempdir()) / f"gradcli-host-kernels-{os.getuid()}"
_FLAGS = ("-std=c++14", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-w")
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


def built(name: str, text: str, command: list[str]) -> Path:
    """The library that a command makes of a text, compiled unless it was before."""
    made_of = _headers() + text.encode() + " ".join(command).encode()
    digest = hashlib.sha256(made_of).hexdigest()[:24]
    library = FOLDER / f"{name}-{digest}.so"
    if library.exists():
        return library
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        source, made = Path(folder) / f"{name}.cpp", Path(folder) / "made.so"
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*command, "-o", str(made), str(source)], capture_output=True, text=True, check=False
        )
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


def prelude(checked: bool) -> str:
    """The host's prelude, as a text in front of a module's own."""
    return f'#define GC_CHECK {int(checked)}\n#include "prelude_host.h"\n'


def module_path(name: str, text: str) -> Path:
    """A module's library from its whole text; raises DeviceError with the compiler's words."""
    plain = re.sub(r"\W+", "-", name).strip("-")
    linked = str(runtime_path())
    command = [COMPILER, *_FLAGS, "-O1", *fma_flags(), f"-I{HOST}"]
    return built(plain, text, [*command, "-Wl,--no-as-needed", linked])


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
