"""MSL text as a library for the CPU, by clang and the fibers of tests/standin/host."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import host_build
from host_build import HOST

from gradcli.errors import DeviceError

RUN = Path(__file__).parent / "run"
COMPILER = os.environ.get("GRADCLI_CLANGXX", "clang++-19")
_LANGUAGE = ("-std=c++14", "-w")
_FLAGS = (*_LANGUAGE, "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off")
_KERNEL = re.compile(r"\[\[kernel, max_total_threads_per_threadgroup\((\w+)\)\]\]\s*void\s+(\w+)\(")
_ENTRY = 'static gc::Entry {0}_entry("{0}", {1}, gc::MetalCall<decltype(&{0}), &{0}>());\n'


class Refused(Exception):
    """clang's words about a text."""


def compiled(text: str) -> Path:
    """A text's kernels, compiled; raises Refused."""
    whole = f'#line 1 "program_source"\n{text}'
    command = [COMPILER, *_LANGUAGE, "-x", "c++", "-E", f"-I{RUN}", f"-I{HOST}", "-"]
    done = subprocess.run(command, input=whole, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(done.stderr)
    kernels = _KERNEL.findall(done.stdout)
    entries = "".join(_ENTRY.format(name, threads) for threads, name in kernels)
    linked = "-Wl,--no-as-needed", str(host_build.runtime_path())
    flags = [COMPILER, *_FLAGS, *host_build.fma_flags(), *linked]
    try:
        return host_build.built("metal", f"{done.stdout}\n{entries}", flags)
    except DeviceError as error:
        raise Refused(str(error).partition("\n")[2]) from None
