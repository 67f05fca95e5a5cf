"""NVRTC: the text of a module compiled for a device, and what was compiled before, kept on disk.

Compiled for the device's own architecture (a cubin), because a driver may be older than NVRTC and
then refuses its PTX. For a device that is newer than NVRTC, PTX of the newest it knows.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cuda.bindings import nvrtc

from gradcli.dataclass import dataclass
from gradcli.engine.device.gpu.blame import no_module
from gradcli.errors import DeviceError

# Products are not contracted with sums: fused and single calls must give the same bits.
# No warnings of unused functions and of `< 0` without a sign: shared headers serve many modules.
OPTIONS = ("--std=c++14", "-default-device", "--fmad=false", "--diag-suppress=177,186")
_DIGEST = 32  # bytes of a SHA-256, at the head of a file of the cache


@dataclass(frozen=True)
class Target:
    """What is compiled for: `sm_90` gives a cubin, `compute_90` PTX; `note` where that is PTX."""

    architecture: str
    note: str = ""


@dataclass(frozen=True)
class CompiledModule:
    """A module for the driver to load, and what the compiler said (nothing from the cache)."""

    image: bytes
    log: str = ""


@cache
def version() -> tuple[int, int]:
    """NVRTC's version."""
    major, minor = _check(nvrtc.nvrtcVersion())
    return int(major), int(minor)


def target_for(capability: tuple[int, int]) -> Target:
    """The architecture for a device: its own, else the nearest below it."""
    supported = sorted(divmod(number, 10) for number in _check(nvrtc.nvrtcGetSupportedArchs()))
    older = [arch for arch in supported if arch <= capability]
    had, (major, minor) = "NVRTC {}.{}".format(*version()), capability
    if not older:
        raise DeviceError(
            f"cuda: the device has compute capability {major}.{minor}, and {had} compiles for "
            f"{supported[0][0]}.{supported[0][1]} and newer{_older()}"
        )
    nearest = older[-1]
    number = f"{nearest[0]}{nearest[1]}"
    if nearest[0] == major:  # a cubin runs on later devices with the same first number
        return Target(f"sm_{number}")
    note = (
        f"compute capability {major}.{minor} is newer than {had}: kernels are compiled to PTX for "
        f"{nearest[0]}.{nearest[1]} and finished by the driver; pip install -U 'gradcli[cuda]' may "
        "bring a compiler that knows the device"
    )
    return Target(f"compute_{number}", note)


def _older() -> str:
    """What still compiles for devices that NVRTC has given up."""
    return "; pip install 'gradcli[cuda12]' brings an older one" if version() >= (13, 0) else ""


def keyed(source: str) -> str:
    """The source with its own hash as a symbol, so that a compiled module says what it is of."""
    return f'{source}\nextern "C" {{ __device__ char gc_key_{source_key(source)}; }}\n'


def source_key(source: str) -> str:
    """The hash of a source that its compiled module carries."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def compiled(name: str, source: str, architecture: str) -> CompiledModule:
    """A module from the cache, or compiled and put there."""
    text = keyed(source)
    key = json.dumps([text, OPTIONS, architecture, version()])
    folder = cache_folder()
    if folder is None:
        return compile_text(name, text, architecture)
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.bin"
    image = _read(path)
    if image is not None:
        return CompiledModule(image)
    module = compile_text(name, text, architecture)
    _keep(path, module.image)
    return module


def compile_text(
    name: str, source: str, architecture: str, options: Sequence[str] = ()
) -> CompiledModule:
    """Compile a text; raises DeviceError with the compiler's first complaint."""
    program = _check(nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], []))
    try:
        arguments = [o.encode() for o in (f"--gpu-architecture={architecture}", *OPTIONS, *options)]
        status = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)[0]
        log = _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        words = log.rstrip(b"\0").decode(errors="replace").strip()
        if status.value:
            raise no_module("cuda", name, words, status.name)
        if architecture.startswith("sm_"):
            image = _text(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        else:
            image = _text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        return CompiledModule(image, words)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def cache_folder() -> Path | None:
    """Where compiled modules lie; None for a user without a home."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "gradcli" / "cuda"
    except RuntimeError:
        return None


def _read(path: Path) -> bytes | None:
    """A file of the cache; None where there is none or it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, image = data[:_DIGEST], data[_DIGEST:]
    return image if hashlib.sha256(image).digest() == digest else None


def _keep(path: Path, image: bytes) -> None:
    """Write a file of the cache whole or not at all; without a cache everything still works."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(image).digest() + image)
            Path(fresh).replace(path)
        except OSError:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError:
        return


def _text(program: Any, size: Any, get: Any) -> bytes:
    """What NVRTC copies into a buffer of the size that it tells first."""
    into = bytearray(_check(size(program)))
    _check(get(program, into))
    return bytes(into)


def _check(result: tuple[Any, ...]) -> Any:
    """What a call gives after its status."""
    status, *values = result
    if status.value:
        text = nvrtc.nvrtcGetErrorString(status)[1].decode()
        raise DeviceError(f"cuda: NVRTC failed: {text}")
    return values[0] if len(values) == 1 else tuple(values)
