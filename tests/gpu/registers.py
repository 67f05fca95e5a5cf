"""The table of what kernels take of an NVIDIA processor: registers of a thread and shared memory of
a block, as NVRTC's ptxas reports them. `python tests/gpu/registers.py` writes it anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from register_table import TABLE, Table

from gradcli.engine.device.gpu import nvrtc
from gradcli.engine.device.gpu.launch import KernelModule
from gradcli.engine.device.gpu.source import module_text, prelude_text

COMMAND = "python tests/gpu/registers.py"
ARCHITECTURES = ("sm_80", "sm_90")
MORE_REGISTERS = 8  # than in the table are no mistake: another NVRTC may need them
MOST_SHARED = 48 << 10
_KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class Usage(NamedTuple):
    """What a kernel takes on an architecture; `shared` and `spilled` are bytes."""

    kernel: str
    architecture: str
    registers: int
    shared: int
    spilled: int


def usages(log: str) -> Iterator[Usage]:
    """What ptxas says of each kernel. Spills of functions that it calls are its own."""
    starts = [*_KERNEL.finditer(log)]
    ends = [*(one.start() for one in starts[1:]), len(log)]
    for start, end in zip(starts, ends, strict=True):
        text = log[start.end() : end]
        frames, used = _SPILLS.findall(text), _USED.search(text)
        assert frames and used, f"ptxas says nothing of {start[1]}:\n{text}"
        spilled = sum(int(stores) + int(loads) for _, stores, loads in frames)
        shared = _SHARED.search(text)
        yield Usage(start[1], start[2], int(used[1]), int(shared[1]) if shared else 0, spilled)


def compiled(module: KernelModule, architecture: str) -> str:
    """What the compiler says of a module."""
    text = module_text(module, prelude_text("cuda"))
    options = ("--ptxas-options=-v",)
    return nvrtc.compile_text(str(module), text, architecture, options).log


def complaint(used: Usage, known: Table) -> str:
    """What is wrong with a kernel; empty where nothing is."""
    if used.spilled:
        return f"{used.kernel} spills {used.spilled} bytes of registers on {used.architecture}"
    if used.shared > MOST_SHARED:
        return f"{used.kernel} takes {used.shared} bytes of shared memory"
    if used.kernel not in known:
        return f"{used.kernel} is not in {TABLE.name}; run {COMMAND}"
    registers, shared = known[used.kernel][used.architecture]
    if used.registers > registers + MORE_REGISTERS or used.shared > shared:
        return (
            f"{used.kernel} takes {used.registers} registers and {used.shared} bytes of shared "
            f"memory on {used.architecture}, before {registers} and {shared}; if it has to, run "
            f"{COMMAND}"
        )
    return ""


def write(modules: list[KernelModule]) -> None:
    """Make the table anew."""
    kernels: Table = {}
    for module in modules:
        for architecture in ARCHITECTURES:
            for used in usages(compiled(module, architecture)):
                row = kernels.setdefault(used.kernel, {})
                row[architecture] = [used.registers, used.shared]
    rows = ",\n".join(f'    "{name}": {json.dumps(kernels[name])}' for name in sorted(kernels))
    version = ".".join(map(str, nvrtc.version()))
    head = f'{{\n  "nvrtc": "{version}",\n  "kernels": {{\n'
    TABLE.write_text(f"{head}{rows}\n  }}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    from gpu_modules import every_module

    write(every_module())
