"""What log.jsonl tells, gathered in one pass: a curve of each figure, and texts over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter, lt, methodcaller
from typing import Any, NamedTuple

from gradcli.report.fields import text, whole
from gradcli.report.run_files import LARGEST, RunFiles, number
from gradcli.report.thinning import Curve

# Of a step, in the order of the page.
OF_STEPS = ("loss", "lr", "grad_norm", "samples_per_second", "wait_data")
MOST_FIGURES = 32
MOST_TEXTS = 40
MOST_ODD = 20


class Text(NamedTuple):
    """What a model of text wrote at a step, behind its prompt."""

    step: int
    prompt: str
    text: str


class LogCurves:
    """The curves of a run.

    Attributes:
        steps: by the figure of a step, such as `grad_norm`.
        evaluations: by the figure of an evaluation, such as `val.accuracy`.
        texts: samples of text, the first and the last ones.
        odd: figures that were not finite: step, name and word.
        odd_count: how many there were.
    """

    def __init__(self) -> None:
        self.steps: dict[str, Curve] = {}
        self.evaluations: dict[str, Curve] = {}
        self.texts: list[Text] = []
        self.odd: list[tuple[int, str, str]] = []
        self.odd_count = 0
        self._newest = {"step": 0, "eval": 0}

    def add(self, records: list[dict[str, Any]]) -> None:
        """More records of the log, in its order."""
        for event, rows in _stretches(records):
            if event == "step":
                self._add(self.steps, event, rows, OF_STEPS)
            elif event == "eval":
                keys = {key: None for row in rows for key in row if key.startswith("val.")}
                self._add(self.evaluations, event, rows, list(keys))
            elif event == "sample":
                self._texts(rows)

    def _add(
        self, curves: dict[str, Curve], event: str, rows: list[dict[str, Any]], keys: Iterable[str]
    ) -> None:
        rows = self._rising(event, rows)
        steps = _column(rows, "step")
        for key in keys:
            values = _column(rows, key)
            if key not in curves and len(curves) >= MOST_FIGURES:
                continue
            if _all_finite(values):
                curves.setdefault(key, Curve()).extend(steps, values)
                continue
            finite = [(step, number(value)) for step, value in zip(steps, values, strict=True)]
            pairs = [(step, value) for step, value in finite if value is not None]
            if pairs:
                curve = curves.setdefault(key, Curve())
                curve.extend([step for step, _ in pairs], [value for _, value in pairs])
        for row in filter(_is_odd, rows):
            self._note_odd(row)

    def _rising(self, event: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows whose steps rise: curves go to the right."""
        steps = _column(rows, "step")
        newest = self._newest[event]
        rising = set(map(type, steps)) == {int} and all(map(lt, [newest, *steps], steps))
        if rising and steps[-1] < 2**53:
            self._newest[event] = steps[-1]
            return rows
        good = []
        for row in rows:
            step = whole(row.get("step"))
            if step is not None and newest < step < 2**53:
                good.append(row)
                newest = step
        self._newest[event] = newest
        return good

    def _note_odd(self, row: dict[str, Any]) -> None:
        words = row["nonfinite"] if isinstance(row["nonfinite"], dict) else {}
        for key, word in words.items():
            self.odd_count += 1
            if len(self.odd) < MOST_ODD:
                self.odd.append((row["step"], text(key), text(word)))

    def _texts(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            step = whole(row.get("step"))
            if step is not None and isinstance(row.get("text"), str):
                self.texts.append(Text(step, text(row.get("prompt")), text(row["text"])))
        if len(self.texts) > MOST_TEXTS:  # how it began, and how it ended
            half = MOST_TEXTS // 2
            self.texts = self.texts[:half] + self.texts[-half:]


def _stretches(records: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Neighbours of one event; in a long log whole blocks are."""
    events = _column(records, "event")
    if events.count("step") == len(events):
        yield "step", records
        return
    for event, group in groupby(records, _event):
        yield event, list(group)


def _column(rows: list[dict[str, Any]], key: str) -> list[Any]:
    """What each row has under a key."""
    try:
        return list(map(itemgetter(key), rows))
    except KeyError:
        return [row.get(key) for row in rows]


_is_odd = methodcaller("__contains__", "nonfinite")


def _event(record: dict[str, Any]) -> str:
    event = record.get("event")
    return event if isinstance(event, str) else ""


def _all_finite(values: list[Any]) -> bool:
    """Whether these are floats that can be drawn as they stand, as of every log of ours."""
    if set(map(type, values)) != {float}:
        return False
    return bool(max(values) <= LARGEST and min(values) >= -LARGEST)


def log_curves(run: RunFiles) -> LogCurves:
    """The curves of a run's log."""
    curves = LogCurves()
    for records in run.blocks():
        curves.add(records)
    return curves
