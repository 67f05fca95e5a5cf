"""Result files: `YYYY-MM-DD-<kind>.json`, with the machine and everything measured."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

GPU_KINDS = ("gpu-checks", "gpu-kernels", "gpu-training")
RACES = ("workloads", "matmul", "generation", "memory", "startup", "mnist97")
KINDS = (*RACES, "ranks", "log", "data", "ops", "grow", "configs", "text", *GPU_KINDS)
FORMAT = 1
FOLDER = Path(__file__).with_name("results")


def machine() -> dict[str, Any]:
    """What the figures hold for."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": os.cpu_count(),
        "isa": _isa(),
        "memory_gib": round(int(_field("/proc/meminfo", "MemTotal").split()[0] or 0) / 2**20, 1)
        if _field("/proc/meminfo", "MemTotal")
        else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _field(file: str, name: str) -> str:
    """The first line `name: value` of a file of the system; empty where there is none."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return ""
    result = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(result, "")


def _isa() -> str:
    flags = _field("/proc/cpuinfo", "flags").split()
    usable = [name for name in ("avx512f", "avx2", "avx", "sse4_2", "asimd") if name in flags]
    return usable[0] if usable else platform.machine()


def document(kind: str, result: dict[str, Any], quick: bool) -> dict[str, Any]:
    """A result as it is written."""
    return {
        "format": FORMAT,
        "kind": kind,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "quick": quick,
        "machine": machine(),
        **result,
    }


def write(folder: Path, content: dict[str, Any]) -> Path:
    """Write a result; one of the same day and kind is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{content['date'][:10]}-{content['kind']}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def newest(folder: Path, kind: str) -> dict[str, Any] | None:
    """The youngest result of a kind, or None."""
    files = sorted(folder.glob(f"????-??-??-{kind}.json"))
    if not files:
        return None
    result: dict[str, Any] = json.loads(files[-1].read_text(encoding="utf-8"))
    return result
