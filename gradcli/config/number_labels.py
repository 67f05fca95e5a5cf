"""Classes of a table that are numbers: `task: regression` may have been forgotten."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli.config.crosscheck import place_of
from gradcli.config.node import Node, Report
from gradcli.data.columns import number_of

if TYPE_CHECKING:
    from gradcli.data import Facts

CURE = "data.task: regression predicts a number"
FEW_CLASSES = 20  # marks, stars and days are counted like this and may well be classes
FEW_SAMPLES = 5  # of a class


def may_be_values(root: Node, facts: Facts) -> bool:
    """Whether the target of a table could be numbers to predict as well."""
    data = root.map()["data"]
    if data.map().get("name", data).value != "csv" or not facts.labels:
        return False
    return not any(math.isnan(number_of(label)) for label in facts.labels)


def lint(root: Node, facts: Facts, report: Report) -> None:
    """Warn of many classes with few samples each, all of them numbers."""
    classes, samples = len(facts.labels), sum(facts.sizes.values())
    if classes > FEW_CLASSES and classes * FEW_SAMPLES > samples and may_be_values(root, facts):
        report.warn(
            "W107",
            f"data.target has {classes} different numbers in {samples} rows, each a class of its "
            "own",
            place_of(root, "data", "target"),
            caret=CURE,
        )
