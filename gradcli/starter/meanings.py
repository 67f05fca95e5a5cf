"""What the words of a config mean: sections, their keys and the names that they choose."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gradcli.config.containers import CONTAINERS
from gradcli.config.layers import LAYERS
from gradcli.config.lora import Lora
from gradcli.config.losses import LOSSES
from gradcli.config.optimizers import OPTIMIZERS
from gradcli.config.schedules import SCHEDULES
from gradcli.config.schema import Schema, schema_of
from gradcli.config.sections import Pretrained, top
from gradcli.data import DATASETS
from gradcli.train.job import TrainSettings
from gradcli.train.metrics import METRICS

Table = Mapping[str, Callable[..., Any]]

# The sections that name one of a table, and those that have the same keys in every config.
CHOICES: dict[str, Table] = {
    "data": DATASETS,
    "loss": LOSSES,
    "optim": OPTIMIZERS,
    "schedule": SCHEDULES,
}
FIXED: dict[str, Callable[..., Any]] = {
    "train": TrainSettings,
    "pretrained": Pretrained,
    "lora": Lora,
}
NAMES: dict[str, Table] = {
    "layer": {**LAYERS, **CONTAINERS},
    "loss": LOSSES,
    "metric": METRICS,
    "dataset": DATASETS,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
# Of the engine's constructors, whose formulas say what their arguments are.
KEYS = {
    "lr": "the learning rate, which the schedule multiplies",
    "weight_decay": "how much of each weight a step takes away, times the learning rate",
    "betas": "what the averages of gradients and of their squares keep at each step",
    "momentum": "the share of the last step that the next one keeps",
    "warmup": "steps, or a share of the run, in which the learning rate rises from 0",
    "final": "the share of the learning rate that is left at the end",
    "label_smoothing": "the share of certainty that each label gives to the other classes",
    "eps": "a small number that keeps a division from being one by 0",
}
_LINK = re.compile(r" ?\(?\[[^\]]*\]\([^)]*\)\)?")


def meaning(make: Callable[..., Any], key: str) -> str:
    """What a key of a section, layer or choice means; empty where nobody says."""
    schema = schema_of(make)
    if key not in schema.hints:
        return ""
    notes = getattr(schema.hints[key], "__metadata__", ())
    doc = next((note for note in notes if isinstance(note, str)), "")
    return plain(doc or KEYS.get(key, ""))


def sentence(make: Callable[..., Any]) -> str:
    """The first sentence about one of a table."""
    return first_sentence(schema_of(make))


def first_sentence(schema: Schema) -> str:
    """The first sentence of a documentation, on one line."""
    paragraph = " ".join(schema.doc.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z)0-9])\.(?= [A-Z]|$)", paragraph)[0]


def of_section(name: str) -> str:
    """What a key of the top level means."""
    return meaning(top, name)


def plain(doc: str) -> str:
    """A text of the documentation without its links."""
    return _LINK.sub("", doc).strip()


def short(doc: str) -> str:
    """The first part of a meaning, for a comment behind a value."""
    parts = [part for part in plain(doc).split("; ") if not part.startswith("see ")]
    return parts[0].removesuffix(".") if parts else ""
