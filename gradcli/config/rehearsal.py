"""A run rehearsed: the memory of its training, of its evaluation and of prediction, to the byte.

The steps are those of `train` itself, on the meta device: nothing is computed, no data is read, and
each block of memory is counted in the order in which the run takes and leaves it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, field
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.config.build import job_of
from gradcli.config.memory import on_ranks, placed
from gradcli.config.room import PROCESS
from gradcli.data import LoadedData, Split
from gradcli.data.facts import DataFacts, TargetFacts
from gradcli.data.targets import ScaledTargets
from gradcli.dataclass import dataclass
from gradcli.engine import distributed
from gradcli.engine.device import cpu, meta
from gradcli.engine.device.peak import Peak
from gradcli.engine.distributed import ALONE
from gradcli.engine.program.rehearsal import Rehearsed
from gradcli.train.baseline import baseline_of
from gradcli.train.evaluate import Evaluation
from gradcli.train.evaluation_files import stored_tensors
from gradcli.train.job import logged_every, steps_per_epoch, total_steps
from gradcli.train.measuring import Measuring
from gradcli.train.order import Order, next_due
from gradcli.train.predict import Predictor
from gradcli.train.step import TrainingStep

if TYPE_CHECKING:
    from gradcli.config.load import Config
    from gradcli.engine.distributed import Group
    from gradcli.train.job import Job

ROUNDS = 3  # of what a run repeats: seen once, learnt, replayed


@dataclass(frozen=True)
class Usage:
    """The most bytes that tensors hold at once.

    Attributes:
        learning: while the step is learnt: its first two runs are eager.
        then: from then on; the same where nothing is replayed.
        copies: bytes of Python's beside `learning`, by which the program proves itself.
    """

    learning: int
    then: int
    copies: int = field(default=0, compare=False)

    @property
    def most(self) -> int:
        """The larger of both, with the copies."""
        return max(self.learning + self.copies, self.then)


@dataclass(frozen=True)
class RunMemory:
    """The memory of what is done with a config.

    Attributes:
        train: a whole training, with its evaluations.
        eval: `gradcli eval` of its run on the test split, or on the one there is; None without any.
        predict: `gradcli predict` on samples of one batch after the other.
        fallback_reason: why the steps run eagerly, where they do; empty where they are captured.
        mapped: bytes of data files that are looked at where they lie, and of data that stays on
            the host while a GPU computes; they take none of that memory.
    """

    train: Usage
    eval: Usage | None
    predict: Usage
    fallback_reason: str = ""
    mapped: int = 0

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        uses = {"train": self.train, "eval": self.eval, "predict": self.predict}
        memory = {name: None if usage is None else asdict(usage) for name, usage in uses.items()}
        return {**memory, "process": PROCESS, "mapped": self.mapped}


class Tally:
    """The most bytes in use until the first replay, and from then on; on a GPU no thread's own."""

    def __init__(self, device: str = "cpu") -> None:
        self._peak = Peak()
        threads = cpu.threads() if device == "cpu" else 0
        self.beside = partial(Rehearsed, threads=threads)  # what is captured beside what is learnt
        self._learning: int | None = None
        self._copies = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count inside the block."""
        with self._peak:
            yield
            self._peak.look()

    def forget(self) -> None:
        """What was in use until now did not count."""
        self._peak.restart()

    def begin(self) -> None:
        """A replay begins."""
        if self._learning is None:
            self._learning = self._peak.restart()

    def copying(self, nbytes: int) -> None:
        """A program proves itself."""
        if self._learning is None:
            self._copies = max(self._copies, nbytes)

    @property
    def capture(self) -> Callable[..., Rehearsed]:
        """What stands in for `engine.capture` where it is what is learnt."""
        return partial(self.beside, on_replay=self.begin, copying=self.copying)

    @property
    def usage(self) -> Usage:
        """Both."""
        most = self._peak.most
        return Usage(most if self._learning is None else self._learning, most, self._copies)


class Course:
    """What happens in a training, each thing as often as it takes until nothing is new.

    Its steps are those of the loop: the first, a stretch up to what is due, the smaller batch at an
    epoch's end, the evaluations between them, and the last figures.
    """

    def __init__(self, job: Job, group: Group, tally: Tally) -> None:
        self._job, self._group, self._capture = job, group, tally.beside
        self._splits = job.dataset.splits
        size, settings = self._splits["train"].size, job.settings
        self._per_epoch = steps_per_epoch(settings, size)
        self._total = total_steps(settings, size)
        self._every = settings.eval_every or self._per_epoch
        self._logged = logged_every(settings, self._total)
        self._order = Order(settings.seed, settings.batch, size, self._per_epoch)
        # What asks for pages of mapped samples has an order of its own: train/pages.py.
        self._pages = Order(settings.seed, settings.batch, size, self._per_epoch)
        self._asks = _lies_in_files(self._splits["train"])
        self.notes: list[str] = []
        self._try()
        train = self._splits["train"]
        self._step = TrainingStep(job, train, self.notes.append, group, tally.capture)
        with engine.device("meta"):
            self._measuring = Measuring(job, self._step.average, lambda: False, self._capture)

    def run(self) -> None:
        """Steps and evaluations up to the end."""
        step = 0
        for stop in self._stops():
            step = self._advance(step, stop)
            if "val" in self._splits and (stop % self._every == 0 or stop == self._total):
                self._evaluate("val", last=stop == self._total)
        if "test" in self._splits:
            self._evaluate("test", last=True)
        if self._measuring.sight is not None:
            stored_tensors(self._job, self._measuring.sight)
        with engine.device("meta"), suppress(ArithmeticError):
            figures = {f"{name}.loss": 0.0 for name in ("val", "test")}
            baseline_of(self._job, figures, self._splits, self._capture)

    def _try(self) -> None:
        """A batch of each split, as before the first step."""
        with engine.device("meta"):
            for name, split in self._splits.items():
                trial = Evaluation(self._job, split, name, self._group, capture=self._capture)
                with suppress(ArithmeticError):
                    trial.run(limit=self._job.settings.batch)

    def _stops(self) -> list[int]:
        """Steps behind which something is due, or that are made of a smaller batch."""
        rounds = range(1, ROUNDS + 1)
        steps = {1, self._total}
        steps |= {k * every for k in rounds for every in (self._every, self._per_epoch)}
        return sorted(stop for stop in steps if 0 < stop <= self._total)

    def _advance(self, step: int, stop: int) -> int:
        """Two stretches at most, and the step that leads to the stop."""
        for _ in range(2):
            if step < stop:
                step = self._make(step, min(self._stretch(step), stop - step))
        return stop if step == stop else self._make(stop - 1, 1)

    def _stretch(self, step: int) -> int:
        """How many steps are made in one go."""
        settings = self._job.settings
        saved = settings.checkpoint_every or self._per_epoch
        due = next_due(step, [self._logged, self._every, saved])
        return 1 if step == 0 else min(due, self._order.alike(step))

    def _make(self, step: int, count: int) -> int:
        with engine.device("meta"):
            indices = self._order.rows(step, count)
            if self._asks and step == 0:
                self._pages.rows(0, 1)
        progress = self._step.run(step + 1, indices)
        if progress.error is not None:
            raise progress.error
        step += count
        if step == 1 or step % self._logged == 0:
            self._step.norm_at(step)
        return step

    def _evaluate(self, name: str, last: bool) -> None:
        with engine.device("meta"), suppress(ArithmeticError):  # of figures of nothing
            self._measuring.figures(name, last)


def _lies_in_files(split: Split) -> bool:
    """Whether some of the samples are mapped."""
    spans = getattr(split, "spans", None)
    if spans is None:
        return False
    with engine.device("meta"):
        read = list(spans(engine.arange(1, dtype=engine.int64)))
    return any(getattr(tensor.array.storage, "resident", 1) == 0 for tensor, *_ in read)


def rehearse(
    config: Config, group: Group | None = None, device: str = "cpu", free: int | None = None
) -> RunMemory:
    """What a run of this config needs on the CPU, to the byte; no number is computed.

    Of the ranks of `group`, all that this process has joined, each makes its own parts of a batch.
    For a GPU as the `device` the figures are these too, but no thread has scratch of its own, and
    data may stay on the host where that many bytes are `free` there.
    Counted are data, weights and all other tensors, arenas, and the threads' scratch of programs;
    not Python, nor the rows of a training's log.

    Raises:
        ErrorGroup: a pattern of parameters' names matches none.
        DeviceError: own code looks at numbers, of which there are none; with the reason for which
            its steps are not captured.
    """
    train, fallback_reason = rehearse_training(config, group, device, free)
    with undisturbed():
        uses = train, _evaluation(config, device, free), _prediction(config, device)
        return RunMemory(*uses, fallback_reason, _mapped(config, device, free))


def _mapped(config: Config, device: str, free: int | None) -> int:
    before = meta.DEVICE.mapped
    outline = placed(config.data.outline(config.facts), device, free)
    return meta.DEVICE.mapped - before if outline else 0


def rehearse_training(
    config: Config, group: Group | None = None, device: str = "cpu", free: int | None = None
) -> tuple[Usage, str]:
    """The memory of the training alone, and why its steps run eagerly, where they do.

    Raises:
        ErrorGroup, DeviceError: as `rehearse` does.
    """
    group = group or distributed.group()
    with undisturbed():
        return _training(on_ranks(config, group), group, device, free)


def imagined_data(
    config: Config, splits: bool = True, device: str = "cpu", free: int | None = None
) -> LoadedData:
    """The data as it will be loaded; what is fitted on the targets has its form alone."""
    facts = config.facts
    targets, kinds = TargetFacts(), facts.classes or facts.vocab
    if kinds is not None:
        targets = TargetFacts(counts=(1,) * kinds)
    elif isinstance(config.data, ScaledTargets) and config.data.regression(facts):
        columns = facts.target[-1] if facts.target else 1
        targets = TargetFacts(mean=(0.0,) * columns, std=(1.0,) * columns)
    outline = placed(config.data.outline(facts) if splits else {}, device, free)
    data_facts = DataFacts.of(facts, targets=targets)
    return LoadedData(config.data, data_facts, outline, sha256={})


def _training(config: Config, group: Group, device: str, free: int | None) -> tuple[Usage, str]:
    tally = Tally(device)
    with tally.counting():
        dataset = imagined_data(config, device=device, free=free)
        if device != "cpu":
            tally.forget()  # data that stays on the host
        with engine.device("meta"):
            job = job_of(config, dataset)
        course = Course(job, group, tally)
        course.run()
    return tally.usage, next(iter(course.notes), "")


def _evaluation(config: Config, device: str, free: int | None) -> Usage | None:
    splits = [name for name in ("test", "val") if name in config.facts.sizes]
    if not splits:
        return None
    tally = Tally(device)
    with tally.counting(), engine.device("meta"):
        dataset = imagined_data(config, device=device, free=free)
        if device != "cpu":
            tally.forget()  # data that stays on the host
        job = job_of(config, dataset)
        name = splits[0]
        with suppress(ArithmeticError):
            Evaluation(job, dataset.splits[name], name, ALONE, capture=tally.capture).run()
        with suppress(ArithmeticError):
            baseline_of(job, {f"{name}.loss": 0.0}, dataset.splits, tally.beside)
    return tally.usage


def _prediction(config: Config, device: str) -> Usage:
    tally = Tally(device)
    with tally.counting(), engine.device("meta"):
        job = job_of(config, imagined_data(config, splits=False))
        predictor = Predictor(job, tally.capture)
        index = config.facts.input_kind == "index"
        dtype, batch = engine.int64 if index else engine.float32, config.train.batch
        for _ in range(ROUNDS):
            inputs = engine.empty(batch, *config.facts.input, dtype=dtype)
            list(predictor.predictions(inputs, 1, "", range(batch)))
    return tally.usage


@contextmanager
def undisturbed() -> Iterator[None]:
    """Numbers that are looked at are 0, random numbers go on as before, no garbage is collected."""
    state, collects = engine.get_rng_state(), gc.isenabled()
    gc.disable()  # what others left in cycles must not be given back while memory is counted
    try:
        with meta.blank():
            yield
    finally:
        engine.set_rng_state(state)
        if collects:
            gc.enable()
