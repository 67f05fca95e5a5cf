"""Every module of GPU kernels compiles for CUDA, without spilled registers, and takes no more
registers and shared memory than registers.json says.

A module of elementwise kernels is a row of scalar_ops.h; of the rows a sample is compiled, and all
of them where GRADCLI_EVERY_ROW is set.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gpu_modules import every_module, named, speaks_of

pytest.importorskip("cuda.bindings.nvrtc", reason="needs the extra 'cuda'")

import registers
from register_table import table
from registers import ARCHITECTURES, MORE_REGISTERS, Usage, complaint, usages

from gradcli.engine.device.gpu import launches, nvrtc
from gradcli.engine.device.gpu.launch import KernelModule
from gradcli.engine.device.gpu.source import families

EVERY = 1 if os.environ.get("GRADCLI_EVERY_ROW") else 9


@pytest.mark.parametrize("family", families())
def test_every_family_is_spoken_of_where_kernels_are_launched(family: str) -> None:
    files = Path(launches.__path__[0]).parent.rglob("*.py")
    assert any(speaks_of(family, path.stem, path.read_text(encoding="utf-8")) for path in files)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("module", every_module(EVERY), ids=named)
def test_a_module_takes_what_the_table_says(module: KernelModule, architecture: str) -> None:
    log = registers.compiled(module, architecture)
    assert "warning" not in log
    found, known = list(usages(log)), table()
    assert found
    assert {used.architecture for used in found} == {architecture}
    assert [said for used in found if (said := complaint(used, known))] == []


def test_a_kernel_that_takes_more_is_told() -> None:
    known = {"f_f32": {"sm_80": [40, 1024]}}
    fine = Usage("f_f32", "sm_80", 40 + MORE_REGISTERS, 1024, 0)
    assert complaint(fine, known) == ""
    assert "takes 49 registers" in complaint(fine._replace(registers=49), known)
    assert "takes 48 registers and 1028 bytes" in complaint(fine._replace(shared=1028), known)
    assert "spills 4 bytes" in complaint(fine._replace(spilled=4), known)
    assert "is not in registers.json" in complaint(fine._replace(kernel="g_f32"), known)


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
    assert next(usages(log)).spilled, log


def test_shared_memory_is_seen() -> None:
    text = (
        'extern "C" __global__ void f(float *y) { __shared__ float s[64]; s[threadIdx.x] = y[0];'
        " __syncthreads(); y[threadIdx.x] = s[63 - threadIdx.x]; }\n"
    )
    log = nvrtc.compile_text("f", text, "sm_90", ("--ptxas-options=-v",)).log
    assert [used.shared for used in usages(log)] == [256], log
