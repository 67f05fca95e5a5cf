"""The `metrics:` list: names, or maps with keys, each made and fit for the task."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.config.loss_fits import classes_of, target_kind
from gradcli.config.merge import without
from gradcli.config.node import ErrorReport, YamlNode, describe
from gradcli.config.own_metric import CheckedMetric
from gradcli.config.schema import check, schema_of, suggestion
from gradcli.config.sections import NamedSection, plain_value
from gradcli.errors import Location, ShapeError
from gradcli.train.metrics import METRICS, Metric, Task
from gradcli.train.spelling import token_lengths
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data import DataSpec, Source

Table = Mapping[str, Callable[..., Metric]]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def task_of(facts: DataSpec, source: Source | None) -> Task:
    """What the data asks for."""
    if target_kind(facts) == "values":
        return Task("values", facts.target)
    text = bool(facts.target) and facts.input_kind == "index"
    return Task("labels", facts.target, classes_of(facts) or 0, text, token_lengths(facts, source))


def choose_metrics(
    node: YamlNode | None, task: Task | None, report: ErrorReport, own: Table | None = None
) -> dict[str, NamedSection]:
    """Read the metrics, by the name of their figure."""
    table: Table = ChainMap[str, Any](dict(own or {}), METRICS)
    choices: dict[str, NamedSection] = {}
    for item in node.list() if node else []:
        entry = _kind_and_fields(item, table, report)
        if entry is None:
            continue
        kind, fields, location = entry
        name, fields = _name(kind, fields, report)
        values = check(fields, schema_of(table[kind]), f"metric {kind}: ", report)
        if name in choices:
            report.error(
                "E106",
                f"metric '{name}' is listed twice",
                location,
                notes=("two of a kind need names of their own: {f1: {name: f1_macro, ...}}",),
            )
        elif values is not None:
            metric = _metric(table[kind], values, name, task, location, report)
            if metric is not None:
                choices[name] = NamedSection(kind, values, metric)
    return choices


def _metric(
    make: Callable[..., Metric],
    values: Mapping[str, Any],
    name: str,
    task: Task | None,
    location: Location,
    report: ErrorReport,
) -> Metric | None:
    """The metric, fit for the task; one of the user's own is tried."""
    try:
        metric = make(**values)
        misfit = metric.misfit(task) if task else None
        if misfit:
            problem, cure = misfit
            report.error("E109", f"metric '{name}' {problem}", location, caret=cure)
        elif task and isinstance(metric, CheckedMetric):
            metric.attempt(task)
        if misfit:
            return None
        return metric.for_task(task) if task else metric
    except ShapeError as error:
        error.location = error.location or location
        report.errors.append(error)
        return None


def written_metrics(metrics: Mapping[str, NamedSection]) -> list[Any]:
    """The list as YAML would have it, with every key."""
    return [_in_full(name, choice) for name, choice in metrics.items()]


def _in_full(name: str, metric: NamedSection) -> Any:
    fields = {key: plain_value(value) for key, value in metric.values.items()}
    if name != metric.name:
        fields["name"] = name
    return {metric.name: fields} if fields else name


def _kind_and_fields(
    node: YamlNode, table: Table, report: ErrorReport
) -> tuple[str, YamlNode, Location] | None:
    """Read kind and keys of `name`, `name: value` or `name: {keys}`."""
    if node.broken or not isinstance(node.value, str | dict):
        return None  # the top level says so
    entry = node.entry()
    if entry is None:
        _not_a_metric(node, report)
        return None
    kind, value, location = entry
    if kind not in table:
        report.error(
            "E102",
            f"no metric is called '{kind}'",
            location,
            caret=suggestion(kind, table),
            notes=(f"metrics: {', '.join(table)}; the loss is always measured",),
        )
        return None
    if value.broken:
        return None
    if isinstance(value.value, dict):
        return kind, value, location
    first = schema_of(table[kind]).first
    if first is None:
        report.error("E104", f"metric {kind} takes no value, got {describe(value)}", value.location)
        return None
    return kind, YamlNode({first: value}, value.location, {first: value.location}), location


def _not_a_metric(node: YamlNode, report: ErrorReport) -> None:
    keys = list(node.map())
    inner = ", ".join(f"{key}: ..." for key in keys[1:])
    report.error(
        "E104",
        f"a metric is a name, name: value or name: {{keys}}, got a map of "
        f"{quantity(len(keys), 'key')}",
        node.location,
        notes=(f"keys go inside: {keys[0]}: {{{inner}}}",) if keys else (),
    )


def _name(kind: str, fields: YamlNode, report: ErrorReport) -> tuple[str, YamlNode]:
    """What the figure is called, and the metric's keys without that."""
    node = fields.map().get("name")
    if node is None:
        return kind, fields
    good = isinstance(node.value, str) and _NAME.fullmatch(node.value) and node.value != "loss"
    if not good and not node.broken:
        report.error(
            "E104",
            f"metric {kind}: name must be letters, digits, _ or -, beginning with a letter, "
            f"and not loss, got {describe(node)}",
            node.location,
        )
    return str(node.value) if good else kind, without(fields, "name")
