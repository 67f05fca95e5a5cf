"""Start and resume runs; everything that can fail is tried before the first step."""

from __future__ import annotations

import platform
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import __version__, engine
from gradcli.data.dataset import beside, without_data
from gradcli.data.hashes import so_far
from gradcli.engine import distributed
from gradcli.errors import CheckpointError, ConfigError, NumericsError, RangeError
from gradcli.packages import version
from gradcli.registry import did_you_mean
from gradcli.train import directory as directories
from gradcli.train import git_folder, plan_file, precision, ranks, value_origins
from gradcli.train.baseline import read_baseline
from gradcli.train.checkpoint import FORMAT, newest_valid
from gradcli.train.compare import check_same, check_same_data, config_of
from gradcli.train.data_watch import look_at
from gradcli.train.directory import RunDirectory
from gradcli.train.evaluate import Evaluation, metric_names
from gradcli.train.evaluation_files import obstacle
from gradcli.train.forks import Fork, manifest_with, of_run, values_at, with_changes, with_forks
from gradcli.train.job import steps_per_epoch, total_steps
from gradcli.train.loop import Trainer
from gradcli.train.metrics import direction_of
from gradcli.train.old_runs import format_of
from gradcli.train.origin import changes, origin_of
from gradcli.train.report import Result
from gradcli.train.run_context import RunContext
from gradcli.train.state import all_tensors, nonfinite_weights
from gradcli.train.text_samples import try_sample
from gradcli.wording import join_words, quantity

if TYPE_CHECKING:
    from gradcli.engine.distributed.group import Group
    from gradcli.train.checkpoint import CheckpointMeta
    from gradcli.train.job import Job
    from gradcli.train.report import Reporter
    from gradcli.train.signals import Signals

PACKAGES = ("click", "PyYAML", "cffi", "tqdm", "pydantic", "safetensors", "jinja2")


def preflight(job: Job) -> None:
    """Try what comes later: length, metric names, a text sample, a batch of each split."""
    steps_per_epoch(job.settings, job.dataset.splits["train"].size)
    _check_metric_names(job)
    try_sample(job)
    for name, split in job.dataset.splits.items():
        try:
            Evaluation(job, split, name).run(limit=job.settings.batch)
        except RangeError:
            look_at(split, engine.arange(min(job.settings.batch, split.size)))
            raise


def _try_report(job: Job, reporter: Reporter) -> None:
    """Warn if a report would be incomplete at the end; that is no reason not to train."""
    text = obstacle(job)
    if text:
        reporter.note(f"warning: a report will lack what the last evaluation sees: {text}")


def _check_metric_names(job: Job) -> None:
    names_of_run = metric_names(job)
    stop = job.settings.early_stop
    choices = [
        ("train.best", job.settings.best),
        ("train.early_stop", stop.metric if stop else None),
    ]
    judging = [name for name in names_of_run if direction_of(name, job.metrics) != "neither"]
    val = [name for name in judging if name.startswith("val.")]
    during = [(key, name, val) for key, name in choices]
    for key, name, names in [
        *during,
        *(("expect", expectation.metric, names_of_run) for expectation in job.expect),
    ]:
        if name is not None and name not in names:
            cure = did_you_mean(name, names, f"known: {join_words(names) or 'none'}")
            raise ConfigError(f"{key}: no metric '{name}' in this run; {cure}", code="E124")


def start(
    job: Job,
    runs: Path,
    context: RunContext,
    reporter: Reporter,
    signals: Signals,
    max_steps: int | None = None,
) -> Result:
    """Start a new run and train it to its end."""
    group = distributed.group()
    job = _on_ranks(job, group, max_steps, reporter, new=True)
    _first_weights(job, group, reporter)
    _note_precision(job, reporter)
    preflight(job)
    _try_report(job, reporter)
    origins, layers = manifest(job, context), plan_file.outline(job)
    with ranks.directory(group, lambda: directories.create(runs, job.name)) as directory:
        try:
            directory.write_json("manifest.json", origins)
            directory.write_json("plan.json", layers)
            value_origins.write(directory, job.origins)
            files = beside(job.dataset.source)
            job = _with_files(job, files, directory.path)
            texts = {**job.code, **dict(files.values())}
            directory.write_config(job.sources, job.resolved, texts)  # now it is a run
            sets = context.sets
            trainer = Trainer(job, directory, reporter, signals, max_steps, sets)
            try:
                return trainer.run()
            finally:
                plan_file.complete(directory, context.sheet, reporter.note)
        finally:
            directory.discard_if_empty()


