"""Time series: samples are windows of rows that follow each other."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from gradcli import engine
from gradcli.data.samples import tensor_of
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import quantity, verb

MOST = 1 << 20  # rows of a window, and to the target


@dataclass(frozen=True)
class Steps:
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

    def sizes(self, parts: Mapping[str, range], source: str) -> dict[str, int]:
        """The samples of each split; none may be without."""
        for name, part in parts.items():
            if not self.count(len(part)):
                self.refuse(len(part), f"{source}: the {name} split")
        return {name: self.count(len(part)) for name, part in parts.items()}

    def refuse(self, rows: int, what: str) -> None:
        """Too few rows for one sample with its target."""
        least = self.behind + 1
        raise DataError(
            f"{what} has {quantity(rows, 'row')}; a window of {self.window} and a horizon of "
            f"{self.horizon} need at least {least}",
            code="E305",
        )

    def windows(self, rows: Tensor, source: str) -> Tensor:
        """All windows of a new table, each one row further, whether it has a target or not."""
        count = rows.shape[0] - self.window + 1
        if count < 1:
            few = f"{quantity(rows.shape[0], 'row')} {verb(rows.shape[0])} too few"
            raise DataError(f"{source}: {few}: a window has {self.window}", code="E305")
        return self.cut(rows, engine.arange(count))

    def cut(self, rows: Tensor, begins: Tensor) -> Tensor:
        """The windows that begin at these rows."""
        steps = tensor_of(array("q", range(self.window)), (1, self.window))
        places = (begins.reshape(-1, 1) + steps).reshape(-1)
        made = engine.index_select(rows, 0, places).reshape(-1, self.window, rows.shape[1])
        return made.permute(0, 2, 1).contiguous() if self.first else made


@dataclass(frozen=True)
class Series:
    """A split of a time series: sample i is the rows from i on, its target a later row's.

    Attributes:
        rows: (T, C) float32; `values` (T,) int64 or (T, K) float32.
    """

    rows: Tensor
    values: Tensor
    steps: Steps

    @property
    def size(self) -> int:
        """The number of windows that have their target."""
        return self.steps.count(int(self.rows.shape[0]))

    @property
    def stored_targets(self) -> Tensor:
        """The targets of all samples."""
        return self.values[self.steps.behind :]

    def part(self, positions: range) -> Series:
        """The series between two rows, sharing memory."""
        low, high = positions.start, positions.stop
        return replace(self, rows=self.rows[low:high], values=self.values[low:high])

    def to(self, device: str) -> Series:
        """The same series in the memory of a device."""
        return replace(self, rows=self.rows.to(device), values=self.values.to(device))

    def spans(self, indices: Tensor) -> Iterator[tuple[Tensor, list[int], int]]:
        """What a batch reads: of a tensor the first rows of stretches, and the rows of each."""
        yield self.rows, indices.tolist(), self.steps.window
        yield self.values, (indices + self.steps.behind).tolist(), 1

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs float32 (B, window, C) or (B, C, window), targets int64 or float32."""
        inputs = self.steps.cut(self.rows, indices)
        return inputs, engine.index_select(self.values, 0, indices + self.steps.behind)


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
    def steps(self) -> Steps | None:
        """How samples are cut out of rows; None where each row is one."""
        if self.window is None:
            return None
        horizon = 1 if self.horizon is None else self.horizon
        return Steps(self.window, horizon, self.channels == "first")

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
