"""Every header of the CPU's kernels compiles alone, so that editors and other tools can read it."""

from __future__ import annotations

import os
import platform
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


def test_the_compilation_database_has_all_files() -> None:
    entries = {str(entry["file"]): entry for entry in build.compile_commands()}
    assert set(entries) == {*build.every_source(), *build.headers()}
    for name, entry in entries.items():
        assert entry["directory"] == str(build.ROOT)
        assert entry["arguments"][-1] == name


def test_a_development_build_has_one_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    every = build.sources()
    monkeypatch.setenv("GRADCLI_DEVELOP", "1")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for features, sets, folders in (
        ({"sse2"}, "SET(baseline)", {"baseline"}),
        ({"avx2", "fma"}, "SET(avx2)", {"avx2"}),
        ({*build.NEEDS["avx512"], "avx2"}, "SET(avx512)", {"avx512"}),
        (
            {*build.NEEDS["avx512bf16"], "avx2"},
            "PAIRED(avx512bf16, avx512) SET(avx512)",
            {"avx512", "avx512bf16"},
        ),
    ):
        monkeypatch.setattr(build, "_features", lambda features=features: features)
        own = {name.split("/")[4] for name in build.sources() if "/builds/" in name}
        assert own == folders
        assert f"-DGC_SETS={sets}" in build.flags()
        assert "-O3" not in build.flags()
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert "-DGC_SETS=SET(neon)" in build.flags()
    monkeypatch.delenv("GRADCLI_DEVELOP")
    assert build.sources() == every
    assert build.flags() == build.FLAGS
