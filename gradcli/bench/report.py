"""A measurement as one object: what `--json` prints and the tables show."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.bench import breakdown, kernels, memory, step, timing
from gradcli.bench.against import FORMAT
from gradcli.bench.ceilings import Meter
from gradcli.bench.compare_torch import Rivals
from gradcli.bench.step import TrainingSteps
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import opened
from gradcli.errors import CaptureError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.config.planned import PlannedLayer
    from gradcli.train.job import Job


NOT_WANTED = "captured steps are not measured: train.capture is false"
# Share of the cores that others may use before their work is worth a warning.
BUSY = 0.3


ON_A_GPU = "layers and calls are taken apart on the CPU only"


def conditions(device: str) -> dict[str, Any]:
    """Where and with what a measurement is made."""
    gpu = opened.device(device)
    return {
        "format": FORMAT,
        "device": device,
        **({} if gpu is None else {"is": gpu.driver.describe()}),
        "instruction_set": cpu.isa(),
        "threads": cpu.threads(),
        "load": round(os.getloadavg()[0], 2),
    }


def of_kernels(times: int, device: str) -> dict[str, Any]:
    """The kernels by themselves."""
    gpu = opened.device(device)
    if gpu is not None:
        from gradcli.bench import gpu_ceilings

        limits = gpu_ceilings.measure(gpu)
        timings = kernels.replayed(gpu, times)
        return {"items": kernels.rated(timings, limits), "ceilings": limits.as_json()}
    meter = Meter()
    meter.run()
    timed = kernels.timed(times)
    meter.run()
    limits = meter.ceilings()
    return {"items": kernels.rated(timed, limits), "ceilings": limits.as_json()}


def disturbed(results: Mapping[str, Any]) -> str:
    """A warning where the machine was busy before the measurement began, or nothing."""
    cores = os.cpu_count() or 1
    if results["load"] <= BUSY * cores:
        return ""
    return (
        f"warning: the load of this machine was {results['load']:g} on {quantity(cores, 'core')} "
        "before anything "
        "was measured; other work makes times longer, and ratios to PyTorch meaningless"
    )


def facts(path: str, job: Job) -> dict[str, Any]:
    """What is measured."""
    return {"config": path, "name": job.name, "batch": step.batch_size(job)}


def of_config(
    job: Job,
    plan: Sequence[PlannedLayer],
    times: int,
    top: int,
    *,
    compare: bool,
    device: str,
) -> dict[str, Any]:
    """The training step of a config: as a whole, and on the CPU by layer and by call."""
    start = {name: tensor.clone() for name, tensor in job.model.state_dict().items()}
    gpu, job = opened.device(device), job.to(device)
    eager, captured = TrainingSteps(job, captured=False), TrainingSteps(job, captured=True)
    first_loss = eager.run(1)
    contenders: dict[str, timing.Run] = {"eager": eager.run}
    if job.settings.capture:
        contenders["captured"] = captured.run
        captured.run(3)
    memory_use = memory.measure(job, gpu)  # before PyTorch and the ceilings take theirs
    rivals = Rivals(job, start, device) if compare else None
    if rivals:
        contenders |= rivals.contenders
    eager.forget_times()
    captured.forget_times()
    spreads = timing.interleaved(contenders, times, rivals.pause if rivals else 0.0)
    if captured.fallback_reason:
        del spreads["captured"]
    results = {
        "steps": {name: spread.as_json() for name, spread in spreads.items()},
        "samples_per_second": {
            name: round(1e3 * step.batch_size(job) / spread.ms, 1)
            for name, spread in spreads.items()
        },
        "wait_data": {
            name: float(f"{steps.wait_data:.4g}")
            for name, steps in (("eager", eager), ("captured", captured))
            if name in spreads
        },
        "why_not_captured": captured.fallback_reason if job.settings.capture else NOT_WANTED,
        "memory": memory_use,
    }
    if rivals:
        results["torch"] = rivals.as_json(first_loss, {n: s.ms for n, s in spreads.items()})
    if gpu is not None:
        from gradcli.bench import gpu_ceilings

        limits = gpu_ceilings.measure(gpu)
        return results | {"why_no_parts": ON_A_GPU, "ceilings": limits.as_json()}
    return results | _parts(job, plan, times, top, results)


def _parts(
    job: Job, plan: Sequence[PlannedLayer], times: int, top: int, results: dict[str, Any]
) -> dict[str, Any]:
    """What the step is made of, and the ceilings, measured before and after it."""
    meter = Meter()
    meter.run()
    try:
        parts = step.parts(job, plan, times)
    except CaptureError as error:
        # Then the step runs eagerly too, and its whole time is all there is to say.
        reason = results["why_not_captured"] or error.message
        return {"why_not_captured": reason, "ceilings": meter.ceilings().as_json()}
    meter.run()
    limits = meter.ceilings()
    return {
        "layers": breakdown.by_layer(parts, limits),
        "calls": breakdown.by_call(parts.calls, limits, top),
        "program": {
            "calls": len(parts.calls),
            "eager_calls": parts.eager,
            "waves": parts.waves,
            **breakdown.total(parts.calls, limits),
        },
        "memory": {**results["memory"], "arena": parts.arena},
        "ceilings": limits.as_json(),
    }
