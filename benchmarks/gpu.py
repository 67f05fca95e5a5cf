"""`python -m benchmarks gpu`: what a person with a GPU runs, in three parts of a few minutes each.

`checks`: is it right. `kernels`: how near each kernel comes to what the device can do. `training`:
how fast and how exactly whole models train. PyTorch is compared with where it is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks import gpu_checks, gpu_device, gpu_kernels, gpu_products, gpu_torch, gpu_training
from benchmarks.race import Say

QUICK_OPS = ("add", "softmax")

Part = Callable[[str, bool, Say], dict[str, Any]]


def checks(device: str, quick: bool, say: Say) -> dict[str, Any]:
    """Every op against the CPU, replays against eager steps, compute-sanitizer."""
    ops = QUICK_OPS if quick else gpu_checks.SANITIZED
    gpu = gpu_device.open_device(device)
    began = time.monotonic()
    return {
        "gpu": gpu_device.description(gpu),
        "doctor": gpu_checks.doctor(device, ops if quick else (), say),
        "graph": gpu_checks.graph(gpu, quick, say),
        "small_kernels": gpu_checks.small_kernels(gpu, quick, say),
        "sanitizer": gpu_checks.sanitized(device, ops, say),
        "seconds": round(time.monotonic() - began, 1),
    }


def kernels(device: str, quick: bool, say: Say) -> dict[str, Any]:
    """Bandwidth of each family against a copy; products against PyTorch's libraries."""
    gpu = gpu_device.open_device(device)
    peer, why_not = gpu_torch.peer(device)
    began = time.monotonic()
    say(f"{gpu.driver.describe()}\nbandwidth:")
    families = gpu_kernels.families(gpu, quick, say)
    say("products:" + (f" without ratios, {why_not}" if why_not else ""))
    return {
        "gpu": gpu_device.description(gpu),
        "torch_missing": why_not,
        "families": families,
        "products": gpu_products.products(gpu, peer, quick, say),
        "seconds": round(time.monotonic() - began, 1),
    }


def training(device: str, quick: bool, say: Say) -> dict[str, Any]:
    """Steps a second of four models against PyTorch, their losses against the CPU's."""
    gpu = gpu_device.open_device(device)
    peer, why_not = gpu_torch.peer(device)
    began = time.monotonic()
    say(gpu.driver.describe() + (f"\nwithout ratios: {why_not}" if why_not else ""))
    return {
        "gpu": gpu_device.description(gpu),
        "torch_missing": why_not,
        "workloads": gpu_training.training(gpu, peer, quick, say),
        "seconds": round(time.monotonic() - began, 1),
    }


PARTS: dict[str, Part] = {"checks": checks, "kernels": kernels, "training": training}
