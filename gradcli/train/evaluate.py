"""Evaluation: every sample once, in order; states of batches merged, one figure at the end.

Ranks share the batches. The values of each batch go to all ranks, and each rank merges them in the
order of the batches: there is no padding, and any number of ranks gets the figures of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data.hashes import look_out
from gradcli.engine import distributed
from gradcli.train import precision
from gradcli.train.batch_values import interleave, pack, unpack

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor
    from gradcli.engine.distributed import Group
    from gradcli.engine.program.capture import Captured
    from gradcli.train.close_look import CloseLook
    from gradcli.train.job import Job
    from gradcli.train.metrics import Metric, State, Table

ROWS = 16  # batches between two looks at signals


class Cancelled(Exception):  # noqa: N818 -- a way out, not an error
    """A signal stopped the evaluation; none of its figures is used."""


class LookFault(Exception):  # noqa: N818 -- not the error itself
    """On some rank the close look at a batch failed; all ranks raise this."""


class Evaluation:
    """Computes the figures of a split; its captured programs serve all evaluations of a training.

    Attributes:
        tables: figures of the latest run that are more than one number.
        looks: whether it takes a close look at each batch too.
        trouble: why the close look of the latest run failed on this rank; one rank alone raises
            the error instead.
    """

    def __init__(
        self,
        job: Job,
        split: Split,
        name: str,
        group: Group | None = None,
        look: CloseLook | None = None,
        capture: Callable[..., Captured] = engine.capture,
    ) -> None:
        """Prepare the evaluation; the ranks of `group`, by default all, share the batches.

        A `look` gets each batch too; that changes no figure.
        """
        self._job = job
        self._group = group or distributed.group()
        self._size = split.size
        self._name = name
        self._look = look
        self.looks = look is not None
        self.tables: dict[str, Table] = {}
        self.trouble = ""
        # No note on a batch that cannot be captured: the training step gives it.
        self._batch = capture(
            _states_of(job, split, look), on_fallback=lambda _: None, eager=not job.settings.capture
        )

    def run(
        self, stop: Callable[[], bool] = lambda: False, limit: int | None = None
    ) -> dict[str, float]:
        """`{name.loss: ..., name.accuracy: ...}` over the split, or its first `limit` samples."""
        size = min(self._size, limit or self._size)
        job = self._job
        loss, states = 0.0, MetricStates(job.metrics)
        self.trouble = ""
        if self._look is not None:
            self._look.begin()
        job.model.eval()
        try:
            first = 0
            for rows in stretches(size, job.settings.batch, ROWS * self._group.size):
                if stop():
                    raise Cancelled
                batches = self._values(first, rows)
                for begin in range(0, rows.shape[0], ROWS):
                    some = _rows(batches, begin, begin + ROWS)
                    for value in some["loss"].tolist():
                        loss += value * rows.shape[1]
                    states.add(some["states"], some["loss"].shape[0])
                if self._look is not None:
                    self._take(self._look, first * job.settings.batch, batches["each"])
                first += rows.shape[0]
            look_out(closely=True)
        finally:
            job.model.train()
        figures = {"loss": loss / size, **states.finish()}
        by_name = {f"{self._name}.{metric}": figure for metric, figure in figures.items()}
        self.tables = {name: value for name, value in by_name.items() if isinstance(value, list)}
        return {name: value for name, value in by_name.items() if not isinstance(value, list)}

    def _values(self, first: int, rows: Tensor) -> Any:
        """The stacked values of the batches from `first` on; rank b mod N computes batch b."""
        size, rank = self._group.size, self._group.rank
        if size == 1:
            return self._batch.scan(rows)
        begin = (rank - first) % size
        own = rows[begin::size].contiguous()
        own_piece = self._piece(own) if own.shape[0] else b""
        pieces = self._group.all_gather(own_piece, "an evaluation")
        values = [unpack(piece) for i in range(size) if (piece := pieces[(first + i) % size])]
        faults = [value["fault"] for value in values if "fault" in value]
        if faults:
            raise LookFault(faults[0])
        return interleave(values)

    def _piece(self, rows: Tensor) -> bytes:
        """The values of these batches as bytes, or the error of a close look at them.

        The other ranks wait for the bytes; the error tells them to evaluate again without a look.
        """
        try:
            return pack(self._batch.scan(rows))
        except Exception as error:  # of the user's own code too
            if self._look is None:
                raise
            return pack({"fault": f"{type(error).__name__}: {error}"})

    def _take(self, look: CloseLook, first: int, each: Mapping[str, Tensor]) -> None:
        """Pass the values of some batches to the look; one of several ranks goes on if it fails."""
        if self._group.size == 1:
            look.take(first, each)
        elif not self.trouble:
            try:
                look.take(first, each)
            except Exception as error:  # the others are at the next batches already
                self.trouble = f"{type(error).__name__}: {error}"


class MetricStates:
    """The state of each metric over the batches so far."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self._states: dict[str, list[State]] = {name: [] for name in metrics}

    def add(self, stacked: Mapping[str, State], batches: int) -> None:
        """Merge the states of the next batches, whose tensors are stacked."""
        with engine.device("cpu"):
            for name, metric in self._metrics.items():
                columns = {key: _column(value, batches) for key, value in stacked[name].items()}
                states = self._states[name]
                states.append(metric.merge_columns(columns))
                if len(states) > 1 and not metric.grows:
                    states[:] = [metric.merge(states)]

    def finish(self) -> dict[str, float | Table]:
        """The figure of each metric."""
        with engine.device("cpu"):
            return {
                name: metric.finish(self._state(name)) for name, metric in self._metrics.items()
            }

    def _state(self, name: str) -> State:
        states = self._states[name]
        return states[0] if len(states) == 1 else self._metrics[name].merge(states)


