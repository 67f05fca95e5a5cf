"""The workloads in gradcli: eager, captured (one Python call a step), scan (many steps a call)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks import course as courses
from benchmarks import grow_cases, models, op_cases
from benchmarks.course import Course
from benchmarks.runner import Loop, Runner
from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.device import cpu
from gradcli.engine.nn import functional

# Under the one name that it has in every revision that `before` builds.
_cpu: Any = importlib.import_module("gradcli.engine.device._cpu")
ffi, lib = _cpu.ffi, _cpu.lib
THREADS = 2


def build(course: Course, mode: str) -> Runner:
    """The workload as a loop of `eager`, `captured` or `scan` calls."""
    cpu.set_threads(THREADS)
    workload = course.workload
    training = models.training(engine, course, joint=False)
    model, criterion = training.model, training.loss
    optimizer = models.optimizer(engine, workload, model)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = criterion(model(x), y.flatten() if workload.y.below else y)
        loss.backward()
        optimizer.step()
        return loss

    return _loop(step, course, training.xs, training.ys, mode)


def _loop(
    step: Callable[[Tensor, Tensor], Tensor], course: Course, xs: Tensor, ys: Tensor, mode: str
) -> Runner:
    pairs = [(xs[i].clone(), ys[i].clone()) for i in range(courses.BATCHES)]
    if mode == "eager":
        return Loop(step, pairs, values=_values)
    captured = engine.capture(step)
    if mode == "captured":
        return Loop(captured, pairs, values=_values, remark=lambda: captured.fallback_reason)
    stacks = []
    for numbers in course.scan_batches():
        index = engine.tensor(numbers, dtype=engine.int64)
        stacks.append((engine.index_select(xs, 0, index), engine.index_select(ys, 0, index)))
    return Loop(
        captured.scan,
        stacks,
        unit=course.workload.scan,
        values=_values,
        remark=lambda: captured.fallback_reason,
    )


def _values(result: Tensor) -> list[float]:
    return [float(v) for v in result.detach().reshape(-1).tolist()]


# -- one matrix product ----------------------------------------------------------------------------


class Products:
    """A list of equal calls handed to the kernels at once: what a product costs without Python."""

    unit = 16

    def __init__(self, m: int, k: int, n: int) -> None:
        no_bias = engine.empty(0)
        tensors = engine.rand(1, m, k), engine.rand(1, k, n), no_bias, engine.empty(1, m, n)
        self._tensors = tensors  # a call holds no memory alive
        self._described = [
            cpu.describe(t.array.storage, t.array.offset, t.shape, t.array.strides, t.dtype)
            for t in tensors
        ]
        self._calls = ffi.new("gc_call[]", self.unit)
        for call in self._calls:
            call.kernel = cpu.KERNELS["matmul"]
            call.ntensors = len(self._described)
            for i, described in enumerate(self._described):
                call.tensors[i] = described[0]
        self._error = ffi.new("gc_error *")

    def remark(self) -> str:
        """Nothing to say."""
        return ""

    def losses(self, steps: int) -> list[float]:
        """A product has none."""
        return []

    def run(self, steps: int) -> None:
        """`steps` products."""
        for _ in range(steps // self.unit):
            if lib.gc_run(self._calls, self.unit, self._error):
                raise RuntimeError("the kernels refused a product")


def matmul(m: int, k: int, n: int, mode: str) -> Runner:
    """One matrix product as an `eager` or `captured` call, or in `c` alone."""
    cpu.set_threads(THREADS)
    if mode == "c":
        return Products(m, k, n)
    a, b = engine.rand(m, k), engine.rand(k, n)

    def step(a: Tensor, b: Tensor) -> Tensor:
        product: Tensor = engine.matmul(a, b)
        return product

    call = step if mode == "eager" else engine.capture(step)
    return Loop(call, [(a, b)], values=lambda result: [])


def op(code: str, way: str, side: int, dtype: str) -> Runner:
    """A single call of op_cases, over and over."""
    cpu.set_threads(THREADS)
    there = op_cases.Inputs(engine, functional, side, dtype).of(code)
    return Loop(op_cases.WAYS[way](code, there), [()], values=lambda result: [])


def grow(axis: str, size: int) -> Runner:
    """A training step of grow_cases, captured."""
    cpu.set_threads(THREADS)
    step, x, y = grow_cases.step(engine, axis, size)
    captured = engine.capture(step)
    return Loop(captured, [(x, y)], values=_values, remark=lambda: captured.fallback_reason)


def versions() -> dict[str, str]:
    """What is compared here, and the instruction set its kernels use."""
    import gradcli

    return {"gradcli": str(getattr(gradcli, "__version__", "")), "gradcli isa": cpu.isa()}
