"""Time series: samples are windows of rows that follow each other."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Annotated, Literal

from gradcli import engine
from gradcli.data.dataset import LaterInputs
from gradcli.data.samples import tensor_of
from gradcli.data.staging import gathered
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import quantity, verb

MOST = 1 << 20  # rows of a window, and to the target


@dataclass(frozen=True)
class WindowSteps:
    """How samples are cut out of rows.

    Attributes:
        window: rows of a sample.
        horizon: rows from its last one to that of its target.
        first: whether columns come before rows in a sample.
    """

    window: int
    horizon: int
    first: bool

    def shape(self, columns: int) -> tuple[int, int]:
        """That of a sample."""
        return (columns, self.window) if self.first else (self.window, columns)

    @property
    def behind(self) -> int:
        """Rows from the first of a sample to that of its target."""
        return self.window - 1 + self.horizon

    def count(self, rows: int) -> int:
        """How many samples rows that follow each other give."""
        return max(rows - self.behind, 0)

    def size(self, stretches: Sequence[int], what: str) -> int:
        """The samples of a split whose stretches have so many rows; it must have one."""
        size = sum(map(self.count, stretches))
        if not size:
            rows, several = max(stretches, default=0), len(stretches) > 1
            most = quantity(rows, "row") + (" of one file at most" if several else "")
            raise DataError(
                f"{what} has {most}; a window of {self.window} and a horizon of {self.horizon} "
                f"need at least {self.behind + 1}" + (" that lie in one file" if several else ""),
                code="E305",
                notes=("take a shorter window, or give this split a larger share",),
            )
        return size

    def windows(self, rows: Tensor, source: str) -> LaterInputs:
        """All windows of a new table, each one row further, whether it has a target or not."""
        count = rows.shape[0] - self.window + 1
        if count < 1:
            few = f"{quantity(rows.shape[0], 'row')} {verb(rows.shape[0])} too few"
            raise DataError(f"{source}: {few}: a window has {self.window}", code="E305")
        shape = (count, *self.shape(int(rows.shape[1])))
        return LaterInputs(shape, lambda begins: self.cut(rows, begins))

    def cut(self, rows: Tensor, begins: Tensor, device: str | None = None) -> Tensor:
        """The windows that begin at these rows; on a device where one is named."""
        steps = tensor_of(array("q", range(self.window)), (1, self.window))
        positions = (begins.reshape(-1, 1) + steps).reshape(-1)
        windows = gathered(rows, positions, device).reshape(-1, self.window, rows.shape[1])
        return windows.permute(0, 2, 1).contiguous() if self.first else windows


def stretches_in(part: range, begins: Sequence[int]) -> tuple[int, ...]:
    """The rows of a part that follow each other; `begins` are the first rows of the files."""
    inside = [begin for begin in begins if part.start < begin < part.stop]
    return tuple(high - low for low, high in pairwise([part.start, *inside, part.stop]))


@dataclass(frozen=True)
class Stretches:
    """Rows of several files: those of one follow each other, and no sample crosses to the next.

    Attributes:
        lengths: rows of each.
        ends: (stretches - 1,) int64: the samples up to the end of each.
        jumps: (stretches,) int64: what is added to the number of a sample for its first row.
    """

    lengths: tuple[int, ...]
    ends: Tensor
    jumps: Tensor

    @classmethod
    def of(cls, lengths: Sequence[int], steps: WindowSteps) -> Stretches | None:
        """None where all rows follow each other."""
        if len(lengths) < 2:
            return None
        samples = [0, *accumulate(map(steps.count, lengths))]
        rows = [0, *accumulate(lengths)]
        jumps = [row - sample for row, sample in zip(rows, samples[:-1], strict=False)]
        numbers = (tensor_of(array("q", some), (len(some),)) for some in (samples[1:-1], jumps))
        return cls(tuple(lengths), *numbers)

    def to(self, device: str) -> Stretches:
        """The same in the memory of a device."""
        return replace(self, ends=self.ends.to(device), jumps=self.jumps.to(device))

    def begins(self, indices: Tensor) -> Tensor:
        """The first rows of samples."""
        which = engine.searchsorted(self.ends, indices, right=True)
        return indices + engine.index_select(self.jumps, 0, which)

    def begins_of(self, numbers: Sequence[int]) -> list[int]:
        """The same without a tensor."""
        ends: list[int] = self.ends.tolist()
        jumps: list[int] = self.jumps.tolist()
        return [number + jumps[bisect_right(ends, number)] for number in numbers]


@dataclass(frozen=True)
class TimeSeries:
    """A split of a time series: sample i is the rows from i on, its target a later row's.

    Attributes:
        rows: (T, C) float32; `values` (T,) int64 or (T, K) float32.
        stretches: where they lie in several files; then sample i begins some rows later.
        device: where batches go; None: where the rows are.
    """

    rows: Tensor
    values: Tensor
    steps: WindowSteps
    stretches: Stretches | None = None
    device: str | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """The rows of each stretch."""
        return self.stretches.lengths if self.stretches else (int(self.rows.shape[0]),)

    @property
    def size(self) -> int:
        """The number of windows that have their target."""
        return sum(map(self.steps.count, self.lengths))

    @property
    def stored_targets(self) -> Tensor:
        """The targets of all samples."""
        if self.stretches is None:
            return self.values[self.steps.behind :]
        last = self.stretches.begins(engine.arange(self.size)) + self.steps.behind
        return engine.index_select(self.values, 0, last)

    def part(self, positions: range) -> TimeSeries:
        """The series between two rows, sharing memory."""
        low, high = positions.start, positions.stop
        lengths = stretches_in(positions, list(accumulate(self.lengths)))
        return TimeSeries(
            self.rows[low:high],
            self.values[low:high],
            self.steps,
            Stretches.of(lengths, self.steps),
        )

    def to(self, device: str) -> TimeSeries:
        """The same series in the memory of a device."""
        stretches = self.stretches and self.stretches.to(device)
        rows, values = self.rows.to(device), self.values.to(device)
        return replace(self, rows=rows, values=values, stretches=stretches, device=None)

    def staged(self, device: str) -> TimeSeries:
        """The same series where it is, whose batches go to a device."""
        return replace(self, device=device)

    def _begins(self, indices: Tensor) -> Tensor:
        return indices if self.stretches is None else self.stretches.begins(indices)

    def spans(self, indices: Tensor) -> Iterator[tuple[Tensor, list[int], int]]:
        """What a batch reads: of a tensor the first rows of stretches, and the rows of each."""
        # In plain numbers: a thread asks beside the steps, whose memory is planned to the byte.
        begins: list[int] = indices.tolist()
        if self.stretches is not None:
            begins = self.stretches.begins_of(begins)
        yield self.rows, begins, self.steps.window
        yield self.values, [begin + self.steps.behind for begin in begins], 1

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs float32 (B, window, C) or (B, C, window), targets int64 or float32."""
        begins = self._begins(indices)
        inputs = self.steps.cut(self.rows, begins, self.device)
        return inputs, gathered(self.values, begins + self.steps.behind, self.device)


