"""Verify the resume of a run: stop and resume a second run, and compare the two.

The second run builds its own weights and optimizer at its start and again for its resume, so that
only the files of the run connect its two halves.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.errors import ExpectationError, Interrupted, Stopped
from gradcli.train.checkpoint import newest_valid
from gradcli.train.directory import LOG, RunDirectory, read_manifest
from gradcli.train.elsewhere import SilentReporter
from gradcli.train.launch import resume, start
from gradcli.train.run_context import RunContext
from gradcli.train.signals import Signals

if TYPE_CHECKING:
    from gradcli.train.job import Job
    from gradcli.train.report import Reporter, Result

FOLDER = "verify-resume"  # in the run's own
KEY = "verify_resume"
# Keys of the log that tell the time, and no figure of the training.
TIMES = {"seconds", "samples_per_second", "wait_data", "wait_ranks", "slowest_rank"}


class Stop(NamedTuple):
    """Where the second run stops: after which step, and where it ends after its resume.

    A step that is None, or that the run did not reach, is chosen at random.
    """

    step: int | None = None
    max_steps: int | None = None

    def choose(self, steps: int) -> int | None:
        """The step to stop after, for a run of so many steps; None if it has fewer than 2."""
        if steps < 2:
            return None
        reached = self.step is not None and self.step < steps
        return self.step if reached else random.randrange(1, steps)


def verify_resume(
    job: Job,
    result: Result,
    context: RunContext,
    reporter: Reporter,
    signals: Signals,
    stop: Stop,
) -> Result:
    """The result of a run with the verdict on its resume, also written to manifest.json.

    It takes about as long as the run.
    """
    path, began = Path(result.run), time.monotonic()
    step = stop.choose(result.steps)
    if step is None:
        reporter.note("warning: the run ended behind its first step, so no resume was verified")
        return result
    reporter.note(
        f"verifying the resume: a second run stops at step {step} of {result.steps} and goes on "
        "from its checkpoint; that takes as long as the run itself"
    )
    folder = path / FOLDER
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    try:
        stopped = _run_stopped(job, folder, context, signals, step)
        with RunDirectory(stopped) as directory:
            resumed = resume(
                _anew(job), directory, SilentReporter(), signals, max_steps=stop.max_steps
            )
        log = different_record(path, stopped)
        weights = different_tensor(path, stopped)
    except (Stopped, Interrupted) as error:
        raise _interrupted(error, path) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    same = not log and not weights and resumed.weights_sha256 == result.weights_sha256
    verdict = {
        "step": step,
        "steps": result.steps,
        "same": same,
        "log": not log,
        "weights": not weights and resumed.weights_sha256 == result.weights_sha256,
        "differs": None if same else log or weights or "the weights",
        "seconds": round(time.monotonic() - began, 3),
    }
    with RunDirectory(path) as directory:
        directory.write_json("manifest.json", {**read_manifest(path), KEY: verdict})
    return replace(result, verify_resume=verdict)


def _anew(job: Job) -> Job:
    """The same training with new first weights and optimizer, on the same device."""
    assert job.fresh is not None
    fresh, device = job.fresh(), next(job.model.parameters()).device
    fresh.model.to(device)
    fresh.optimizer.to(device)
    return replace(
        fresh,
        name=job.name,
        resolved=job.resolved,
        dataset=job.dataset,
        absent=job.absent,
        fresh=job.fresh,
    )


class _StopAt(SilentReporter):
    """Stops a run after a step, as SIGTERM does; passes signals on."""

    def __init__(self, step: int, signals: Signals) -> None:
        self._step = step
        self._outer = signals
        self.signals = Signals()

    def on_step(self, step: int, loss: float, rate: float) -> None:
        """A step is complete."""
        reached = signal.SIGTERM if step >= self._step else None
        self.signals.first = self._outer.first or reached


def _run_stopped(job: Job, folder: Path, context: RunContext, signals: Signals, step: int) -> Path:
    """Run a second run and stop it after a step; returns its directory."""
    stop = _StopAt(step, signals)
    # The first run's checkpoints are on the disk already, and it has the whole plan.json.
    here = replace(context, sets=1, sheet=None)
    try:
        start(_anew(job), folder, here, stop, stop.signals, max_steps=step)
    except Stopped:
        if signals.first is not None:
            raise
    (run,) = (folder / job.name).iterdir()
    return run


def _interrupted(error: Stopped | Interrupted, path: Path) -> Stopped | Interrupted:
    """The error for a signal during the second run."""
    return type(error)(
        f"stopped while the resume was verified, without a verdict; the run itself ended: {path}"
    )


def different_record(whole: Path, resumed: Path) -> str:
    """The first record of the logs that differs, apart from times; empty if none does."""
    pairs = zip_longest(_records(whole), _records(resumed))
    for number, (first, second) in enumerate(pairs, 1):
        if first == second:
            continue
        if first is None or second is None:
            which = "resumed" if first is None else "whole"
            return f"line {number} of log.jsonl is in the {which} run alone"
        key = next(key for key in {**first, **second} if first.get(key) != second.get(key))
        return (
            f"{key} in line {number} of log.jsonl (step {first.get('step')}): "
            f"{first.get(key)} in the whole run, {second.get(key)} in the resumed one"
        )
    return ""


def _records(run: Path) -> list[dict[str, Any]]:
    """The records of a run's log, without times.

    The reason of a skipped step names norms of earlier steps, which a resumed run does not know; so
    only the fact counts.
    """
    lines = (run / LOG).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [
        {key: value if key != "skipped" else True for key, value in record.items()}
        for record in ({k: v for k, v in record.items() if k not in TIMES} for record in records)
    ]


def different_tensor(whole: Path, resumed: Path) -> str:
    """The first tensor of the last checkpoints that differs in a bit; empty if none does."""
    (name, first, _), (second_name, second, _) = (
        newest_valid(run / "checkpoints") for run in (whole, resumed)
    )
    if name != second_name:
        return f"the last checkpoint: {name} of the whole run, {second_name} of the resumed one"
    for key in {**first.tensors, **second.tensors}:
        if first.tensors.get(key) != second.tensors.get(key):
            return f"{key} in {name}"
    return ""


def sentence(verdict: Mapping[str, Any]) -> str:
    """The verdict as a line for the screen."""
    begin = f"resume verified: stopped at step {verdict['step']} and resumed"
    if verdict["same"]:
        return f"{begin}: the same weights, bit for bit, and the same log"
    return f"{begin}: not the same, {verdict['differs']}"


def check_verdict(result: Result) -> None:
    """Raise if the resumed run differs.

    Raises:
        ExpectationError: E602, with what differs first.
    """
    verdict = result.verify_resume
    if verdict is not None and not verdict["same"]:
        raise ExpectationError(
            f"a run that was stopped at step {verdict['step']} and resumed is not the whole run: "
            f"{verdict['differs']}",
            code="E602",
            notes=("something that a step depends on is in no checkpoint", "please report it"),
        )
