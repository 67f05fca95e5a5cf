"""The training loop; however it ends, status.json says so."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.engine import distributed
from gradcli.errors import GradcliError, Interrupted, LostRankError, Stopped, say_once
from gradcli.train import disk, first_loss
from gradcli.train.baseline import baseline_of
from gradcli.train.checkpoint import Checkpoint, file_name, size_of
from gradcli.train.data_watch import DataWatch, look_at
from gradcli.train.diagnose import Explanation, NonfiniteStep, explain
from gradcli.train.evaluate import Cancelled
from gradcli.train.evaluation_files import write_evaluation
from gradcli.train.expectations import missed
from gradcli.train.job import logged_every, steps_per_epoch, total_steps
from gradcli.train.judging import best_as_json, is_stale, judge, latest_figures
from gradcli.train.measuring import Measuring
from gradcli.train.order import next_due, order_in
from gradcli.train.pace import Pace
from gradcli.train.pages import Pages
from gradcli.train.ranks import Ranks, of_first
from gradcli.train.report import Reporter, Result
from gradcli.train.rewind import first_nonfinite
from gradcli.train.run_meta import continued, meta_of
from gradcli.train.signals import ending
from gradcli.train.state import all_tensors, restore, tensors_of, weights_sha256
from gradcli.train.step import TrainingStep
from gradcli.train.text_samples import TextSamples
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.train.directory import RunDirectory
    from gradcli.train.job import Job
    from gradcli.train.progress import StepResults
    from gradcli.train.signals import Signals

SKIPS = 10  # in a row: so many steps that are not finite end a run


class Trainer:
    """Trains a job in a run directory from its current step to its end."""

    def __init__(
        self,
        job: Job,
        directory: RunDirectory,
        reporter: Reporter,
        signals: Signals,
        max_steps: int | None = None,
        sets: int = 1,
    ) -> None:
        self.job = job
        self._sets = sets  # of checkpoints that the disk must hold side by side
        self.directory = directory
        self.reporter = reporter
        self.split = job.dataset.splits["train"]
        self.per_epoch = steps_per_epoch(job.settings, self.split.size)
        self.total = total_steps(job.settings, self.split.size)
        self.end = self.total if max_steps is None else min(self.total, max_steps)
        self.meta = meta_of(job)
        self._every = logged_every(job.settings, self.total)
        self._saved = -1
        self._under_way = 0  # the last step of the current stretch
        self._step = TrainingStep(job, self.split, reporter.note)
        self._pace = Pace(self._step)
        self._order = order_in(job.settings, self.split, self.per_epoch)
        group = distributed.group()
        self._data = DataWatch(job.dataset.sha256, directory, group)
        self._pages = Pages(self.split, job.settings, self.per_epoch)
        if group.size > 1:
            group.note, group.where = reporter.note, self._current_steps
        settings = job.settings
        self._ranks = Ranks(group, signals, settings.checkpoint_minutes, settings.reduce)
        self._measuring = Measuring(job, self._step.average, self._ranks.look)
        self._texts = TextSamples(job, self._step.average, reporter.note)
        self._began = time.monotonic()

    def restore(self, checkpoint: Checkpoint, source: str) -> None:
        """Restore weights, optimizer state and progress from a checkpoint."""
        restore(checkpoint.tensors, self.job.model, self.job.optimizer, source, self._step.average)
        self.meta = continued(checkpoint.meta, self.meta)
        if self.meta.schedule:
            self.job.schedule.load_state_dict(self.meta.schedule)
        self._saved = checkpoint.meta.step

    def run(self) -> Result:
        """Train to the end; writes an error or a signal into status.json before raising it."""
        if distributed.rank() == 0:
            self._check_room()
        with self._true_status():
            self._status("running")
            self.directory.discard_evaluation()
            run, step = str(self.directory.path), self.meta.step
            self.reporter.on_start(run, step, self.total, self.per_epoch)
            with contextlib.closing(self._pages):
                self._train()
            return self._finish()

    def _check_room(self) -> None:
        """Raise if the disk has no room for the checkpoints to come."""
        job, begin = self.job, self._saved + 1
        tensors = disk.outlines(all_tensors(job.model, job.optimizer, self._step.average))
        evaluates = "val" in job.dataset.splits
        files = disk.files_at_once(job.settings, evaluates, begin, self.end, self.per_epoch)
        size = size_of(self.meta, tensors)
        disk.check_room(self.directory.checkpoints, size, self._sets * files, job.settings.keep)

    # The loop.

    def _train(self) -> None:
        """Do what is due at this step, then the next steps; a resume enters at the top."""
        while True:
            self._ranks.settle(self.meta.step)
            self._evaluate_if_due()
            at_end = self.meta.step >= self.end or self._stale()
            if self._save_due(at_end):
                self._save()
                self._ranks.look()
            if self._ranks.signal is not None:
                self._leave()
            if at_end:
                return
            self._advance()

    def _advance(self) -> None:
        """Run the steps up to the next evaluation, checkpoint or line of the log."""
        start = self.meta.step
        self._under_way = start + (count := self._stretch(start))
        indices = self._order.rows(start, count)
        self._pages.ask(start + count, self.end)
        self._ranks.begin()
        self._pace.begin()
        progress = self._step.run(start + 1, indices)
        self._data.look()
        self._ranks.count_steps(progress.count)
        self._pace.count(progress.count, indices.shape[1])
        for step, loss in enumerate(progress.losses[: progress.count], start + 1):
            self._record_step(step, loss)
        self._pace.end()
        if progress.error is not None:
            self._handle_error(indices[progress.count], progress)

    def _current_steps(self) -> str:
        """The current steps, for the error on a rank that does not answer."""
        first, last = self.meta.step + 1, self._under_way
        return f"steps {first:,} to {last:,}" if first < last else f"step {first:,}"

    def _stretch(self, step: int) -> int:
        """How many steps to run before the next check of what is due."""
        settings = self.job.settings
        periods = [self._every, settings.eval_every or self.per_epoch]
        periods.append(settings.checkpoint_every or self.per_epoch)
        if step == 0:
            return 1  # the first loss is logged
        due = min(next_due(step, periods), self._order.alike(step), self.end - step)
        return max(1, min(self._pages.at_a_time(due), self._ranks.steps_left(step)))

    def _record_step(self, step: int, loss: float) -> None:
        """Log a step and count it."""
        rate = self._step.rates(step)[0]
        if step % self._every == 0 or step == 1:
            epoch = (step - 1) // self.per_epoch
            figures = {"loss": loss, "lr": rate, "seconds": self._seconds()}
            figures |= {"grad_norm": self._step.norm_at(step), **self._pace.take()}
            self._log("step", step, epoch=epoch, **figures, **self._ranks.waiting())
        self._enter(step, self.meta.skipped, 0)
        self.reporter.on_step(step, loss, rate)
        if step == 1 and (text := first_loss.note(self.job, loss)):
            self.reporter.note(text)

    def _enter(self, step: int, skips: int, row: int) -> None:
        epoch = step // self.per_epoch
        self.meta = replace(self.meta, step=step, epoch=epoch, skipped=skips, skipped_in_a_row=row)

    def _handle_error(self, indices: Tensor, progress: StepResults) -> None:
        """Raise the error that ended the steps, or skip the step that is not finite."""
        assert progress.error is not None
        figures, step = progress.nonfinite, self.meta.step + 1
        if isinstance(progress.error, LostRankError):
            raise progress.error.at(f"step {step:,}") from progress.error
        if figures is None:
            look_at(self.split, indices)
            raise progress.error
        self._step.put_back()
        explanation = explain(self.job, self._step, NonfiniteStep(step, indices, figures))
        row = self.meta.skipped_in_a_row + 1
        skips = self.job.settings.on_nonfinite == "skip" and row < SKIPS
        skip = {"skipped": explanation.error.message} if skips else {}
        epoch, rate = self.meta.step // self.per_epoch, self._step.rates(step)[0]
        line = {"epoch": epoch, "loss": figures.loss, "lr": rate, "seconds": self._seconds()}
        norm = {} if figures.norm is None else {"grad_norm": figures.norm}
        self._log("step", step, **line, **norm, **skip)
        if not skips:
            in_data = of_first(distributed.group(), lambda: explanation.in_data)
            if in_data and self._saved != self.meta.step:
                self._save()
            raise say_once(self._began_before(explanation, step) or explanation.error)
        self._enter(step, self.meta.skipped + 1, row)
        self.reporter.on_skip(step, explanation.error.message)

    def _began_before(self, explanation: Explanation, step: int) -> GradcliError | None:
        """The error for an earlier step whose gradients were not checked, if there was one."""
        if not explanation.in_weights or self._step.looks:
            return None
        job, where, note = self.job, self.directory.checkpoints, self.reporter.note
        group, ends = distributed.group(), self._ranks.look
        return first_nonfinite(job, where, self._order, step, note, ends, group)

    # Evaluation.

    def _evaluate_if_due(self) -> None:
        step = self.meta.step
        every = self.job.settings.eval_every or self.per_epoch
        due = step > 0 and (step % every == 0 or step == self.total)
        evaluates = "val" in self.job.dataset.splits
        if not due or self.meta.evaluated >= step or not (evaluates or self._texts.due):
            return
        figures, text = self._evaluate(step, evaluates)
        self._data.look()
        if figures is None:
            self.meta = replace(self.meta, evaluated=step)
        else:
            self.meta = judge(self.job, self.meta, figures)
            entry = {"seconds": self._seconds(), **figures, **self._measuring.tables("val")}
            self._log("eval", step, **entry)
            self.reporter.on_evaluation(step, figures)
        if text is not None:
            self._log("sample", step, **text)
            self.reporter.on_sample(step, **text)
        self._saved = min(self._saved, step - 1)
        self._status("running")
        self._ranks.look()

    def _evaluate(
        self, step: int, evaluates: bool
    ) -> tuple[dict[str, float] | None, dict[str, str] | None]:
        """The figures of the validation split and a text sample, if due; a signal cancels them."""
        try:
            last = step >= self.end
            figures = self._measuring.figures("val", last=last) if evaluates else None
            return figures, self._texts.at(step, self._ranks.look)
        except Cancelled:
            if self._saved != self.meta.step:
                self._save()
            self._leave()
            raise

    def _stale(self) -> bool:
        return is_stale(self.job, self.meta)

    # Saving and leaving.

    def _save_due(self, at_end: bool) -> bool:
        step = self.meta.step
        if self._saved == step:
            return False
        every = self.job.settings.checkpoint_every or self.per_epoch
        best = self.meta.best is not None and self.meta.best.step == step
        request = self._ranks.signal is not None or self._ranks.save
        return step % every == 0 or at_end or best or request

    def _save(self) -> None:
        data = self._data.settle(first=self.meta.step == 0)
        meta = replace(self.meta, seconds=self._seconds(), data=data)
        tensors = tensors_of(self.job.model, self.job.optimizer, self._step.average)
        self._ranks.same_weights(tensors, meta.step)
        path = self.directory.save(meta, tensors, self.job.settings.keep, self.reporter.note)
        self._saved = meta.step
        self.reporter.on_save(meta.step, str(path))
        self._status("running")

    def _leave(self) -> None:
        """Raise the error of the signal; the checkpoint of this step is saved."""
        assert self._ranks.signal is not None
        raise ending(self._ranks.signal, str(self.directory.path), self.meta.step)

    def _finish(self) -> Result:
        """Evaluate the test split, hash the weights, and write the final status."""
        if self._stale():
            stale = quantity(self.meta.stale, "evaluation")
            self.reporter.note(f"stopped early: no better for {stale}")
        elif self.end < self.total:
            self.reporter.note(f"stopped by --max-steps at step {self.meta.step} of {self.total}")
        elif self.total == 0:
            self.reporter.note(f"no steps to make: wrote the initial weights, {file_name(0)}")
        sha256 = weights_sha256(self.job.model)
        metrics, step = self._final_figures()
        baseline = baseline_of(self.job, metrics, self.job.dataset.splits)
        self._data.settle(first=False)
        result = Result(
            run=str(self.directory.path),
            status="stopped" if self.end < self.total and not self._stale() else "finished",
            steps=self.meta.step,
            seconds=round(self._seconds(), 3),
            metrics=metrics,
            weights_sha256=sha256,
            measured_step=step,
            baseline=baseline,
            absent=self.job.absent,
            skipped_steps=self.meta.skipped,
        )
        self._status(
            result.status,
            seconds=result.seconds,
            metrics=metrics,
            measured_step=step,
            baseline=baseline and baseline.as_json(),
            skipped=result.skipped_steps,
            weights_sha256=sha256,
            missed=missed(self.job, result),
        )
        self.reporter.on_finish(result)
        return result

    def _final_figures(self) -> tuple[dict[str, float], int]:
        """The figures of the best checkpoint, or the last if there is no best, and its step."""
        try:
            metrics, step = self._measuring.final(self.meta, self.directory, self.reporter.note)
        except Cancelled:
            self._leave()
            raise
        self._data.settle(first=False)  # before anybody sees them
        test = {name: value for name, value in metrics.items() if name.startswith("test.")}
        if test:
            entry = {"seconds": self._seconds(), **test, **self._measuring.tables("test")}
            self._log("test", self.meta.step, measured_step=step, **entry)
            self.reporter.on_evaluation(step, test)
        sight, note = self._measuring.sight, self.reporter.note
        write_evaluation(self.directory, self.job, sight, step, metrics, note)
        return metrics, step

    # Log and status.

    def _seconds(self) -> float:
        before = self.meta.seconds
        return before + time.monotonic() - self._began

    def _log(self, event: str, step: int, **values: object) -> None:
        self.directory.log({"event": event, "step": step, **values})

    def _status(self, status: str, **values: object) -> None:
        self.directory.status(
            {
                "status": status,
                "step": self.meta.step,
                "steps": self.total,
                "epoch": self.meta.epoch,
                "seconds": round(self._seconds(), 3),
                "metrics": latest_figures(self.meta),
                "best": best_as_json(self.job, self.meta),
                **values,
            }
        )

    @contextlib.contextmanager
    def _true_status(self) -> Iterator[None]:
        """Write whatever ends the run into status.json, as far as the disk allows."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, LostRankError):
                error.notes += (f"go on with: gradcli resume {self.directory.path}",)
            with contextlib.suppress(GradcliError):
                self._status(_ending(error), error=str(error), saved=self._saved)
            raise


def _ending(error: BaseException) -> str:
    if isinstance(error, Stopped):
        return "stopped"
    return "interrupted" if isinstance(error, Interrupted | KeyboardInterrupt) else "failed"
