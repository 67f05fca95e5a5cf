"""Every header of the CPU's kernels compiles alone, so that editors and other tools can read it."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from gradcli.engine.device import build

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def complaints(header: str) -> str:
    """What the compiler says of one header."""
    assert COMPILER is not None
    command = [COMPILER, "-std=c11", "-fsyntax-only", f"-I{build.CSRC}", header]
    answer = subprocess.run(command, cwd=build.ROOT, capture_output=True, text=True, check=False)
    return answer.stderr if answer.returncode else ""


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_each_header_compiles_alone() -> None:
    headers = build.headers()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = dict(zip(headers, pool.map(complaints, headers), strict=True))
    assert len(said) > 60
    assert {header: text[:500] for header, text in said.items() if text} == {}


def test_each_header_has_a_guard() -> None:
    tables = ("kernels.h", "scalar_ops.h")  # included often: each time they are something else
    open_to_all = [
        name
        for name in build.headers()
        if "\n#ifndef GC_" not in (build.ROOT / name).read_text(encoding="utf-8")
    ]
    assert [name for name in open_to_all if not name.endswith(tables)] == []
