"""Whole runs on ranks of threads: what they write, say and end in is what one rank does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rank_threads import ThreadGroup, on_ranks
from tiny import HERE, Silent, TinyData, TinySplit, only_run, records, tiny_job

from gradcli import engine
from gradcli.data import DataSpec
from gradcli.engine import distributed, nn, optim
from gradcli.engine.distributed import ALONE, exact
from gradcli.errors import NumericsError
from gradcli.train import launch, ranks
from gradcli.train.close_look import CloseLook
from gradcli.train.directory import RunDirectory
from gradcli.train.elsewhere import DirectoryElsewhere
from gradcli.train.job import EarlyStop, Job
from gradcli.train.order import epoch_order

Together = Callable[..., list[Any]]


class Notes(Silent):
    """Keeps what is said to people."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Together:
    """Each rank's answer to a task, with its group where a process has its own."""
    here = threading.local()
    monkeypatch.setattr(distributed, "group", lambda: getattr(here, "group", ALONE))

    def run(size: int, task: Callable[[], Any]) -> list[Any]:
        def one(group: ThreadGroup) -> Any:
            here.group = group
            return task()

        return on_ranks(size, one, timeout=20) if size > 1 else [task()]

    return run


def job_of(**settings: Any) -> Job:
    """Without dropout, for all threads share one generator; the points are read by Python."""
    job = tiny_job(settings={"epochs": 2, "capture": False, "timeout": 20, **settings})
    job.model[1].p = 0.0
    return job


def trained(runs: Path, job: Job | None = None, notes: Notes | None = None, **more: Any) -> Any:
    signals: Any = SimpleNamespace(first=None)
    group = distributed.group()
    reporter = ranks.reporter(group, notes or Notes())
    return launch.start(job or job_of(), runs, HERE, reporter, signals, **more)


def gone_on(run: Path, job: Job) -> Any:
    signals: Any = SimpleNamespace(first=None)
    group = distributed.group()
    with ranks.directory(group, lambda: RunDirectory(run)) as directory:
        return launch.resume(job, directory, ranks.reporter(group, Notes()), signals)


def test_the_line_of_the_parts_repeats_the_run_on_one_rank(
    tmp_path: Path, together: Together
) -> None:
    """And resolved.yaml keeps them, on whatever number of ranks the run goes on."""
    jobs, notes = iter([job_of() for _ in range(8)]), Notes()
    half = together(3, lambda: trained(tmp_path, next(jobs), notes, max_steps=5))
    assert len({one.weights_sha256 for one in half}) == 1
    [line] = [one for one in notes.lines if "-s train.micro_batch=" in one]
    portion = line.rpartition("-s train.micro_batch=")[2]
    assert line == (
        "3 ranks, a part of the batch each: one rank gives the same bits with "
        f"-s train.micro_batch={portion}"
    )
    run = only_run(tmp_path)
    assert train_section(run)["micro_batch"] == int(portion) == 3
    alone = trained(tmp_path / "alone", job_of(micro_batch=int(portion)))
    jobs = iter([job_of(micro_batch=3) for _ in range(2)])
    for one in together(2, lambda: gone_on(run, next(jobs))):
        assert one.weights_sha256 == alone.weights_sha256
    assert train_section(run)["micro_batch"] == 3
    other = trained(tmp_path / "other", job_of(micro_batch=4))
    assert other.weights_sha256 != alone.weights_sha256


def test_a_rank_may_replay_steps_that_another_cannot(tmp_path: Path, together: Together) -> None:
    """The points are read by Python; of the last batch of an epoch rank 1 has none to read."""
    jobs = iter([job_of(epochs=4, micro_batch=4, capture=True) for _ in range(2)])
    alone = trained(tmp_path / "alone", job_of(epochs=4, micro_batch=4))
    for one in together(2, lambda: trained(tmp_path, next(jobs))):
        assert one.weights_sha256 == alone.weights_sha256


