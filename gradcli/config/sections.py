"""The sections of a config: the top level, the named choices, `train:`, `metrics:`, `expect:`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Annotated, Any

from gradcli.config.fields import NOT_EMPTY, matching
from gradcli.config.merge import full, without
from gradcli.config.node import ErrorReport, YamlNode, describe
from gradcli.config.schema import check, schema_of, suggestion
from gradcli.config.selection import Patterns
from gradcli.dataclass import dataclass
from gradcli.engine.kind import Bound
from gradcli.errors import GradcliError
from gradcli.numerals import SMALLEST, becomes_zero
from gradcli.train.changeable import FORKS, Changeable
from gradcli.train.job import COMPARISONS, Expectation, TrainSettings

VERSION = 1

RunName = Annotated[
    str,
    matching(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"),
    Bound("1 to 100 letters, digits, '.', '_' or '-', beginning with a letter or digit"),
]


def top(
    gradcli: Annotated[
        int, Bound(f"the version of the config format, {VERSION}"), "the config format of this file"
    ],
    data: Annotated[Any, "a dataset by `name` and its keys; see `data` below"],
    model: Annotated[list[Any], NOT_EMPTY, Bound("a list of at least one layer"), "the layers"],
    loss: Annotated[Any, "see `Losses` below"],
    optim: Annotated[Any, "the optimizer", Changeable(True, but=("name", "no_decay", "groups"))],
    train: Annotated[Any, "length, batch size, evaluation and checkpoints of the training"],
    name: Annotated[RunName, "name of the runs; by default the file's name"] = "run",
    schedule: Annotated[Any, "how the learning rate changes over the run", FORKS] = "constant",
    metrics: Annotated[
        list[str | dict[str, Any]],
        Bound("a list of metric names"),
        "figures on `val` and `test`, in addition to the loss; see `Metrics` below",
    ] = [],  # noqa: B006
    expect: Annotated[
        dict[str, str],
        Bound('a map such as {val.accuracy: ">= 0.97"}'),
        "figures that the run must reach; a miss ends with exit code 6",
    ] = {},  # noqa: B006
    vars: Annotated[
        dict[str, Any], Bound("a map from names to values"), "values that you can use as `$vars.x`"
    ] = {},  # noqa: B006
    code: Annotated[
        list[str] | str,
        Bound("a Python file or a list of them"),
        "your own layers, losses, metrics and datasets, relative to this file: "
        "[own-code.md](own-code.md)",
    ] = [],  # noqa: B006
    blocks: Annotated[
        dict[str, Any],
        Bound("a map from names to blocks"),
        "named groups of layers, with parameters; see below",
    ] = {},  # noqa: B006
    freeze: Annotated[
        Patterns, "patterns of the parameters that stay fixed, such as `block.0-8.*`"
    ] = [],  # noqa: B006
    pretrained: Annotated[
        Any,
        "initial weights of a new run: `from` is a safetensors file, the folder of a published "
        "model, a checkpoint of gradcli or a run such as `mnist@best`, relative to this file or to "
        "the current folder; `layers` are patterns of the weights to load by name (by default "
        "all); `optimizer: true` also loads the optimizer's state, and the schedule starts over "
        "([runs.md](runs.md))",
    ] = None,
    lora: Annotated[
        Any,
        "low-rank matrices to train beside the linear layers that `match`, instead of all "
        "weights ([pretrained.md](pretrained.md#fine-tuning-a-part))",
    ] = None,
    extends: Annotated[
        Any, "a base file, or a list of them, that this file overrides; relative to this file"
    ] = None,
) -> None:
    """The keys of a config file."""


@dataclass(frozen=True)
class Pretrained:
    """Where the first weights come from, of which layers, and whether the optimizer's state too."""

    from_: Annotated[str, "a safetensors file, a folder of a published model, or a run"]
    layers: Annotated[Patterns, "patterns of the weights to load; by default all"] = field(
        default_factory=list
    )
    optimizer: Annotated[bool, "load the optimizer's state too"] = False


# Keys that people write at the top level or in `train:`, and where they belong.
MISPLACED = {
    **{key: f"train.{key}" for key in schema_of(TrainSettings).hints},
    "batch_size": "train.batch",
    "lr": "optim.lr",
    "learning_rate": "optim.lr",
    "momentum": "optim.momentum",
    "weight_decay": "optim.weight_decay",
    "warmup": "schedule.warmup",
    "device": "the option --device",
    "threads": "the option --threads",
}


