"""Is a GPU right: all ops against the CPU, replays against eager steps, the vendor's checks."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks import gpu_device
from benchmarks.gpu_device import Effort
from benchmarks.gpu_jobs import CONFIGS, QUICKER, job_of
from benchmarks.race import Say
from gradcli import engine
from gradcli.bench import launches
from gradcli.bench.step import TrainingSteps
from gradcli.devices import kind_of
from gradcli.engine import Tensor
from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.program.on_device import DeviceProgram
from gradcli.errors import GradcliError
from gradcli.train.job import Job

# The program that is started anew, so that a kernel which fails does not take the device from us.
GRADCLI = [sys.executable, "-m", "gradcli"]
PATIENCE = 240.0
STEPS, SMALL_KERNELS, REPLAYS = 100, 400, 50
SANITIZER = "compute-sanitizer"
SANITIZER_PLACES = "/usr/local/cuda/bin"
# What the sanitizer's tools run, a hundred times slower than otherwise: a part of each kind.
SANITIZED = ("add", "gelu", "sum", "softmax", "layer_norm", "matmul", "conv2d", "max_pool2d")
TOOLS = {"memcheck": 120.0, "racecheck": 150.0}


def doctor(device: str, ops: tuple[str, ...], say: Say) -> dict[str, Any]:
    """`gradcli doctor --device`: all kernels compiled, every op against the CPU.

    With ops named, only those: `gradcli gradcheck --device`, which is the same comparison.
    """
    what = ["gradcheck", *ops] if ops else ["doctor"]
    say(f"{what[0]} --device {device}")
    began = time.monotonic()
    try:
        process = _command([*GRADCLI, *what, "--device", device, "--json"], PATIENCE)
        answer = json.loads(process.stdout)
    except subprocess.TimeoutExpired:
        return {"missing": f"it took more than {PATIENCE:.0f} s"}
    except ValueError:
        return {"missing": f"it ended with {process.returncode}: {process.stderr.strip()[-500:]}"}
    report = answer.get("gpu", answer)
    return {
        **{
            key: report[key]
            for key in ("ops", "cases", "calls", "kernels", "modules", "problem")
            if key in report
        },
        "failed": [
            failure if isinstance(failure, str) else _one_line(failure)
            for failure in report["failed"]
        ]
        if "failed" in report
        else None,
        "seconds": round(time.monotonic() - began, 1),
    }


def _one_line(difference: dict[str, Any]) -> str:
    return f"{difference['op']}{difference['sample']}: {difference['what']}"


def _command(command: list[str], patience: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)


# -- replays ---------------------------------------------------------------------------------------


def graph(gpu: GPU, quick: bool, say: Say) -> dict[str, Any]:
    """Replayed steps against eager ones: the same bits after many, and what a replay costs."""
    result: dict[str, Any] = {}
    for name in ("MNIST MLP", "character GPT"):
        say(f"replays of {name}")
        try:
            result[name] = _replayed(gpu, name, quick)
        except GradcliError as error:
            result[name] = {"missing": error.message}
    return result


def _replayed(gpu: GPU, name: str, quick: bool) -> dict[str, Any]:
    steps = 4 if quick else STEPS
    overrides = QUICKER[name] if quick else ()
    jobs = {captured: job_of(CONFIGS[name], overrides).to(gpu.name) for captured in (False, True)}
    steps_by_way = {
        captured: TrainingSteps(job, captured=captured) for captured, job in jobs.items()
    }
    losses = {captured: [s.run(1) for _ in range(steps)] for captured, s in steps_by_way.items()}
    result = {
        "steps": steps,
        "why_not_captured": steps_by_way[True].fallback_reason,
        "losses_that_differ": sum(a != b for a, b in zip(*losses.values(), strict=True)),
        "parameters_that_differ": _differing(*jobs.values()),
    }
    programs = steps_by_way[True].programs
    if not programs or not isinstance(programs[-1], DeviceProgram):
        return result
    program = programs[-1]
    result |= {"calls": len(program.calls), "arena_bytes": program.arena_bytes}
    return result | _cost(gpu, program, 3 if quick else REPLAYS)


def _differing(first: Job, second: Job) -> list[str]:
    """Parameters that are not the same bit for bit."""
    pairs = zip(first.model.named_parameters(), second.model.parameters(), strict=True)
    return [name for (name, a), b in pairs if _bytes(a) != _bytes(b)]


def _bytes(tensor: Tensor) -> bytes:
    return bytes(tensor.detach().to("cpu").memoryview())


def _cost(gpu: GPU, program: DeviceProgram, replays: int) -> dict[str, float]:
    """Microseconds that Python takes to queue a replay, and from one replay to the next."""
    queued, whole = [], []
    for _ in range(5):
        gpu.driver.synchronize()
        began = time.perf_counter()
        for _ in range(replays):
            program.replay([], [])
        queued.append((time.perf_counter() - began) / replays)
        gpu.driver.synchronize()
        whole.append((time.perf_counter() - began) / replays)
    return {
        "python_us": round(1e6 * min(queued), 2),
        "step_us": round(1e6 * statistics.median(whole), 2),
    }


def small_kernels(gpu: GPU, quick: bool, say: Say) -> dict[str, Any]:
    """Many additions of 1,024 numbers: in one replay, launched singly, and called from Python."""
    say(f"{SMALL_KERNELS} small kernels")
    x, y = (engine.randn(1024).to(gpu.name) for _ in range(2))
    with launches.record(gpu) as calls:
        total = x + y
    count = 20 if quick else SMALL_KERNELS

    def singly() -> None:
        for _ in range(count):
            gpu.driver.launch(calls[0])
        gpu.driver.synchronize()

    def call() -> None:
        for _ in range(count):
            _ = x + y
        gpu.driver.synchronize()

    effort = gpu_device.QUICK if quick else Effort(stretch=0.0, times=25)
    spreads = gpu_device.timed(
        {
            "one replay": launches.replays(gpu, calls * count),
            "launched one by one": lambda _: singly,
            "called eagerly": lambda _: call,
        },
        effort,
    )
    del total
    return {"kernels": count} | {
        name: {"us_per_kernel": round(1e3 * spread.ms / count, 3), **spread.as_json()}
        for name, spread in spreads.items()
    }


# -- the vendor's checks ---------------------------------------------------------------------------


def sanitized(device: str, ops: tuple[str, ...], say: Say) -> dict[str, Any]:
    """Some ops under compute-sanitizer's memcheck and racecheck."""
    tool = shutil.which(SANITIZER) or shutil.which(SANITIZER, path=SANITIZER_PLACES)
    if kind_of(device) != "cuda" or tool is None:
        return {"missing": f"{SANITIZER} is not installed" if tool is None else "it is for CUDA"}
    return {name: _under(tool, name, device, ops, say) for name in TOOLS}


def _under(tool: str, name: str, device: str, ops: tuple[str, ...], say: Say) -> dict[str, Any]:
    say(f"{SANITIZER} --tool {name}")
    command = [tool, "--tool", name, "--print-limit", "20", *GRADCLI, "gradcheck", *ops]
    began = time.monotonic()
    try:
        process = _command([*command, "--device", device], TOOLS[name])
    except subprocess.TimeoutExpired:
        return {"missing": f"it took more than {TOOLS[name]:.0f} s"}
    output = process.stdout + process.stderr
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", output)
    if not summary:
        return {"missing": f"it ended with {process.returncode}: {output.strip()[-500:]}"}
    errors = int(summary[-1])
    return {
        "ops": list(ops),
        "errors": errors,
        "exit": process.returncode,
        "said": output.strip()[-2000:] if errors else "",
        "seconds": round(time.monotonic() - began, 1),
    }
