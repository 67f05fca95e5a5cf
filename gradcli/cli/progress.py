"""A training as it goes on, on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.cells import cells, printable, shorten
from gradcli.cli import output
from gradcli.cli.options import compute_on
from gradcli.table import Column, lines, shown_columns
from gradcli.wording import quantity, verb

if TYPE_CHECKING:
    from gradcli.cli.header import TrainingHeader
    from gradcli.train.job import Job
    from gradcli.train.metrics import Table
    from gradcli.train.report import Measured, Reporter, Result
    from gradcli.train.signals import Signals

QUIET_SECONDS = 5.0
# Where nothing is evaluated, so many epochs have a line each; of more, one a second at most.
FEW_EPOCHS = 20
EPOCH_SECONDS = 1.0
SAMPLE_CELLS = 160  # of a text that a model wrote, where no terminal says how wide a line may be


class Update(NamedTuple):
    """A step that was made, with its loss and learning rate."""

    step: int
    loss: float
    rate: float


class ProgressReporter:
    """The reporter of `train` and `resume`; nothing it does can end a training.

    `evaluates` says that figures of a split come as the training goes on.
    """

    def __init__(
        self, as_json: bool = False, header: TrainingHeader | None = None, evaluates: bool = True
    ) -> None:
        self.run: str | None = None  # since it began
        self._quiet = as_json
        self._header = header
        self._evaluates = evaluates
        self._bar: Any = None
        self._total = 0
        self._per_epoch = 1
        self._latest: Update | None = None
        self._reported = -1  # the step whose loss stands in a line
        self._spoke = time.monotonic()

    def on_start(self, run: str, step: int, total: int, per_epoch: int) -> None:
        """The header, and the bar where there is a terminal."""
        self.run = self.run or run  # a resume that is verified begins others
        self._total, self._per_epoch = total, per_epoch
        self._spoke = time.monotonic()
        if self._quiet:
            return
        if self._header is not None:
            with contextlib.suppress(OSError):
                output.say_rows_aside(self._header.rows(run, step, total, per_epoch))
        if output.is_terminal(sys.stderr):
            from gradcli.cli.bar import Bar

            self._bar = Bar(
                desc=self._epoch(step + 1),
                total=total,
                initial=step,
                unit="step",
                dynamic_ncols=True,
                colour="green" if output.has_color(sys.stderr) else None,
            )

    def on_step(self, step: int, loss: float, rate: float) -> None:
        """The bar moves on; without one, a line where it is time for one."""
        self._latest = Update(step, loss, rate)
        if self._bar is not None:
            self._bar.set_description(self._epoch(step), refresh=False)
            self._bar.set_postfix_str(f"loss {_short(loss)}, lr {rate:.3g}", refresh=False)
            self._bar.update(1)
        elif self._line_due(step):
            self._say_latest()

    def _line_due(self, step: int) -> bool:
        """Whether a step has a line: the first one, an epoch's last, one every few seconds."""
        idle = time.monotonic() - self._spoke
        if self._reported < 0 or idle > QUIET_SECONDS:
            return True
        few = self._total <= FEW_EPOCHS * self._per_epoch
        ends_epoch = step % self._per_epoch == 0 and not self._evaluates
        return ends_epoch and (few or idle > EPOCH_SECONDS)

    def on_skip(self, step: int, reason: str) -> None:
        """The bar moves on, beside a line that says why."""
        self.note(f"skipped step {step}: {reason}")
        if self._bar is not None:
            self._bar.update(1)

    def on_evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """The figures of a split, on a line of their own."""
        self.note(f"{self._position(step)}{self._loss_of(step)}  {figures(metrics)}")

    def on_sample(self, step: int, prompt: str, text: str) -> None:
        """What a model of text wrote, on one line."""
        line = f"{self._position(step)}  sample: {' '.join(f'{prompt}{text}'.split())}"
        self.note(shorten(printable(line), output.width(sys.stderr) or SAMPLE_CELLS))

    def on_save(self, step: int, path: str) -> None:
        """Nothing: the end and the run's directory say where checkpoints are."""

    def note(self, text: str) -> None:
        """One line beside the bar; a closed terminal does not matter."""
        self._spoke = time.monotonic()
        if self._quiet:
            return
        with contextlib.suppress(OSError):
            if self._bar is None:
                output.say_aside(text)
            else:
                self._bar.write(output.aside(text), file=sys.stderr)

    def on_finish(self, result: Result) -> None:
        """The bar ends; the result itself goes to stdout."""
        self.close()

    def _say_latest(self) -> None:
        """A line for the latest step, unless there is one."""
        if self._latest is not None and self._latest.step != self._reported:
            self.note(f"{self._position(self._latest.step)}{self._loss_of(self._latest.step)}")

    def _loss_of(self, step: int) -> str:
        """The training loss of the latest step, the first time it is asked for; the bar has lr."""
        latest = self._latest
        if latest is None or latest.step != step or step == self._reported:
            return ""
        self._reported = step
        rate = f"  lr {latest.rate:.3g}" if self._bar is None else ""
        return f"  loss {_short(latest.loss)}{rate}"

    def _epoch(self, step: int) -> str:
        """`epoch 3/10`: the one that this step is of."""
        epochs = max(1, math.ceil(self._total / self._per_epoch))
        epoch = min(max(math.ceil(step / self._per_epoch), 1), epochs)
        return f"epoch {epoch:>{len(str(epochs))}}/{epochs}"

    def _position(self, step: int) -> str:
        """`epoch 3/10  step 1204/4300`."""
        return f"{self._epoch(step)}  step {step:>{len(str(self._total))}}/{self._total}"

    def close(self) -> None:
        """Leave the terminal in order, and the last loss in a line, whatever happened."""
        if self._bar is None:
            self._say_latest()
        else:
            with contextlib.suppress(OSError):
                self._bar.close()
            self._bar, self._latest = None, None


