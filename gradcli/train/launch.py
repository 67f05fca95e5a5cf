"""Starting and resuming a run: everything that can fail is tried before the first step."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import __version__, engine
from gradcli.data.dataset import beside, without_data
from gradcli.data.hashes import so_far
from gradcli.dataclass import dataclass
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
from gradcli.train.state import all_tensors, nonfinite_weights
from gradcli.train.text_samples import try_sample
from gradcli.wording import listed, quantity

if TYPE_CHECKING:
    from gradcli.engine.distributed.group import Group
    from gradcli.train.checkpoint import Meta
    from gradcli.train.job import Job
    from gradcli.train.report import Reporter
    from gradcli.train.signals import Signals

PACKAGES = ("click", "PyYAML", "cffi", "tqdm", "pydantic", "safetensors", "jinja2")


@dataclass(frozen=True)
class Circumstances:
    """What the manifest says beside the job: how, where and on what the run was started.

    Attributes:
        config_sha256: of the config as it was written, by which `train --continue` knows its runs;
            what the start fills in, and later forks, change nothing in it.
        sets: of checkpoints that will lie on the disk: 2 where the resume is verified.
        sheet: what plan.json says beside names and shapes, asked for when the run has ended.
    """

    argv: Sequence[str]
    device: str
    threads: int
    config_sha256: str
    sets: int = 1
    sheet: Callable[[], Mapping[str, object]] | None = None


def preflight(job: Job) -> None:
    """Try what comes later: length, names of metrics, a sample of text, a batch of each split."""
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
    """Say now what a report would lack at the end: it is no reason not to train."""
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
    judging = [one for one in names_of_run if direction_of(one, job.metrics) != "neither"]
    val = [one for one in judging if one.startswith("val.")]
    during = [(key, name, val) for key, name in choices]
    for key, name, names in [
        *during,
        *(("expect", one.metric, names_of_run) for one in job.expect),
    ]:
        if name is not None and name not in names:
            cure = did_you_mean(name, names, f"known: {listed(names) or 'none'}")
            raise ConfigError(f"{key}: no metric '{name}' in this run; {cure}", code="E124")


def start(
    job: Job,
    runs: Path,
    circumstances: Circumstances,
    reporter: Reporter,
    signals: Signals,
    max_steps: int | None = None,
) -> Result:
    """A new run, from its directory to its test figures."""
    group = distributed.group()
    job = _on_ranks(job, group, max_steps, reporter, new=True)
    _first_weights(job, group, reporter)
    _remark(job, reporter)
    preflight(job)
    _try_report(job, reporter)
    origins, layers = manifest(job, circumstances), plan_file.outline(job)
    with ranks.directory(group, lambda: directories.create(runs, job.name)) as directory:
        try:
            directory.write_json("manifest.json", origins)
            directory.write_json("plan.json", layers)
            value_origins.write(directory, job.origins)
            files = beside(job.dataset.source)
            job = _with_files(job, files, directory.path)
            texts = {**job.code, **dict(files.values())}
            directory.write_config(job.sources, job.resolved, texts)  # now it is a run
            sets = circumstances.sets
            trainer = Trainer(job, directory, reporter, signals, max_steps, sets)
            try:
                return trainer.run()
            finally:
                plan_file.complete(directory, circumstances.sheet, reporter.note)
        finally:
            directory.discard_if_empty()


def _with_files(job: Job, files: Mapping[str, tuple[str, str]], run: Path) -> Job:
    """The job whose data has files beside its config from now on, such as a tokenizer."""
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

    These keys may have other values in the job than before: that is a fork. A run that never had a
    checkpoint goes on from step 0.
    """
    group = distributed.group()
    job = _on_ranks(job, group, max_steps, reporter, new=False)
    if ranks.of_first(group, lambda: directories.is_unsaved(directory.path)):
        return _begin_again(job, directory, reporter, signals, keys, allow_data_change, max_steps)
    _remark(job, reporter)
    preflight(job)
    name, found, notes = ranks.recover(group, directory)
    length = total_steps(job.settings, job.dataset.splits["train"].size)
    if found.meta.step > length:
        raise ConfigError(
            f"the training would end at step {length}, and the run is at step {found.meta.step}",
            code="E125",
            notes=("set train.epochs or train.steps to more than that",),
        )
    source = str(directory.checkpoints / name)
    path, before = directory.path, of_run(directory.path)
    forks = with_changes(before, found.meta.step, _changes_of(found.meta, job, before, keys))
    notes += check_same(found.meta, job, source, forks, allow_data_change=allow_data_change)
    notes += changes(found.meta.origin, job)
    job = job.as_fitted(found.meta.facts, source)
    trainer = Trainer(job, directory, reporter, signals, max_steps)
    try:
        trainer.restore(found, source)
    except CheckpointError as error:
        error.notes += (_OF_THE_WEIGHTS,) if keys else ()
        raise
    notes += _nonfinite(job, name, allow_nonfinite)
    group.barrier("the start")  # all have read what rank 0 may write anew
    if forks != before:
        notes += [str(fork) for fork in forks if fork not in before]
        directory.write_fork(found.meta.step, manifest_with(path, forks))
    value_origins.renew(directory, job.origins)
    directory.write_config([], _config_from_here(job, keys))
    for note in notes:
        reporter.note(note)
    return trainer.run()


def _on_ranks(
    job: Job, group: Group, max_steps: int | None, reporter: Reporter, *, new: bool
) -> Job:
    """The job that all ranks are about to make; of a new run, with batches cut for them."""
    if group.size == 1:
        return job
    from gradcli.train.agreement import agree_at_start  # whoever is alone does not wait for them
    from gradcli.train.division import check_parts, divide_batches

    agree_at_start(group, job, {"--max-steps": max_steps})
    if new:
        return divide_batches(job, group.size, reporter.note)
    check_parts(job, group.size, reporter.note)
    return job