def _column(value: Any, batches: int) -> Sequence[Any]:
    """The value of each batch: a tensor on the CPU, or a number if it has no dimensions."""
    if not isinstance(value, engine.Tensor):
        return [value] * batches
    if value.ndim == 1:
        numbers: list[Any] = value.tolist()
        return numbers
    return value.to("cpu").unbind(0)


def _states_of(
    job: Job, split: Split, look: CloseLook | None
) -> Callable[[Tensor], dict[str, Any]]:
    """A function of a batch's indices: its mean loss, metric states and values for a look."""

    @engine.no_grad()
    def states(indices: Tensor) -> dict[str, Any]:
        inputs, targets = split.batch(indices)
        with precision.forward(job.settings):
            outputs = job.model(inputs)
            predictions = job.postprocess(outputs)
            metric_states = {
                name: metric.state(predictions, targets) for name, metric in job.metrics.items()
            }
            loss = job.loss(outputs, targets)
        look_values = {} if look is None else {"each": look.of_batch(predictions, targets)}
        return {"loss": loss, "states": metric_states, **look_values}

    return states


def _rows(batches: Any, begin: int, end: int) -> Any:
    """Rows `begin` to `end` of stacked values."""
    if isinstance(batches, dict):
        return {key: _rows(value, begin, end) for key, value in batches.items()}
    return batches[begin:end] if isinstance(batches, engine.Tensor) else batches


def stretches(size: int, batch: int, count: int = ROWS) -> Iterator[Tensor]:
    """Indices 0..size-1 as rows of `batch`, `count` at a time; a smaller last row by itself."""
    whole = size - size % batch
    for begin in range(0, whole, batch * count):
        end = min(begin + batch * count, whole)
        yield engine.arange(begin, end, dtype=engine.int64).reshape(-1, batch)
    if whole < size:
        yield engine.arange(whole, size, dtype=engine.int64).reshape(1, -1)


def metric_names(job: Job) -> list[str]:
    """Every figure of one number that this job's evaluations can give."""
    splits = [name for name in ("val", "test") if name in job.dataset.splits]
    names = ["loss", *(name for name, metric in job.metrics.items() if not metric.table)]
    return [f"{split}.{metric}" for split in splits for metric in names]