def _short(loss: float) -> str:
    """As many digits as the figures of an evaluation have; a tiny one as a power of ten."""
    return f"{loss:.4f}" if loss == 0 or 1e-3 <= abs(loss) < 1e4 else f"{loss:.3g}"


def figures(metrics: Mapping[str, float]) -> str:
    """`val.loss 0.1234  val.accuracy 0.9750`."""
    return "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())


def _lines(name: str, table: Table, classes: Sequence[str]) -> Iterator[str]:
    """Print a list on one line, a matrix with one line per row."""
    labels = classes or [str(number) for number in range(len(table))]
    if not isinstance(table[0], list):
        shares = (f"{label} {value:.4f}" for label, value in zip(labels, table, strict=True))
        yield f"{name}  {'  '.join(shares)}"
        return
    width = output.width(sys.stdout)
    rows = [(label, *map(str, row)) for label, row in zip(labels, table, strict=True)]
    longest = max(len(cell) for row in rows for cell in row[1:])
    columns = [
        Column(max(map(cells, labels)), "label", gap=2),
        *(Column(longest, gap=1 + (number == 0), rank=number) for number in range(len(table))),
    ]
    predictions = shown_columns(columns, rows, width) - 1
    yield f"{name}: a row for each class, a column for each answer" + (
        f" (the first {predictions} of {len(table)}; --json has all)"
        if predictions < len(table)
        else ""
    )
    yield from lines(columns, rows, width)


def _say_baseline(result: Result) -> None:
    """The same figures of one answer to every sample, and which of them the model does not beat."""
    baseline = result.baseline
    if baseline is None or not baseline.metrics:
        return
    output.say(f"baseline: {figures(baseline.metrics)}  ({baseline.answer})")
    pairs = [
        f"{name} {result.metrics[name]:.4f} against {baseline.metrics[name]:.4f}"
        for name in baseline.unbeaten
        if name in result.metrics  # a status.json that somebody changed may lack it
    ]
    if pairs:
        output.say_aside(f"warning: the model does not beat the baseline: {', '.join(pairs)}")


