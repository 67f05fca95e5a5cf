"""Labels that are numbers: values to predict, or classes that do not count from 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli.config.crosscheck import location_of
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.data.tabular.cells import number_of
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data import DataSpec

CURE = "data.task: regression predicts a number"
FEW_CLASSES = 20  # marks, stars and days are counted like this and may well be classes
FEW_SAMPLES = 5  # of a class


def may_be_values(root: YamlNode, facts: DataSpec) -> bool:
    """Whether the target of a table could be numbers to predict as well."""
    data = root.map()["data"]
    if data.map().get("name", data).value not in ("csv", "table") or not facts.labels:
        return False
    return not any(math.isnan(number_of(label)) for label in facts.labels)


def lint(root: YamlNode, facts: DataSpec, report: ErrorReport) -> None:
    """Warn of numbers that are hardly meant as the classes that they are taken for."""
    if facts.first_label:
        _lint_first(root, facts, report)
    classes, samples = len(facts.labels), sum(facts.sizes.values())
    if classes > FEW_CLASSES and classes * FEW_SAMPLES > samples and may_be_values(root, facts):
        report.warn(
            "W107",
            f"data.target has {quantity(classes, 'different number')} in "
            f"{quantity(samples, 'row')}, each a class of its own",
            location_of(root, "data", "target"),
            caret=CURE,
        )


def _lint_first(root: YamlNode, facts: DataSpec, report: ErrorReport) -> None:
    """Warn of classes below the first label; the model would have outputs for them."""
    first, classes = facts.first_label, facts.classes
    below = "class 0 has" if first == 1 else f"classes 0 to {first - 1} have"
    key = next((key for key in ("targets", "labels") if key in root.map()["data"].map()), "name")
    report.warn(
        "W109",
        f"the labels begin at {first}: {below} no sample, and the model gets "
        f"{quantity(classes or 0, 'output')}",
        location_of(root, "data", key),
        caret=f"labels count from 0: subtract {first}, or write data.classes: {classes}",
    )
