"""Every module of GPU kernels compiles for CUDA, without spilled registers or too much memory.

A module of elementwise kernels is a row of scalar_ops.h; of the rows a sample is compiled, and all
of them where GRADCLI_EVERY_ROW is set.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from gpu_modules import named, rows, whole_families

pytest.importorskip("cuda.bindings.nvrtc", reason="needs the extra 'cuda'")

from gradcli.engine.device.gpu import launches, nvrtc
from gradcli.engine.device.gpu.launch import Module
from gradcli.engine.device.gpu.launches import elementwise
from gradcli.engine.device.gpu.source import families, module_text, prelude_text

ARCHITECTURES = ("sm_80", "sm_90")
MOST_SHARED = 48 << 10
EVERY = 1 if os.environ.get("GRADCLI_EVERY_ROW") else 9
_KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")


def modules() -> list[Module]:
    """All that may be loaded; a sample of the elementwise ones."""
    listed = [one for one in whole_families() if one.family != elementwise.FAMILY]
    return listed + rows()[::EVERY]


@pytest.mark.parametrize("family", families())
def test_every_family_is_spoken_of_where_kernels_are_launched(family: str) -> None:
    files = Path(launches.__path__[0]).parent.rglob("*.py")
    assert any(f'"{family}"' in path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("module", modules(), ids=named)
def test_a_module_compiles_without_spills(module: Module, architecture: str) -> None:
    text = module_text(module, prelude_text("cuda"))
    made = nvrtc.compile_text(named(module), text, architecture, ("--ptxas-options=-v",))
    assert "warning" not in made.log
    kernels = _KERNEL.findall(made.log)
    frames = _SPILLS.findall(made.log)
    assert kernels
    assert {arch for _, arch in kernels} == {architecture}
    assert len(frames) >= len(kernels)
    assert all(int(stores) == int(loads) == 0 for _, stores, loads in frames), made.log
    assert all(int(size) <= MOST_SHARED for size in _SHARED.findall(made.log)), made.log


def test_products_are_not_contracted_with_sums() -> None:
    """Else a fused call would differ from single ones in its last bits."""
    text = 'extern "C" __global__ void f(float *y) { y[0] = y[1] * y[2] + y[3]; }\n'
    made = nvrtc.compile_text("f", text, "compute_90").image
    assert b"mul.rn.f32" in made
    assert b"fma" not in made


def test_what_spills_is_seen() -> None:
    """The compiler's words are read rightly: an array that must lie in memory is one."""
    many = " ".join(f"float v{i} = x[{i}u * k];" for i in range(300))
    sums = "".join(f"y[{i}] = v{i} * v{(i * 7) % 300};" for i in range(300))
    text = (
        'extern "C" __global__ void __launch_bounds__(1024) f(const volatile float *x, float *y, '
        f"unsigned k) {{ {many} __syncthreads(); {sums} }}\n"
    )
    log = nvrtc.compile_text("f", text, "sm_90", ("--ptxas-options=-v",)).log
    assert any(int(stores) for _, stores, _ in _SPILLS.findall(log)), log


def test_shared_memory_is_seen() -> None:
    text = (
        'extern "C" __global__ void f(float *y) { __shared__ float s[64]; s[threadIdx.x] = y[0];'
        " __syncthreads(); y[threadIdx.x] = s[63 - threadIdx.x]; }\n"
    )
    log = nvrtc.compile_text("f", text, "sm_90", ("--ptxas-options=-v",)).log
    assert [int(size) for size in _SHARED.findall(log)] == [256], log