def _with_files(job: Job, files: Mapping[str, tuple[str, str]], run: Path) -> Job:
    """The job with its data's files, such as a tokenizer, read from the run's directory."""
    if not files:
        return job
    names = {key: name for key, (name, _) in files.items()}
    resolved = {**job.resolved, "data": {**job.resolved["data"], **names}}
    source = without_data(replace(job.dataset.source, **names), run)  # type: ignore[type-var]
    return replace(job, resolved=resolved, dataset=replace(job.dataset, source=source))


def resume(
    job: Job,
    directory: RunDirectory,
    reporter: Reporter,
    signals: Signals,
    *,
    keys: Collection[str] = (),
    allow_data_change: bool = False,
    allow_nonfinite: bool = False,
    max_steps: int | None = None,
) -> Result:
    """Go on from the newest valid checkpoint, exactly as if the run had never stopped.

    If the job has new values at these keys, that is a fork. A run without a checkpoint begins again
    at step 0.
    """
    group = distributed.group()
    job = _on_ranks(job, group, max_steps, reporter, new=False)
    if ranks.of_first(group, lambda: directories.is_unsaved(directory.path)):
        return _restart(job, directory, reporter, signals, keys, allow_data_change, max_steps)
    _note_precision(job, reporter)
    preflight(job)
    name, checkpoint, notes = ranks.recover(group, directory)
    length = total_steps(job.settings, job.dataset.splits["train"].size)
    meta = checkpoint.meta
    if meta.step > length:
        raise ConfigError(
            f"the training would end at step {length}, and the run is at step {meta.step}",
            code="E125",
            notes=("set train.epochs or train.steps to more than that",),
        )
    source = str(directory.checkpoints / name)
    path, before = directory.path, of_run(directory.path)
    forks = with_changes(before, meta.step, _changes_of(meta, job, before, keys))
    notes += check_same(meta, job, source, forks, allow_data_change=allow_data_change)
    notes += changes(meta.origin, job)
    job = job.as_fitted(meta.facts, source)
    trainer = Trainer(job, directory, reporter, signals, max_steps)
    try:
        trainer.restore(checkpoint, source)
    except CheckpointError as error:
        error.notes += (_OF_THE_WEIGHTS,) if keys else ()
        raise
    notes += _check_weights(job, name, allow_nonfinite)
    group.barrier("the start")  # all have read what rank 0 may write anew
    if forks != before:
        notes += [str(fork) for fork in forks if fork not in before]
        directory.write_fork(meta.step, manifest_with(path, forks))
    value_origins.renew(directory, job.origins)
    directory.write_config([], _config_from_here(job, keys))
    for note in notes:
        reporter.note(note)
    return trainer.run()


def _on_ranks(
    job: Job, group: Group, max_steps: int | None, reporter: Reporter, *, new: bool
) -> Job:
    """Check that all ranks have the same job; divide a new run's batches among them."""
    if group.size == 1:
        return job
    from gradcli.train.agreement import agree_at_start  # not needed by one rank
    from gradcli.train.division import check_parts, divide_batches

    agree_at_start(group, job, {"--max-steps": max_steps})
    if new:
        return divide_batches(job, group.size, reporter.note)
    check_parts(job, group.size, reporter.note)
    return job


def _restart(
    job: Job,
    directory: RunDirectory,
    reporter: Reporter,
    signals: Signals,
    keys: Collection[str],
    allow_data_change: bool,
    max_steps: int | None,
) -> Result:
    """Begin a run again that was killed before its first checkpoint.

    New values at these keys are no fork, since there was no step with the old ones.
    """
    path = directory.path
    group = distributed.group()
    data_notes = _check_data(job, path, allow_data_change)
    _first_weights(job, group, reporter)
    _note_precision(job, reporter)
    preflight(job)
    notes = [f"{path} has no checkpoint yet: it goes on from step 0", *data_notes]
    group.barrier("the start")  # all have read what rank 0 may write anew
    notes += directory.recover_start()
    value_origins.renew(directory, job.origins)
    directory.write_config([], _config_from_here(job, keys))
    for note in notes:
        reporter.note(note)
    return Trainer(job, directory, reporter, signals, max_steps).run()


def _first_weights(job: Job, group: Group, reporter: Reporter) -> None:
    """Give all ranks the first weights of rank 0; only rank 0 needs the files they come from."""
    if job.begin is not None:
        reporter.note(ranks.of_first(group, job.begin))
    ranks.take_from_first(group, all_tensors(job.model, job.optimizer).values())


def _check_data(job: Job, path: Path, allow_change: bool) -> list[str]:
    """Raise if the data differs from that of the manifest."""
    data = directories.read_manifest(path).get("data")
    if not isinstance(data, dict):
        return []
    return check_same_data(
        data, format_of(path), job.dataset, allow_change, since="the start of the run"
    )


