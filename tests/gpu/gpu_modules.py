"""The modules of GPU kernels that a run may load."""

from __future__ import annotations

import inspect
import sys
from functools import cache

from gradcli.engine.array import MOVE_BFLOAT16
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import launches
from gradcli.engine.device.gpu.launch import LAUNCHERS, SUFFIX, KernelModule
from gradcli.engine.device.gpu.source import families
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.dtype import DTYPES

_OF_ONE_TYPE = {"random_integers": "i64"}
assert launches  # imported to fill LAUNCHERS


def built(kernel: str) -> set[str]:
    """The element types that a kernel is built for, as names of kernels end.

    They are the CPU's; but some processors multiply bfloat16, which elsewhere is only moved.
    """
    found = {SUFFIX[name] for name in SUFFIX if cpu.kernel_built(kernel, DTYPES[name])}
    return found if kernel in MOVE_BFLOAT16 else found - {"bf16"}


def speaks_of(family: str, file: str, text: str) -> bool:
    """Whether a file of launchers is of a family or names it; what its kernels end in aside."""
    plain = family.removesuffix("_tensor").removesuffix("_then")
    return file == plain or f'"{plain}"' in text


@cache
def element_types(family: str) -> list[str]:
    """Those for which the kernels of the launchers' file are built that speaks of a family."""
    if family in _OF_ONE_TYPE:
        return [_OF_ONE_TYPE[family]]
    found = {"f32"}
    for kernel, launcher in LAUNCHERS.items():
        module = sys.modules[launcher.__module__]
        if speaks_of(family, module.__name__.rpartition(".")[2], inspect.getsource(module)):
            found |= built(kernel)
    if family == "join" or (family.endswith("_tensor") and "_then_" not in family):
        found.add("bf16")
    return sorted(found)


def whole_families(target: str = "cuda") -> list[KernelModule]:
    """Every family for its element types, all rows of the elementwise ones in one."""
    return [
        KernelModule(family, suffix)
        for family in families(target)
        for suffix in element_types(family)
    ]


def rows() -> list[KernelModule]:
    """Every row of scalar_ops.h for its element types."""
    return [
        KernelModule("elementwise", suffix, row)
        for row in sorted({facts.op for facts in FACTS.values() if facts.elementwise})
        for suffix in sorted(built(row))
    ]


def every_module(step: int = 1) -> list[KernelModule]:
    """All that may be loaded; of the rows of scalar_ops.h every so many."""
    whole = [one for one in whole_families() if one.family != "elementwise"]
    return whole + rows()[::step]


def named(module: KernelModule) -> str:
    return "-".join(part for part in module if part)