def _say_verdict(result: Result) -> None:
    """Whether a resumed run is the same, where that was to be verified."""
    if result.verify_resume is not None:
        from gradcli.train.verification import sentence

        same = result.verify_resume["same"]
        output.say(sentence(result.verify_resume), "good" if same else "error")


def _tables(result: Result) -> dict[str, object]:
    return {"tables": dict(result.tables), "classes": list(result.classes)}


def _samples(sample_info: Measured) -> dict[str, object]:
    return {"split": sample_info.split, "samples": sample_info.samples}


def say_result(result: Result, as_json: bool) -> None:
    """How a training or an evaluation ended, on stdout."""
    if not as_json:
        steps = quantity(result.steps, "step")
        ending = f"{result.status}: {result.run}, {steps}, {result.seconds:.1f} s"
        output.say(ending, "warning" if result.status == "stopped" else "good")
        if result.measured_step not in (None, result.steps):
            output.say(f"measured: the best checkpoint, step {result.measured_step}")
        if result.measured is not None:
            output.say(f"measured: {result.measured}")
        if result.skipped_steps:
            output.say(
                f"skipped: {result.skipped_steps} of {quantity(result.steps, 'step')} "
                f"{verb(result.skipped_steps, 'was', 'were')} not finite"
            )
        if result.metrics:
            output.say(figures(result.metrics))
        _say_baseline(result)
        for name, table in result.tables.items():
            for line in _lines(name, table, result.classes):
                output.say(line)
        output.say(f"weights sha256 {result.weights_sha256}")
        _say_verdict(result)
        return
    from gradcli.train.log import strict

    output.say_json(
        {
            "run": result.run,
            "status": result.status,
            "steps": result.steps,
            "seconds": result.seconds,
            "measured_step": result.measured_step,
            "skipped": result.skipped_steps,
            "metrics": strict(dict(result.metrics)),
            "baseline": result.baseline and result.baseline.as_json(),
            "absent_classes": dict(result.absent),
            **(_samples(result.measured) if result.measured else {}),
            **(_tables(result) if result.tables else {}),
            "weights_sha256": result.weights_sha256,
            **({"verify_resume": dict(result.verify_resume)} if result.verify_resume else {}),
        }
    )


def carry_out(
    training: Callable[[Job, int, Reporter, Signals], Result],
    job: Job,
    as_json: bool,
    threads: int | None,
    device: str,
    no_report: bool,
    memory: int | None = None,
) -> None:
    """The job on a device, from its notes to what was expected of it.

    `training` takes it there, the number of threads, who watches, and what asks for an end.
    `memory` is the most bytes that are to be used on a GPU, if there is such a limit.
    """
    from gradcli.cli.header import TrainingHeader
    from gradcli.cli.report import leaving_page
    from gradcli.cli.way_on import say_way_on
    from gradcli.engine import distributed
    from gradcli.train import ranks
    from gradcli.train.expectations import check_expectations
    from gradcli.train.signals import Signals

    thread_count = compute_on(device, threads)
    for note in (notes := job.dataset.notes):
        output.say_aside(note)
    progress = ProgressReporter(
        as_json, TrainingHeader(job, device, thread_count), "val" in job.dataset.splits
    )
    job = job.to(device, memory)
    for note in job.dataset.notes[len(notes) :]:
        output.say_aside(note)
    with leaving_page(progress, not (as_json or no_report)):
        try:
            with Signals() as signals:
                watcher = ranks.reporter(distributed.group(), progress)
                result = training(job, thread_count, watcher, signals)
        finally:
            progress.close()
        say_result(result, as_json)
        if not as_json:
            say_way_on(job, result)
        if result.verify_resume is not None:
            from gradcli.train.verification import check_verdict

            check_verdict(result)
    check_expectations(job, result)