def _config_from_here(job: Job, keys: Collection[str]) -> dict[str, Any]:
    """resolved.yaml from here on: the old one, with the job's values at these keys.

    Like its checkpoints, the config of a run of an older version keeps lacking newer keys.
    """
    config = job.explicit or job.resolved
    return with_forks(config, [Fork(0, sorted(keys), {}, values_at(job.resolved, keys))])


_OF_THE_WEIGHTS = (
    "a fork keeps what the optimizer remembers; train --from takes the weights of a run alone"
)


def _changes_of(
    meta: CheckpointMeta, job: Job, forks: Sequence[Fork], keys: Collection[str]
) -> Fork:
    """The fork from the run's values at some keys to the job's."""
    old, new = (values_at(config, keys) for config in (config_of(meta, forks), job.resolved))
    return Fork(meta.step, sorted(keys), old, new)


def _note_precision(job: Job, reporter: Reporter) -> None:
    text = precision.note(job)
    if text:
        reporter.note(text)


def _check_weights(job: Job, name: str, allow: bool) -> list[str]:
    """Raise if a weight holds NaN or infinity; with `allow`, return warnings instead."""
    faults = [
        f"weight {weight} of {name} holds {quantity(count, 'non-finite value')}"
        for weight, count in nonfinite_weights(job.model).items()
    ]
    if faults and not allow:
        raise NumericsError(
            f"{faults[0]}: training cannot go on from it",
            notes=(
                *faults[1:],
                "remove this checkpoint to go on from an older one, or begin a new run with that: "
                "gradcli train CONFIG --from RUN@STEP",
                "or resume with --allow-nonfinite to go on regardless",
            ),
        )
    return [f"warning: {fault}" for fault in faults]


def find_result(path: Path, job: Job) -> Result | None:
    """The result of a run that is complete for this job, else None.

    A run is not complete if its last checkpoint is damaged or missing. On ranks other than 0 the
    result has only the figures, which `expect:` needs.
    """
    group = distributed.group()
    result = _read_result(path, job) if group.rank == 0 else None
    figures = ranks.of_first(group, lambda: None if result is None else dict(result.metrics))
    if result is None and figures is not None:
        return Result(str(path), "finished", 0, 0.0, figures)
    return result


def _read_result(path: Path, job: Job) -> Result | None:
    status = _read_final_status(path)
    length = total_steps(job.settings, job.dataset.splits["train"].size)
    if status is None or status["steps"] != length:
        return None
    try:
        _, checkpoint, _ = newest_valid(path / "checkpoints")
    except CheckpointError:
        return None
    stop = job.settings.early_stop
    complete = checkpoint.meta.step == length or (stop and checkpoint.meta.stale >= stop.patience)
    if not complete or checkpoint.meta.step != status["step"]:
        return None
    metrics = status["metrics"].items()
    return Result(
        run=str(path),
        status="finished",
        steps=status["step"],
        seconds=status["seconds"],
        metrics={name: value for name, value in metrics if type(value) is float},
        weights_sha256=status["weights_sha256"],
        measured_step=status["measured_step"],
        baseline=read_baseline(status.get("baseline")),
        absent=job.absent,
        skipped_steps=status["skipped"],
    )


def _read_final_status(path: Path) -> dict[str, Any] | None:
    """status.json of a finished run; None if the run is not finished or the file is unusable.

    Older versions lack some keys.
    """
    status = directories.read_status(path)
    optional = {"metrics": {}, "weights_sha256": "", "skipped": 0}
    status = {**optional, "measured_step": status.get("step"), **status}
    types = {
        **dict.fromkeys(("step", "steps", "measured_step", "skipped"), int),
        "seconds": float,
        "metrics": dict,
        "weights_sha256": str,
    }
    usable = all(type(status.get(key)) is kind for key, kind in types.items())
    return status if usable and status.get("status") == "finished" else None


def manifest(job: Job, context: RunContext) -> dict[str, Any]:
    """manifest.json of a new run: how it was started, on what machine and data."""
    return {
        "format": FORMAT,
        "name": job.name,
        "argv": list(context.argv),
        "config_sha256": context.config_sha256,
        "created": datetime.now().astimezone().isoformat(timespec="seconds"),
        "host": platform.node(),
        "versions": versions(),
        "origin": origin_of(job),
        "git": git_folder.head(Path()),
        "device": context.device,
        "threads": context.threads,
        "seed": job.settings.seed,
        "data": so_far(job.dataset.sha256),
        "files": dict(job.dataset.files),
    }


def versions() -> dict[str, str]:
    """gradcli, Python, the system and the packages in use."""
    own = {"gradcli": __version__, "python": platform.python_version()}
    own["platform"] = f"{sys.platform} {platform.machine()}"
    return own | {package: version(package) or "absent" for package in PACKAGES}
