"""The workloads in torch: eager, and with forward, backward and loss compiled."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks import grow_cases, models, op_cases
from benchmarks.course import Course
from benchmarks.runner import Loop, Runner

THREADS = 2

# Of fused, foreach and neither, the fastest of each: up to a quarter faster than the default.
FASTEST: dict[str, dict[str, bool]] = {
    "adam": {"fused": True},
    "adamw": {"fused": True},
    "sgd": {"foreach": False},
    "plain": {"foreach": False},
}
# Measured: eager is a quarter to a third faster with it.
CHANNELS_LAST = ("W4", "W5")


def build(course: Course, mode: str) -> Runner:
    """The workload as a loop of `eager` steps, or with the model and its loss under `compile`."""
    torch.set_num_threads(THREADS)
    workload = course.workload
    training = models.training(torch, course, joint=True)
    model, criterion, whole = training.model, training.loss, workload.y.below
    pairs = zip(training.xs, training.ys, strict=True)
    items = [(x.clone(), y.flatten() if whole else y.clone()) for x, y in pairs]
    if workload.name in CHANNELS_LAST:
        model = model.to(memory_format=torch.channels_last)
        items = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in items]
    optimizer = models.optimizer(torch, workload, model, **FASTEST[workload.optimizer])

    def loss_of(x: Any, y: Any) -> Any:
        return criterion(model(x), y)

    if mode == "compile":
        loss_of = torch.compile(loss_of)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return Loop(step, items, values=lambda loss: [loss.item()])


def matmul(m: int, k: int, n: int, mode: str) -> Runner:
    """One matrix product into memory that is there."""
    torch.set_num_threads(THREADS)
    a, b, out = torch.rand(m, k), torch.rand(k, n), torch.empty(m, n)
    return Loop(lambda a, b: torch.mm(a, b, out=out), [(a, b)], values=lambda result: [])


def op(code: str, way: str, side: int, dtype: str) -> Runner:
    """A single call of op_cases, over and over."""
    torch.set_num_threads(THREADS)
    there = op_cases.Inputs(torch, functional, side, dtype).of(code)
    return Loop(op_cases.WAYS[way](code, there), [()], values=lambda result: [])


def grow(axis: str, size: int) -> Runner:
    """A training step of grow_cases, eager."""
    torch.set_num_threads(THREADS)
    step, x, y = grow_cases.step(torch, axis, size)
    return Loop(step, [(x, y)], values=lambda loss: [loss.item()])


def versions() -> dict[str, str]:
    """What is compared here."""
    return {"torch": torch.__version__}
