"""Source: the text of a module of GPU kernels, from csrc/gpu, for a target and an element type."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from gradcli.engine.device.gpu.launch import KernelModule

CSRC = Path(__file__).parents[3] / "csrc"
_INCLUDE = re.compile(r'^#include "([^"]+)".*\n', re.MULTILINE)
_STEP = re.compile(r"ROW\((\w+)\)")
_TYPES = {"f32": "float", "i32": "int", "i64": "i64", "u8": "uchar", "bf16": "ushort"}
_SPEAKS = {
    "f32": "#define GC_IS_REAL\n",
    "bf16": "#define GC_IS_BF16\n",
    "i64": "#define GC_IS_I64\n",
    "u8": "#define GC_IS_U8\n",
}
_ONLY = {"bytes": "metal"}  # CUDA's driver copies


def module_text(module: KernelModule, prelude: str) -> str:
    """All of a module in one text: a prelude, the element type, and the family's file."""
    real = _SPEAKS.get(module.dtype, "")
    own = f"#define REAL {_TYPES[module.dtype]}\n#define NAME(x) x##_{module.dtype}\n"
    text = expanded(file_of(module.family))
    if module.row:
        every = expanded(CSRC / "scalar_ops.h")
        text = text.replace(every, "".join(map(row_of, _rows(module.row))))
    steps = _steps(module.row) if _STEP.search(module.row) else ""
    return prelude + real + own + steps + text


def _steps(row: str) -> str:
    """What a text is told of its steps, and of the types that a chain's tensors have in memory."""
    types = ("ushort" if f"_HALF({k})" in row else "float" for k in range(8))
    lines = [f"#define CHAIN_T{k} {name}" for k, name in enumerate(types)]
    return "\n".join([f"#define STEPS {row}", *lines, ""])


def _rows(row: str) -> list[str]:
    """The names of the rows of a module: one, or those that its steps mention."""
    steps: list[str] = _STEP.findall(row)
    return sorted({step.partition("_backward")[0] for step in steps}) or [row]


def row_of(name: str) -> str:
    """The lines of scalar_ops.h that declare one name."""
    every = expanded(CSRC / "scalar_ops.h")
    match = re.search(rf"^[A-Z_]+\({name},[\s\S]*?\n(?=[A-Z_]+\(|\n|/\*)", every, re.MULTILINE)
    assert match is not None, f"scalar_ops.h has no row '{name}'"
    return match[0]


def prelude_text(target: str) -> str:
    """The prelude of a target."""
    return (CSRC / "gpu" / f"prelude_{target}.h").read_text(encoding="utf-8")


@cache
def _files() -> dict[str, Path]:
    return {path.stem: path for path in (CSRC / "gpu").rglob("*.gc")}


def file_of(family: str) -> Path:
    """Where a family of kernels is written."""
    return _files()[family]


@cache
def expanded(path: Path) -> str:
    """A file with what it includes in place, as often as it is included; not what is the CPU's."""
    return _INCLUDE.sub(
        lambda match: "" if match[1].startswith("cpu/") else _beside(path, match[1]),
        path.read_text(encoding="utf-8"),
    )


def _beside(path: Path, name: str) -> str:
    return expanded((path.parent / name).resolve())


def families(target: str = "cuda") -> list[str]:
    """The names of the files of kernels that are written for a target."""
    every = sorted(_files())
    if target == "metal":
        return [name for name in every if not name.endswith("_tensor")]
    return [name for name in every if _ONLY.get(name, target) == target]
