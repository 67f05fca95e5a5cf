"""`--against FILE`: the figures of now beside those of an earlier `gradcli bench --json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.errors import ConfigError, ExpectationError
from gradcli.wording import quantity

FORMAT = "gradcli bench 1"
LARGEST = 1 << 24  # bytes of a file that is read
# What must be the same in both; other differences are what a comparison is for.
CONDITIONS = ("name", "batch", "device", "is", "instruction_set", "threads")
# Not ours: PyTorch's own times are no threshold.
FOREIGN = "torch"


@dataclass(frozen=True)
class TimeComparison:
    """One median in milliseconds, then and now."""

    name: str
    before: float
    now: float

    @property
    def percent(self) -> float:
        """How much longer it takes now; below 0 it is faster."""
        return 100 * (self.now / self.before - 1)

    def as_json(self) -> dict[str, Any]:
        """The two times and the change."""
        return {
            "name": self.name,
            "before_ms": self.before,
            "ms": self.now,
            "percent": round(self.percent, 1),
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.now:.4f} ms, was {self.before:.4f} ms ({self.percent:+.1f}%)"


def read(path: Path) -> dict[str, Any]:
    """Read an earlier measurement; reject any other file before measuring anything."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"--against: cannot read {path}: {error.strerror}", code="E127") from None
    if len(data) > LARGEST:
        raise _refusal(path, f"it is larger than {LARGEST:,} bytes")
    try:
        measurement = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _refusal(path, f"it is no JSON ({error})") from None
    if not isinstance(measurement, dict) or measurement.get("format") != FORMAT:
        raise _refusal(path, f'it has no "format": "{FORMAT}"')
    if not _totals(measurement):
        raise _refusal(path, "it has no times in milliseconds")
    return measurement


def _refusal(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"--against: {path} is not what `gradcli bench --json` prints: {reason}",
        code="E127",
        notes=("make one: gradcli bench CONFIG --json > FILE",),
    )


def same_conditions(path: Path, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to compare what was measured in another way."""
    for key in CONDITIONS:
        if earlier.get(key) != now.get(key):
            was, here = earlier.get(key, "nothing"), now.get(key, "nothing")
            raise ConfigError(
                f"--against: {path} was measured with {key} {was}, this is {key} {here}",
                code="E127",
            )


def compared(
    path: Path, earlier: Mapping[str, Any], now: Mapping[str, Any]
) -> list[TimeComparison]:
    """What both have measured, by name: the steps of a config, or the kernels."""
    figures = _pairs(_totals, earlier, now)
    if not figures:
        raise ConfigError(
            f"--against: {path} has nothing that is measured now: it has "
            f"{', '.join(_totals(earlier))}; now there are {', '.join(_totals(now))}",
            code="E127",
        )
    return figures


def layers(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[TimeComparison]:
    """The layers of a config in both; they explain, they are no thresholds."""
    return _pairs(_by_layer, earlier, now)


def check(
    path: Path, figures: list[TimeComparison], inside: list[TimeComparison], tolerance: float
) -> None:
    """Raise when a figure is slower than before by more than `tolerance` percent."""
    slower = [figure for figure in figures if figure.percent > tolerance]
    if not slower:
        return
    worst = sorted(inside, key=lambda figure: figure.before - figure.now)
    notes = [*slower[1:], *(figure for figure in worst if figure.percent > tolerance)]
    raise ExpectationError(
        f"{len(slower)} of {quantity(len(figures), 'time')} more than {tolerance:g}% above "
        f"{path}: {slower[0]}",
        notes=tuple(str(figure) for figure in notes),
    )


def _pairs(
    read_from: Callable[[Mapping[str, Any]], dict[str, float]],
    earlier: Mapping[str, Any],
    now: Mapping[str, Any],
) -> list[TimeComparison]:
    before, after = read_from(earlier), read_from(now)
    return [TimeComparison(name, before[name], after[name]) for name in after if name in before]


def _totals(measurement: Mapping[str, Any]) -> dict[str, float]:
    """The medians that count, by name."""
    steps = measurement.get("steps")
    if isinstance(steps, dict):
        rows = [(name, row) for name, row in steps.items() if not name.startswith(FOREIGN)]
    else:
        rows = _rows_by_name(measurement.get("items"))
    return _milliseconds(rows)


def _by_layer(measurement: Mapping[str, Any]) -> dict[str, float]:
    return _milliseconds(_rows_by_name(measurement.get("layers")))


def _rows_by_name(rows: object) -> list[tuple[str, Any]]:
    if not isinstance(rows, list):
        return []
    return [(str(row.get("name")), row) for row in rows if isinstance(row, dict)]


def _milliseconds(rows: list[tuple[str, Any]]) -> dict[str, float]:
    """The times of the rows that have one; anything else in a file is left alone."""
    times = {name: row.get("ms") for name, row in rows if isinstance(row, dict)}
    return {
        name: float(ms)
        for name, ms in times.items()
        if isinstance(ms, int | float) and not isinstance(ms, bool) and 0 < ms <= sys.float_info.max
    }
