"""Data that trains and is probably not meant: sizes of splits, the order of a series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.config.crosscheck import location_of
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.data.split import parts_of
from gradcli.errors import Location
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data import DataSpec


def lint(root: YamlNode, facts: DataSpec, report: ErrorReport) -> None:
    """Warn of counts that look like percents or leave most samples, and of a series in disorder."""
    split = root.map()["data"].map().get("split")
    if facts.unused and split is not None:
        _lint_counts(
            parts_of(split.plain()), facts.unused, report, location_of(root, "data", "split")
        )
    if facts.step_back:
        report.warn(
            "W117",
            f"the rows of the series are not in the order of time: {facts.step_back}",
            location_of(root, "data", "window"),
            caret="sort the file, its oldest row first",
        )


def _lint_counts(
    parts: dict[str, int | str | bool], rest: int, report: ErrorReport, location: Location
) -> None:
    counts = [size for size in parts.values() if isinstance(size, int)]
    if len(counts) < len(parts):
        return
    total = sum(counts) + rest
    whole = quantity(total, "sample", form=",")
    if sum(counts) == 100:
        percents = ", ".join(f"{name}: {size}%" for name, size in parts.items())
        what, cure = f"takes 100 of {whole}", f"did you mean {{{percents}}}?"
    elif rest > total / 2:
        what = f"leaves {rest:,} of {whole} unused"
        cure = "percents such as 80% go by all"
    else:
        return
    report.warn("W116", f"data.split {what}: it has counts, not percents", location, caret=cure)