def _begin_again(
    job: Job,
    directory: RunDirectory,
    reporter: Reporter,
    signals: Signals,
    keys: Collection[str],
    allow_data_change: bool,
    max_steps: int | None,
) -> Result:
    """Begin a run that was killed before its first checkpoint, as it began then.

    New values at these keys are no fork, for no step was made with the old ones.
    """
    path = directory.path
    group = distributed.group()
    changed = _changed_data(job, path, allow_data_change)
    _first_weights(job, group, reporter)
    _remark(job, reporter)
    preflight(job)
    notes = [f"{path} has no checkpoint yet: it goes on from step 0", *changed]
    group.barrier("the start")  # all have read what rank 0 may write anew
    notes += directory.recover_start()
    value_origins.renew(directory, job.origins)
    directory.write_config([], _config_from_here(job, keys))
    for note in notes:
        reporter.note(note)
    return Trainer(job, directory, reporter, signals, max_steps).run()


def _first_weights(job: Job, group: Group, reporter: Reporter) -> None:
    """The weights that a run begins with, those of rank 0: it alone needs what they come from."""
    if job.begin is not None:
        reporter.note(ranks.of_first(group, job.begin))
    ranks.take_from_first(group, all_tensors(job.model, job.optimizer).values())


def _changed_data(job: Job, path: Path, allowed: bool) -> list[str]:
    """Raise if the data is not that of the manifest, where it says what that is."""
    data = directories.read_manifest(path).get("data")
    if not isinstance(data, dict):
        return []
    return check_same_data(
        data, format_of(path), job.dataset, allowed, since="the start of the run"
    )


def _config_from_here(job: Job, keys: Collection[str]) -> dict[str, Any]:
    """resolved.yaml as the run goes on: what it said, with the job's values of these keys.

    A run of an older version stays without the keys that it did not know, as its checkpoints are.
    """
    stated = job.stated or job.resolved
    return with_forks(stated, [Fork(0, sorted(keys), {}, values_at(job.resolved, keys))])


_OF_THE_WEIGHTS = (
    "a fork keeps what the optimizer remembers; train --from takes the weights of a run alone"
)


def _changes_of(meta: Meta, job: Job, forks: Sequence[Fork], keys: Collection[str]) -> Fork:
    """What the job has at some keys, and what the run had there."""
    old, new = (values_at(one, keys) for one in (config_of(meta, forks), job.resolved))
    return Fork(meta.step, sorted(keys), old, new)


def _remark(job: Job, reporter: Reporter) -> None:
    text = precision.remark(job)
    if text:
        reporter.note(text)


def _nonfinite(job: Job, name: str, allowed: bool) -> list[str]:
    """A warning for each weight that holds NaN or infinity; an error unless that is allowed."""
    faults = [
        f"weight {weight} of {name} holds {quantity(count, 'non-finite value')}"
        for weight, count in nonfinite_weights(job.model).items()
    ]
    if faults and not allowed:
        raise NumericsError(
            f"{faults[0]}: training cannot go on from it",
            notes=(
                *faults[1:],
                "remove this checkpoint to go on from an older one, or begin a new run with that: "
                "gradcli train CONFIG --from RUN@STEP",
                "or resume with --allow-nonfinite to go on regardless",
            ),
        )
    return [f"warning: {one}" for one in faults]


def finished(path: Path, job: Job) -> Result | None:
    """The result of a run that has nothing left to do for this job, else None.

    One whose last checkpoint is damaged or gone has to make it again. On ranks other than 0 the
    result has the figures alone, of which something may be expected.
    """
    group = distributed.group()
    result = _finished(path, job) if group.rank == 0 else None
    figures = ranks.of_first(group, lambda: None if result is None else dict(result.metrics))
    if result is None and figures is not None:
        return Result(str(path), "finished", 0, 0.0, figures)
    return result


def _finished(path: Path, job: Job) -> Result | None:
    status = _written_end(path)
    length = total_steps(job.settings, job.dataset.splits["train"].size)
    if status is None or status["steps"] != length:
        return None
    try:
        _, found, _ = newest_valid(path / "checkpoints")
    except CheckpointError:
        return None
    stop = job.settings.early_stop
    ended = found.meta.step == length or (stop and found.meta.stale >= stop.patience)
    if not ended or found.meta.step != status["step"]:
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
        skipped=status["skipped"],
    )


def _written_end(path: Path) -> dict[str, Any] | None:
    """What status.json says of a finished run; None where it says anything else, or nothing usable.

    Those of older versions lack some keys.
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


def manifest(job: Job, circumstances: Circumstances) -> dict[str, Any]:
    """How this run came about, as far as it can be known."""
    return {
        "format": FORMAT,
        "name": job.name,
        "argv": list(circumstances.argv),
        "config_sha256": circumstances.config_sha256,
        "created": datetime.now().astimezone().isoformat(timespec="seconds"),
        "host": platform.node(),
        "versions": versions(),
        "origin": origin_of(job),
        "git": git_folder.head(Path()),
        "device": circumstances.device,
        "threads": circumstances.threads,
        "seed": job.settings.seed,
        "data": so_far(job.dataset.sha256),
        "files": dict(job.dataset.files),
    }


def versions() -> dict[str, str]:
    """gradcli, Python, the system and the packages in use."""
    own = {"gradcli": __version__, "python": platform.python_version()}
    own["platform"] = f"{sys.platform} {platform.machine()}"
    return own | {package: version(package) or "absent" for package in PACKAGES}
