"""The build of the kernels knows every file it is made of."""

from __future__ import annotations

from gradcli.engine.device import build


def test_a_change_in_any_header_compiles_the_kernels_again() -> None:
    _, _, _, arguments = build.ffibuilder._assigned_source
    csrc = build.ROOT / build.CSRC
    wanted = {
        str(path.relative_to(build.ROOT)) for path in csrc.rglob("*.h") if "gpu" not in path.parts
    }
    assert set(arguments["depends"]) == wanted
    assert str(build.CSRC / "kernels.h") in wanted
