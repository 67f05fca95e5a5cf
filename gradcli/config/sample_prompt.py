"""`train.sample` beside the data: a prompt that a model of this text can go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.config.crosscheck import location_of
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.train.job import TrainSettings
from gradcli.train.spelling import unit_of

if TYPE_CHECKING:
    from gradcli.data import DataSpec, Source


def prompt_fits(
    root: YamlNode,
    settings: TrainSettings,
    source: Source | None,
    facts: DataSpec | None,
    report: ErrorReport,
) -> None:
    """Check that the data is text and that its vocabulary has the prompt's characters."""
    if settings.sample is None or facts is None:
        return
    prompt = settings.sample.prompt
    unit = unit_of(facts, source)
    section = location_of(root, "train", "sample")
    node, prefix = root.at(("train", "sample", "prompt"))
    location = node.location if len(prefix) == 3 else section
    if unit is None:
        report.error(
            "E109",
            "train.sample: only a model of text writes on behind a prompt; this data is no text",
            section,
            notes=("leave train.sample out", "`gradcli predict RUN FILE` applies a trained model"),
        )
    elif not prompt:
        report.error(
            "E104", "train.sample.prompt must have at least one character, got ''", location
        )
    elif unit == "characters":
        unknown = next((c for c in prompt if c not in facts.labels), None)
        if unknown is not None:
            report.error(
                "E109",
                f"train.sample.prompt: the character {unknown!r} does not occur in the text",
                location,
                notes=("choose a prompt of its characters, or `data.unit: bytes`, which has all",),
            )
