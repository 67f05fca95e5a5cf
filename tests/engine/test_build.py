"""The build of the kernels knows every file it is made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradcli.engine.device import build


def test_a_change_in_any_header_compiles_the_kernels_again() -> None:
    _, _, _, arguments = build.ffibuilder._assigned_source
    csrc = build.ROOT / build.CSRC
    wanted = {
        str(path.relative_to(build.ROOT)) for path in csrc.rglob("*.h") if "gpu" not in path.parts
    }
    assert set(arguments["depends"]) == wanted
    assert str(build.CSRC / "kernels.h") in wanted


def test_another_source_or_flag_is_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def text(*flags: str) -> str:
        return str(build.builder(flags)._assigned_source[1])

    shutil.copytree(build.ROOT / build.CSRC, tmp_path / build.CSRC)
    monkeypatch.setattr(build, "ROOT", tmp_path)
    before = text("-O3")
    assert before == text("-O3") != text("-O2")
    monkeypatch.setenv("CFLAGS", "-march=native")
    assert text("-O3") == before.replace('"-O3"', '"-O3 -march=native"')
    monkeypatch.delenv("CFLAGS")
    with (tmp_path / build.CSRC / "kernels.h").open("a") as file:
        file.write("/* */")
    assert text("-O3") != before