@dataclass(frozen=True, kw_only=True)
class InTime:
    """The keys of tables whose rows may be a time series."""

    window: Annotated[
        int | None, "a sample is so many rows that follow each other; left out: one row"
    ] = None
    horizon: Annotated[
        int | None, "rows from the end of a window to that of its target; left out: 1"
    ] = None
    channels: Annotated[
        Literal["last", "first"],
        "a window is (rows, columns), as lstm and gru take it; `first`: (columns, rows), as "
        "conv1d does",
    ] = "last"

    @property
    def steps(self) -> WindowSteps | None:
        """How samples are cut out of rows; None where each row is one."""
        if self.window is None:
            return None
        horizon = 1 if self.horizon is None else self.horizon
        return WindowSteps(self.window, horizon, self.channels == "first")

    def check_steps(self, missing: str, how: str | None, seed: int) -> None:
        """Refuse what does not go with rows that follow each other; `how` is a key of split."""
        for name, value in (("window", self.window), ("horizon", self.horizon)):
            if value is not None and not 1 <= value <= MOST:
                raise ConfigError(f"{name} must be 1 to {MOST}, got {value}", code="E104")
        if self.window is None:
            if self.horizon is not None or self.channels == "first":
                name = "channels" if self.horizon is None else "horizon"
                raise ConfigError(f"{name} is of a time series and needs window", code="E104")
            return
        if missing == "drop":
            raise ConfigError(
                "missing: drop would join rows that do not follow each other into one window; "
                "`mean` fills gaps",
                code="E104",
            )
        if how or seed:
            name = f"split: {how}" if how else "seed"
            raise ConfigError(
                f"{name} would mix rows, and a time series is split in its order; leave it out",
                code="E104",
            )
