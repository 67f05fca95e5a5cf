"""One HTML page on a run, whole in itself: made of the run's files alone, and opened offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gradcli.report.charts import Chart, charts
from gradcli.report.classes import classes
from gradcli.report.document import document
from gradcli.report.environment import environment
from gradcli.report.fields import text, whole
from gradcli.report.head import blank, head
from gradcli.report.log_curves import LogCurves, log_curves
from gradcli.report.model import model
from gradcli.report.run_files import RunFiles
from gradcli.report.settings import SettingsTable, settings
from gradcli.report.times import LayerTime
from gradcli.report.values import Scatter, scatters
from gradcli.report.worst import worst
from gradcli.train.directory import best_and_last
from gradcli.train.safetensors_file import RawTensor

T = TypeVar("T")
# What files can hold that their reader did not foresee; a page leaves that part out and says so.
ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def page(run: RunFiles, live: str = "", times: Sequence[LayerTime] = ()) -> str:
    """Render the page as HTML; a live page gets its changes from the address `live`.

    `times` are those of the layers, if they were measured.
    """
    parts = _Parts(run)
    curves = parts.make("log.jsonl", lambda: log_curves(run), LogCurves())
    values = parts.make("resolved.yaml", lambda: settings(run), SettingsTable())
    best = best_and_last(run.path)[0]
    no_charts: list[Chart] = []
    no_rows: list[tuple[str, str]] = []
    record = run.evaluation
    facts = {
        "head": parts.make("status.json", lambda: head(run, values.expect), blank(run)),
        "charts": parts.make("log.jsonl", lambda: charts(curves, best), no_charts),
        "curves": curves,
        "texts": curves.texts,
        "best": best,
        "values": values,
        "config_text": run.config_text,
        "model": parts.make("plan.json", lambda: model(run.plan), None),
        "environment": parts.make(
            "manifest.json", lambda: environment(run.manifest, run.status), no_rows
        ),
        **_of_task(parts, record, run.tensors() if record else {}),
        "times": times,
        "split": text(record.get("split")),
        "evaluated": whole(record.get("step")),
    }
    return document(
        "page.html.j2",
        {**facts, "parts": _contents(facts), "problems": run.problems},
        {"live": live, "charts": [chart.drawing() for chart in facts["charts"]]},
        scripts=["templates/live.js"] if live else [],
        live=bool(live),
    )


def _of_task(
    parts: _Parts, record: dict[str, Any], tensors: dict[str, RawTensor]
) -> dict[str, Any]:
    """The last evaluation, as its kind of task is shown."""
    no_scatters: list[Scatter] = []
    task, file = record.get("task"), "evaluation.json"
    of_classes = parts.make(file, lambda: classes(record, tensors), None)
    return {
        "classes": of_classes if task == "classes" else None,
        "kept": max(1, sum(part.samples for part in of_classes.bins)) if of_classes else 1,
        "scatters": parts.make(file, lambda: scatters(record, tensors), no_scatters)
        if task == "values"
        else [],
        "worst": parts.make(file, lambda: worst(record, tensors), None),
    }


class _Parts:
    """Makes the parts of a page, each from a file that anybody may have written."""

    def __init__(self, run: RunFiles) -> None:
        self._run = run

    def make(self, file: str, part: Callable[[], T], otherwise: T) -> T:
        try:
            return part()
        except ODD as error:
            self._run.note(file, f"{file} is damaged: {type(error).__name__}")
            return otherwise


def _contents(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The parts that this page has, by their ids."""
    present = {
        "curves": ("Curves", facts["charts"]),
        "texts": ("Text", facts["texts"]),
        "classes": ("Classes", facts["classes"]),
        "values": ("Values", facts["scatters"]),
        "worst": ("Most wrong", facts["worst"]),
        "model": ("Model", facts["model"]),
        "times": ("Time", facts["times"]),
        "config": ("Config", facts["values"].sections),
        "environment": ("Environment", facts["environment"]),
    }
    return [(name, title) for name, (title, there) in present.items() if there]