@pytest.mark.parametrize("last", ["val", "test"])
def test_ranks_evaluate_as_often_as_each_other(
    tmp_path: Path, together: Together, last: str
) -> None:
    """Where the last evaluation is known to be the last, and where not; rank 0 looks closely."""
    facts = DataSpec((2,), "float", (), 2, None, ("no", "yes"), {"train": 42})
    early = EarlyStop("val.loss", patience=1, min_delta=1e9)

    def job(**settings: Any) -> Job:
        splits = {"train": TinySplit(42, 1), "val": TinySplit(20, 2), last: TinySplit(20, 3)}
        return replace(job_of(micro_batch=3, **settings), dataset=TinyData(splits, facts=facts))

    for name, settings in (("end", {}), ("early", {"early_stop": early, "epochs": 4})):
        jobs = iter([job(**settings) for _ in range(2)])
        alone = Path(trained(tmp_path / f"{name}-alone", job(**settings)).run)
        for one in together(2, lambda: trained(tmp_path / name, next(jobs))):  # noqa: B023
            assert one.status == "finished"
        run = only_run(tmp_path / name)
        for file in ("evaluation.json", "evaluation.safetensors"):
            assert (run / file).read_bytes() == (alone / file).read_bytes()


def fault_of_one_batch(look: CloseLook, answers: Any, targets: Any) -> Any:
    """On whichever rank has the last, smaller batch: no capture, so that it is asked each time."""
    if answers.shape[0] == 4:
        raise ValueError("planted")
    return REAL_LOOK(look, answers, targets)


def fault_of_rank_0(look: CloseLook, first: int, each: Any) -> None:
    if distributed.rank() == 0:
        raise ValueError("planted")


def fault_at_the_end(look: CloseLook) -> None:
    raise ValueError("planted")


REAL_LOOK = CloseLook.of_batch
FAULTS = {"of_batch": fault_of_one_batch, "take": fault_of_rank_0, "finish": fault_at_the_end}