@dataclass(frozen=True)
class NamedSection:
    """A section that names one of a table: its name, all its values, and what they make."""

    name: str
    values: Mapping[str, Any]
    instance: Any

    def as_dict(self) -> dict[str, Any]:
        """The section as YAML would have it, with every key."""
        return {
            "name": self.name,
            **{key: plain_value(value) for key, value in self.values.items()},
        }


def plain_value(value: Any) -> Any:
    """Convert a value to YAML types: no tuples, no paths."""
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain_value(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def choose(
    section: str,
    node: YamlNode | None,
    table: Mapping[str, Callable[..., Any]],
    report: ErrorReport,
) -> NamedSection | None:
    """Build the entry of `table` that a section names, with the section's values."""
    if node is None or node.broken:
        return None
    node = full(node)
    name = node.map().get("name")
    if name is None or not isinstance(name.value, str):
        if name is None or not name.broken:
            _nameless(section, node, name, table, report)
        return None
    if name.value not in table:
        owner, colon, kind = section.rpartition(": ")
        report.error(
            "E102",
            f"{owner}{colon}no {kind} is called '{name.value}'",
            name.location,
            caret=suggestion(name.value, table),
            notes=(f"known here: {', '.join(table)}",),
        )
        return None
    make = table[name.value]
    title = f"{section} ({name.value})"
    values = check(without(node, "name"), schema_of(make), f"{section}.", report, title)
    if values is None:
        return None
    try:
        return NamedSection(name.value, values, make(**values))
    except (ValueError, GradcliError) as error:
        words = re.findall(r"\w+", str(error))
        key = next((node.keys[word] for word in words if word in node.keys), None)
        location = key or node.location_quoted_in(str(error)) or node.location
        report.error("E104", f"{title}: {error}", location)
        return None


def _nameless(
    section: str,
    node: YamlNode,
    name: YamlNode | None,
    table: Mapping[str, Any],
    report: ErrorReport,
) -> None:
    value = describe(name or node)
    if name is None and isinstance(node.value, dict):
        value = "a map without name"
    report.error(
        "E104",
        f"{section} must be a name or {{name: ..., keys}}, got {value}",
        (name or node).location,
        notes=(f"names: {', '.join(table)}",),
    )


def settings(node: YamlNode | None, report: ErrorReport) -> TrainSettings | None:
    """The `train:` section."""
    if node is None or node.broken:
        return None
    if not isinstance(node.value, dict):
        report.error("E104", f"train must be a map, got {describe(node)}", node.location)
        return None
    epochs, steps = node.map().get("epochs"), node.map().get("steps")
    both = [item for item in (epochs, steps) if item is not None and item.value is not None]
    if len(both) == 2:
        report.error(
            "E109",
            "train.epochs and train.steps both say how long; keep one of them",
            node.keys["steps"],
            notes=(
                f"epochs stands at {node.keys['epochs']}",
                "a value from another file goes away with null: -s train.epochs=null",
            ),
        )
    elif not both and not any(item and item.broken for item in (epochs, steps)):
        report.error("E104", "train needs epochs or steps, to know how long", node.location)
    away = {key: home for key, home in MISPLACED.items() if not home.startswith("train.")}
    values = check(node, schema_of(TrainSettings), "train.", report, elsewhere=away)
    return None if values is None else TrainSettings(**values)


_BOUND = re.compile(r"\s*(>=|<=|>|<)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*")


def expectations(node: YamlNode | None, report: ErrorReport) -> tuple[Expectation, ...]:
    """Read the `expect:` map: `{val.accuracy: ">= 0.975"}`."""
    result = []
    for metric, item in (node.map() if node else {}).items():
        match = _BOUND.fullmatch(item.value) if isinstance(item.value, str) else None
        value = _number(match.group(2)) if match else None
        if match and value is not None:
            result.append(Expectation(metric, match.group(1), value))
        elif match:
            report.error(
                "E104",
                f"expect.{metric}: {match.group(2)} is no number that float64 holds; those are 0 "
                f"and {SMALLEST} to 1.8e308",
                item.location,
            )
        elif isinstance(item.value, str):
            report.error(
                "E104",
                f"expect.{metric} must be a comparison ({', '.join(COMPARISONS)}) and a number, "
                f"such as '>= 0.97', got {describe(item)}",
                item.location,
            )
    return tuple(result)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and not becomes_zero(text, value) else None
