"""Evaluate the splits during a training, and the best weights at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data.hashes import look_out
from gradcli.engine import distributed
from gradcli.errors import CheckpointError
from gradcli.train.checkpoint import file_name, read
from gradcli.train.close_look import CloseLook
from gradcli.train.evaluate import Cancelled, Evaluation, LookFault
from gradcli.train.judging import latest_figures
from gradcli.train.ranks import of_first, take_from_first
from gradcli.train.state import all_tensors, restore

if TYPE_CHECKING:
    from gradcli.engine.program.capture import Captured
    from gradcli.train.average import Average
    from gradcli.train.checkpoint import Best, CheckpointMeta
    from gradcli.train.close_look import Sight
    from gradcli.train.directory import RunDirectory
    from gradcli.train.job import Job
    from gradcli.train.metrics import Table


class Measuring:
    """The evaluations of a job; raises Cancelled during one if `must_end()`.

    Attributes:
        sight: the close look of the last evaluation; None on ranks other than 0, and if there is
            nothing to evaluate.
    """

    def __init__(
        self,
        job: Job,
        average: Average | None,
        must_end: Callable[[], bool],
        capture: Callable[..., Captured] = engine.capture,
    ) -> None:
        self._job = job
        self._capture = capture
        self._average = average
        self._must_end = must_end
        self._evaluations = {
            name: self._evaluation(name) for name in job.dataset.splits if name != "train"
        }
        self.sight: Sight | None = None
        self._has_looked = False
        self._trouble = ""  # why there is no sight
        last = next((name for name in ("test", "val") if name in self._evaluations), "")
        self._look: CloseLook | None = None
        if last and job.dataset.facts is not None:
            self._look = CloseLook(job, job.dataset.splits[last], last)

    def figures(self, split: str, last: bool = False) -> dict[str, float]:
        """The split's figures, of the average if there is one; at the `last` with a close look."""
        with self._average.in_place() if self._average else contextlib.nullcontext():
            return self._figures_as_loaded(split, last)

    def tables(self, split: str) -> dict[str, Table]:
        """The tables of the latest evaluation of a split."""
        return self._evaluations[split].tables if split in self._evaluations else {}

    def final(
        self, meta: CheckpointMeta, directory: RunDirectory, note: Callable[[str], None]
    ) -> tuple[dict[str, float], int]:
        """The figures of the best checkpoint, or the last if there is no best, and its step."""
        best = meta.best
        metrics = latest_figures(meta)
        splits, step, figures = ["test"], meta.step, self.figures
        if meta.evaluated == step and self._must_look("val"):
            splits = ["val"]  # its latest evaluation did not know that it was the last
        if best is not None and best.step != step and self._load(best, directory, note):
            splits, step, figures = ["val", "test"], best.step, self._figures_as_loaded
        for split in splits:
            if split in self._evaluations:
                metrics.update(figures(split, last=True))
        if self._trouble:
            note(f"warning: a report will lack what the last evaluation saw: {self._trouble}")
        look_out()
        return metrics, step

    def _must_look(self, split: str) -> bool:
        """Whether this split still needs its close look; the same on all ranks."""
        return self._look is not None and self._look.name == split and not self._has_looked

    def _load(self, best: Best, directory: RunDirectory, note: Callable[[str], None]) -> bool:
        """Load the best checkpoint into the model; a note says so if it is damaged."""
        group = distributed.group()
        loaded = of_first(group, lambda: self._read(best, directory, note))
        if loaded:
            take_from_first(group, all_tensors(self._job.model, None).values())
        return loaded

    def _read(self, best: Best, directory: RunDirectory, note: Callable[[str], None]) -> bool:
        name = file_name(best.step)
        try:
            checkpoint = read(directory.checkpoints / name)
            restore(checkpoint.tensors, self._job.model, None, name)
        except CheckpointError as error:
            note(f"warning: the best checkpoint cannot be used: {error.message}")
            return False
        return True

    def _figures_as_loaded(self, split: str, last: bool = False) -> dict[str, float]:
        """The split's figures of the weights in the model."""
        look = self._look
        if not last or look is None or look.name != split:
            return self._evaluations[split].run(self._must_end)
        if look.sees and not self._evaluations[split].looks:
            self._evaluations[split] = self._evaluation(split, look)
        try:
            figures = self._evaluations[split].run(self._must_end)
        except Exception as error:  # of the user's own code, or of memory
            of_all = isinstance(error, LookFault)
            if isinstance(error, Cancelled) or not look.sees:
                raise
            if distributed.group().size > 1 and not of_all:
                raise  # the other ranks know nothing of it
            self._look = None
            self._trouble = str(error) if of_all else f"{type(error).__name__}: {error}"
            self._evaluations[split] = self._evaluation(split)
            return self._evaluations[split].run(self._must_end)
        self._has_looked = True
        if distributed.group().rank == 0:
            self._see(look, self._evaluations[split].trouble)
        return figures

    def _evaluation(self, split: str, look: CloseLook | None = None) -> Evaluation:
        data = self._job.dataset.splits[split]
        return Evaluation(self._job, data, split, look=look, capture=self._capture)

    def _see(self, look: CloseLook, trouble: str) -> None:
        """Finish the close look at the weights in the model; a failure does not stop the run."""
        self.sight, self._trouble = None, trouble
        if trouble:
            return
        self._job.model.eval()
        try:
            self.sight = look.finish()
        except Exception as error:  # of the user's own code too
            self._trouble = f"{type(error).__name__}: {error}"
        finally:
            self._job.model.train()
