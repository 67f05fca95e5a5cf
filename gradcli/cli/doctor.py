"""`gradcli doctor`: what this installation is and can use, and whether its kernels are right."""

from __future__ import annotations

import math
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gradcli import __version__
from gradcli.cli import launchers, options, output, ranks_report
from gradcli.cli.gpu_report import gpu_report, show
from gradcli.devices import DEVICES
from gradcli.errors import DeviceError
from gradcli.free_memory import free_memory
from gradcli.packages import version
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine import DType

PACKAGES = ("click", "PyYAML", "cffi", "tqdm", "pydantic", "safetensors", "jinja2")
EXIT_BROKEN = 4
# A relative error that float32 rounding cannot explain.
TOLERANCE = 1e-6


@click.command("doctor")
@options.compared_device("Run every op on this GPU and compare it with the CPU.")
@options.json
@options.basic
@click.pass_context
def command(ctx: click.Context, device: str, as_json: bool) -> None:
    """Show compiler, instruction set, threads, memory, devices and versions; test the kernels.

    On ranks (mpirun -n N gradcli doctor), also list the ranks and time a sum over them.
    """
    report: dict[str, Any] = {
        "gradcli": __version__,
        "python": f"{platform.python_version()} at {sys.executable}",
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "compiler": compiler(),
        "packages": {package: version(package) or "missing" for package in PACKAGES},
        "devices": {name: options.unavailable(name) for name in DEVICES},
    }
    try:
        report |= kernels()
    except DeviceError as error:
        report |= {"ok": False, "problem": error.message}
    if device != "cpu":
        report["gpu"] = gpu_report(device)
        report["ok"] = report["ok"] and report["gpu"]["ok"]
    group = launchers.ranks()
    if group is not None:
        report |= ranks_report.ranks_report(group, report)
    if as_json:
        output.say_json(report)
    else:
        _show(report)
    ctx.exit(0 if report["ok"] else EXIT_BROKEN)


def compiler() -> str:
    """The first line of the C compiler's version; empty if there is no compiler."""
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            process = subprocess.run(
                [path, "--version"], capture_output=True, text=True, timeout=10, check=False
            )
            return (process.stdout.splitlines() or [path])[0]
    return ""


def kernels() -> dict[str, Any]:
    """What the compiled library offers, and whether each instruction set passes the self-test."""
    from gradcli.engine.device import cpu
    from gradcli.engine.device.kernels import BUILD

    current = cpu.isa()
    tests = {}
    for name in cpu.usable_isas():
        cpu.set_isa(name)
        tests[name] = self_test()
    cpu.set_isa(current)
    return {
        "kernels": len(cpu.KERNELS),
        "build": asdict(BUILD),
        "instruction_set": current,
        "self_test": tests,
        "threads": cpu.threads(),
        "threads_why": _explain_threads(),
        "memory_free": free_memory() or 0,
        "ok": not any(tests.values()),
    }


def _explain_threads() -> str:
    from gradcli.engine.device import cpu

    may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    explanation = f"{quantity(os.cpu_count() or 1, 'core')}, {may_use} for this process"
    if cpu.available_cores() != may_use:
        explanation += f", {cpu.available_cores()} by the container's quota"
    if cpu.sharers() > 1:
        explanation += f", shared by {quantity(cpu.sharers(), 'rank')}"
    return explanation


def self_test() -> str:
    """Check elementwise kernels and a matrix product against Python; empty if they agree."""
    from gradcli import engine

    problems = (_self_test(dtype) for dtype in (engine.float32, engine.float64))
    return next((problem for problem in problems if problem), "")


def _self_test(dtype: DType) -> str:
    from gradcli import engine

    numbers = [i / 250 - 2 for i in range(1000)]
    x = engine.tensor(numbers, dtype=dtype)
    for name, expected in (("exp", math.exp), ("tanh", math.tanh), ("sin", math.sin)):
        for number, result in zip(numbers, getattr(engine, name)(x).tolist(), strict=True):
            if not _close(result, expected(number)):
                return f"{name}({number:g}) in {dtype} gave {result!r}, not {expected(number)!r}"
    # 25 x 40 times its transpose: the products of its rows with each other.
    rows = [numbers[40 * i : 40 * (i + 1)] for i in range(25)]
    matrix = x.reshape(25, 40)
    for i, line in enumerate((matrix @ matrix.t()).tolist()):
        for j, result in enumerate(line):
            exact = math.fsum(a * b for a, b in zip(rows[i], rows[j], strict=True))
            if not _close(result, exact):
                return f"matmul in {dtype} gave {result!r}, not {exact!r}, at {i}, {j}"
    return ""


def _close(result: float, exact: float) -> bool:
    # Sums of 40 products up to 4 in float32: rounding stays below 1e-4.
    return math.isclose(result, exact, rel_tol=TOLERANCE, abs_tol=100 * TOLERANCE)


def _show(report: dict[str, Any]) -> None:
    for name in ("gradcli", "python", "platform"):
        _line(name, report[name])
    _line("compiler", report["compiler"] or "none found; gradcli needs one only to be installed")
    if "problem" in report:
        _line("kernels", report["problem"])
    else:
        _show_kernels(report)
    for name, reason in report["devices"].items():
        _line(name, reason or "usable")
    _line("packages", ", ".join(f"{k} {v}" for k, v in report["packages"].items()))
    if "gpu" in report:
        show(report["gpu"])
    if "ranks" in report:
        ranks_report.show(report)


def _show_kernels(report: dict[str, Any]) -> None:
    sets, current = ", ".join(report["self_test"]), report["instruction_set"]
    _line("kernels", f"{report['kernels']}, built here for {sets}; {current} used")
    build = report["build"]
    _line("build", f"{build['compiler']} {build['flags']}, csrc {build['source'][:12]}")
    wrong = {name: text for name, text in report["self_test"].items() if text}
    _line("self-test", "; ".join(f"{k}: {v}" for k, v in wrong.items()) or "passed on each of them")
    _line("threads", f"{report['threads']} ({report['threads_why']})")
    _line("memory", f"{report['memory_free'] / 2**30:.1f} GiB free")


def _line(label: str, text: str) -> None:
    output.say(f"{label:<10} {text}", indent=11)
