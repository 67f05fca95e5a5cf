"""Training on a GPU: steps a second beside PyTorch's in turns, and losses beside the CPU's."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from benchmarks.gpu_jobs import CONFIGS, GPT2, OVERRIDES, QUICKER, job_of, tokens
from benchmarks.gpu_torch import Peer
from benchmarks.medians import furthest
from benchmarks.race import Say
from gradcli.bench.compare_torch import Rival
from gradcli.bench.step import TrainingSteps, batch_size
from gradcli.bench.timing import once
from gradcli.engine.device.gpu.device import GPU
from gradcli.train.job import Job

REPEATS, TURNS = 3, 4
TURN = 0.4  # seconds of one turn, about
MOST_STEPS = 400
LOSSES, LOSSES_OF_GPT2 = 50, 3
IN_BF16 = ("train.precision=bf16",)


class Trained(Protocol):
    """A training that goes on when asked; `fallback_reason` says why its steps are not captured."""

    fallback_reason: str

    def run(self, count: int) -> float:
        """So many steps, finished on return; the last loss."""
        ...


def training(gpu: GPU, peer: Peer | None, quick: bool, say: Say) -> dict[str, Any]:
    """Each workload: its speed, then its losses."""
    result = {}
    for name in CONFIGS:
        if quick and name not in QUICKER:
            say(f"{name}: left out of a quick look")
            continue
        say(f"{name}:")
        result[name] = {
            **speeds(gpu, peer, name, quick, say),
            "losses": losses(gpu, name, quick, say),
        }
        gpu.trim()
        if peer:
            peer.clear()
    return result


def _overrides(name: str, quick: bool) -> tuple[str, ...]:
    return QUICKER[name] if quick else OVERRIDES.get(name, ())


# -- speed -----------------------------------------------------------------------------------------


def speeds(gpu: GPU, peer: Peer | None, name: str, quick: bool, say: Say) -> dict[str, Any]:
    """Milliseconds of a step by contender, the contenders in turns, in three repeats."""
    job = job_of(CONFIGS[name], _overrides(name, quick))
    entry = {"batch": batch_size(job), "tokens": batch_size(job) * tokens(job)}
    rows: dict[str, Any] = {}
    there: dict[str, Trained] = {}
    for contender, make in _makers(gpu, peer, name, quick, job).items():
        try:
            trained = make()
            trained.run(1)
            trained.run(3)
            there[contender] = trained
        except Exception as error:  # out of memory, no compiler, a kernel that is missing
            rows[contender] = {"missing": f"{type(error).__name__}: {error}"[:300]}
            say(f"  {contender}: takes no part: {rows[contender]['missing']}")
    for contender, row in _timed(there, quick).items():
        rows[contender] = row | _rates(entry, row["ms"])
        if contender != "gradcli eager" and there[contender].fallback_reason:
            rows[contender]["remark"] = there[contender].fallback_reason
        say(f"  {contender}: {row['ms']:.3f} ms, {rows[contender]['steps_per_second']:.1f} steps/s")
    return {**entry, "rows": rows}


def _makers(
    gpu: GPU, peer: Peer | None, name: str, quick: bool, job: Job
) -> dict[str, Callable[[], Trained]]:
    """How each contender is made, ready to run steps."""
    overrides = _overrides(name, quick)
    start = {key: tensor.clone() for key, tensor in job.model.state_dict().items()}

    def ours(captured: bool, more: tuple[str, ...] = ()) -> Trained:
        there = job_of(CONFIGS[name], (*overrides, *more)).to(gpu.name)
        return TrainingSteps(there, captured=captured)

    def theirs(there: Peer, compiled: bool, half: bool) -> Trained:
        return Rival(there.torch, job, start, compiled=compiled, device=there.device, half=half)

    makers: dict[str, Callable[[], Trained]] = {
        "gradcli eager": partial(ours, False),
        "gradcli captured": partial(ours, True),
    }
    if name == GPT2:
        makers["gradcli captured bf16"] = partial(ours, True, IN_BF16)
    if peer:
        makers["torch eager"] = partial(theirs, peer, False, False)
        makers["torch compile"] = partial(theirs, peer, True, False)
        if name == GPT2:
            makers["torch eager bf16"] = partial(theirs, peer, False, True)
            makers["torch compile bf16"] = partial(theirs, peer, True, True)
    return makers


def _timed(there: dict[str, Trained], quick: bool) -> dict[str, dict[str, Any]]:
    """Medians of each repeat, and of all turns together."""
    turns = 1 if quick else TURNS
    counts = {name: 1 if quick else _in_a_turn(trained) for name, trained in there.items()}
    durations: dict[str, list[list[float]]] = {name: [] for name in there}
    for _ in range(REPEATS):
        for name in there:
            durations[name].append([])
        for _ in range(turns):
            for name, trained in there.items():
                seconds = once(partial(trained.run, counts[name])) / counts[name]
                durations[name][-1].append(1e3 * seconds)
    return {
        name: {
            "ms": round(statistics.median(itertools.chain(*repeats)), 4),
            "repeats": [round(statistics.median(times), 4) for times in repeats],
            "steps_per_turn": counts[name],
        }
        for name, repeats in durations.items()
    }


def _in_a_turn(trained: Trained) -> int:
    seconds = once(partial(trained.run, 3)) / 3
    return max(2, min(MOST_STEPS, round(TURN / max(seconds, 1e-6))))


def _rates(entry: dict[str, int], ms: float) -> dict[str, float]:
    rates = {"steps_per_second": round(1e3 / ms, 2)}
    if entry["tokens"]:
        rates["tokens_per_second"] = round(1e3 * entry["tokens"] / ms)
    return rates


# -- losses ----------------------------------------------------------------------------------------


def losses(gpu: GPU, name: str, quick: bool, say: Say) -> dict[str, Any]:
    """The first losses on the device and on the CPU, and their largest relative difference."""
    steps = 3 if quick else LOSSES_OF_GPT2 if name == GPT2 else LOSSES
    overrides = (*_overrides(name, quick), *(("train.batch=1",) if name == GPT2 else ()))
    series = {}
    try:
        for device in ("cpu", gpu.name):
            training = TrainingSteps(job_of(CONFIGS[name], overrides).to(device), captured=True)
            series[device] = [training.run(1) for _ in range(steps)]
    except Exception as error:  # as above
        return {"missing": f"{type(error).__name__}: {error}"[:300]}
    off = furthest(series[gpu.name], series["cpu"])
    say(f"  losses of {steps} steps: at most {off:.2g} from the CPU's")
    return {"steps": steps, "off_course": off, **series}