@pytest.mark.parametrize("method", FAULTS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_fault_of_the_close_look_costs_no_training(
    tmp_path: Path,
    together: Together,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    size: int,
) -> None:
    """No rank ends, and none waits: the figures are those of a run in which nothing failed."""
    facts = DataSpec((2,), "float", (), 2, None, ("no", "yes"), {"train": 42})

    def job() -> Job:
        splits = {"train": TinySplit(42, 1), "val": TinySplit(20, 2), "test": TinySplit(20, 3)}
        return replace(job_of(micro_batch=3), dataset=TinyData(splits, facts=facts))

    expected = trained(tmp_path / "right", job())
    monkeypatch.setattr(CloseLook, method, FAULTS[method])
    monkeypatch.setattr(launch, "obstacle", lambda job: "")
    jobs, notes = iter([job() for _ in range(size)]), Notes()
    for one in together(size, lambda: trained(tmp_path / "runs", next(jobs), notes)):
        assert one.metrics == expected.metrics and one.status == "finished"
    assert [line for line in notes.lines if line.startswith("warning")] == [
        "warning: a report will lack what the last evaluation saw: ValueError: planted"
    ]
    assert not (only_run(tmp_path / "runs") / "evaluation.json").exists()


def train_section(run: Path) -> dict[str, Any]:
    section: dict[str, Any] = yaml.safe_load((run / "resolved.yaml").read_text())["train"]
    return section


# -- planted -------------------------------------------------------------------------------------


def no_sum(calls: Calls) -> None:
    """A rank has its own part alone."""
    exact_run([("copy", (sources[0], out)) for _, (*sources, out) in calls])


def summed_twice(calls: Calls) -> None:
    exact_run(calls)
    exact_run([(kernel, (out, *sources[1:], out)) for kernel, (*sources, out) in calls])


def a_copy_summed(calls: Calls) -> None:
    exact_run([(kernel, (*arrays[:-1], arrays[-1].copy())) for kernel, arrays in calls])


def bytes_summed(calls: Calls) -> None:
    """What an MPI adds that is not told the type of the elements."""
    for _, (*sources, out) in calls:
        columns = zip(*(source.contiguous().memoryview() for source in sources), strict=True)
        out.memoryview()[:] = bytes(sum(column) % 256 for column in columns)


Calls = list[tuple[str, tuple[Any, ...]]]
exact_run = exact._run


@pytest.mark.parametrize("fault", [None, no_sum, summed_twice, a_copy_summed, bytes_summed])
def test_a_fault_of_the_sum_shows_in_the_weights(
    fault: Callable[[Calls], None] | None,
    tmp_path: Path,
    together: Together,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = trained(tmp_path / "alone", job_of(micro_batch=4), max_steps=3)
    if fault is not None:
        monkeypatch.setattr(exact, "_run", fault)
    jobs = iter([job_of(micro_batch=4) for _ in range(2)])

    def task() -> str:
        try:
            return str(trained(tmp_path, next(jobs), max_steps=3).weights_sha256)
        except NumericsError as error:
            return str(error.code)

    same = [one == alone.weights_sha256 for one in together(2, task)]
    assert same == [fault is None] * 2


def directories_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "directory", lambda group, make: make())


def lines_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def log(self: DirectoryElsewhere, record: dict[str, object]) -> None:
        with (self.path / "log.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    monkeypatch.setattr(DirectoryElsewhere, "log", log)


@pytest.mark.parametrize("fault", [None, directories_of_all, lines_of_all])
def test_rank_0_alone_writes(
    fault: Callable[[pytest.MonkeyPatch], None] | None,
    tmp_path: Path,
    together: Together,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if fault is not None:
        fault(monkeypatch)
    jobs = iter([job_of(micro_batch=4) for _ in range(2)])
    together(2, lambda: trained(tmp_path, next(jobs), max_steps=4))
    runs = list((tmp_path / "tiny").iterdir())
    steps = [one["step"] for run in runs for one in records(run) if one["event"] == "step"]
    assert ((len(runs), sorted(steps)) == (1, [1, 2, 3, 4])) == (fault is None)


# -- steps that are not finite -------------------------------------------------------------------


class Root(nn.Module):
    """sqrt(|x w|), whose gradient is NaN where x is 0."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(engine.ones(2))

    def forward(self, x: Any) -> Any:
        return (x * self.weight).abs().sqrt()


class Zero(TinySplit):
    """The sample `poison` is 0."""

    def batch(self, indices: Any) -> tuple[Any, Any]:
        inputs, labels = TinySplit(self.size, self.seed).batch(indices)
        rows = [i for i, index in enumerate(indices.tolist()) if index == self.poison]
        for row in rows:
            inputs[row] = 0.0
        return inputs, labels


def spoilt() -> Job:
    """A job whose gradients are NaN in step 4, which shows in the loss of step 5."""
    poison = int(epoch_order(5, 0, 42)[3 * 8 + 6].item())
    splits = {"train": Zero(42, 1, poison=poison)}

    def fresh() -> Job:
        engine.manual_seed(5)
        model = nn.Sequential(Root(), nn.Linear(2, 2))
        job = job_of(micro_batch=4, checkpoint_every=2)
        optimizer = optim.Adam(model.parameters(), lr=0.05)
        return replace(job, model=model, optimizer=optimizer, dataset=TinyData(dict(splits)))

    return replace(fresh(), fresh=fresh)


@pytest.mark.parametrize("saved", [True, False])
def test_gradients_that_nobody_looked_at_are_found_on_ranks_too(
    saved: bool, tmp_path: Path, together: Together
) -> None:
    def task(runs: Path, job: Job, notes: Notes) -> tuple[str, tuple[str, ...], bool]:
        if not saved:
            job = replace(job, settings=replace(job.settings, checkpoint_every=1000))
        with pytest.raises(NumericsError) as caught:
            trained(runs, job, notes)
        error = caught.value
        return error.message, error.notes, error.on_all_ranks

    alone, notes = Notes(), Notes()
    expected = task(tmp_path / "alone", spoilt(), alone)
    assert "the gradient norm of step 4 is nan" in expected[0]
    assert f"making the steps behind {2 if saved else 0} again" in " ".join(alone.lines)
    jobs = iter([spoilt() for _ in range(2)])
    assert together(2, lambda: task(tmp_path, next(jobs), notes)) == [expected] * 2
    assert [one for one in notes.lines if "again" in one] == alone.lines
