"""A typed signature as a schema: pydantic judges the values, our sentences name the mistakes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, get_args

from gradcli.config.fields import describe_type, in_yaml
from gradcli.config.fitting import DoubtfulValue, fitting
from gradcli.config.node import ErrorReport, Path, YamlNode, describe
from gradcli.config.row import Row
from gradcli.dataclass import dataclass
from gradcli.registry import closest, did_you_mean

if TYPE_CHECKING:  # imported for what does not plainly fit
    from pydantic import BaseModel

# Words from other tools, by gradcli's own; of several rows the first whose name exists counts.
# Misspellings, and torch's names for keys, are recognised without a row.
SYNONYMS = {
    "p": "prob rate",
    "lr": "learning_rate learningrate step_size rate",
    "steps": "iterations",
    "out": "units out_features out_channels features filters channels hidden hidden_size size",
    "kernel": "pool_size size",
    "dim": "embedding_dim size",
    "weight_decay": "wd l2 decay",
    "model": "layers network",
    "loss": "criterion",
    "name": "type",
    "clip": "max_norm",
    "early_stop": "patience",
    "at": "milestones",
    "size": "output_size",
    "factor": "gamma downscale_factor",
    "times": "n count",
    "linear": "dense fc",
    "conv_transpose": "deconv",
    "upsample": "interpolate",
    "reshape": "unflatten view",
    "silu": "swish",
    "relusquared": "relu2 squared_relu",
    "negative_slope": "slope",
    "mse": "l2_loss",
    "l1": "mae",
    "kl": "kl_div",
    "bce": "binary_cross_entropy binary_crossentropy",
    "accuracy": "acc",
    "roc_auc": "auc auroc",
    "f1": "f1_score",
    "r2": "r2_score",
    "log_loss": "logloss",
    "confusion": "confusion_matrix",
    "median_error": "median_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "mae": "mean_absolute_error",
    "bits_per_character": "bpc",
    "bits_per_byte": "bpb",
    "precision": "amp dtype",
}


def suggestion(word: str, table: Mapping[str, object]) -> str:
    """A question that offers a known name: for a synonym, or for a near spelling."""

    def synonym(foreign: str) -> str:
        names = (name for name, words in SYNONYMS.items() if foreign in words.split())
        return next((f"did you mean '{name}'?" for name in names if name in table), "")

    plain = re.sub(r"([12]d|_loss)$", "", word.lower())  # conv2d is conv, l1_loss is l1
    misspelt = closest(word, " ".join(SYNONYMS.values()).split())
    return synonym(word.lower()) or did_you_mean(plain, table) or synonym(misspelt or "")


class Mistakes(Exception):  # noqa: N818 -- said where the place is known
    """What pydantic finds wrong with values."""

    def __init__(self, mistakes: Sequence[Any]) -> None:
        super().__init__()
        self.mistakes = mistakes


@dataclass(frozen=True)
class Schema:
    """What the parameters of one constructor say about the keys in YAML.

    Attributes:
        make: the constructor.
        parameters: what it takes, by key.
        hints: the type of each key, in order.
        names: what the constructor calls each key.
        doc: what the constructor says of itself, in the words of YAML.
    """

    make: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    hints: dict[str, Any]
    names: dict[str, str]
    doc: str

    @property
    def first(self) -> str | None:
        """The field that `name: value` fills."""
        return next(iter(self.hints), None)

    @cached_property
    def model(self) -> type[BaseModel]:
        """What pydantic makes of it."""
        from gradcli.config.model import model_of

        return model_of(self)

    def values(self, plain: Any) -> dict[str, Any]:
        """What a section says, by key; raises Mistakes."""
        try:
            text = json.dumps(plain, allow_nan=False, ensure_ascii=False)
            return self.fitting(json.loads(text.encode()))
        except (DoubtfulValue, ValueError):
            from gradcli.config.model import validated

            return validated(self, plain)

    def fitting(self, value: Any) -> dict[str, Any]:
        """The same where it is plain to see; raises DoubtfulValue elsewhere."""
        if type(value) is not dict or not value.keys() <= self.hints.keys():
            raise DoubtfulValue
        return {
            key: fitting(hint, value[key], schema_of) if key in value else self._default(key)
            for key, hint in self.hints.items()
        }

    def _default(self, key: str) -> Any:
        factory, parameter = self.factory(key), self.parameters[key]
        if factory is None and parameter.default is parameter.empty:
            raise DoubtfulValue
        if factory is not None:
            return factory()
        changeable = isinstance(parameter.default, list | dict)
        return copy.deepcopy(parameter.default) if changeable else parameter.default

    def factory(self, key: str) -> Callable[[], Any] | None:
        """The default factory of a key; None if it has a plain default."""
        fields = dataclasses.fields(self.make) if dataclasses.is_dataclass(self.make) else ()
        name = self.parameters[key].name
        factories = (field.default_factory for field in fields if field.name == name)
        return next((make for make in factories if make is not dataclasses.MISSING), None)


@cache
def schema_of(make: Callable[..., Any]) -> Schema:
    """The schema in the signature of `make`, or of what a row of a table makes."""
    row = make if isinstance(make, Row) else Row(make)
    hints = {key: in_yaml(parameter.annotation) for key, parameter in row.fields.items()}
    return Schema(row.make, row.fields, hints, row.keys, row.doc)


def check(
    node: YamlNode,
    schema: Schema,
    where: str,
    report: ErrorReport,
    title: str = "",
    elsewhere: Mapping[str, str] = types.MappingProxyType({}),
) -> dict[str, Any] | None:
    """The values for the constructor, or None after reporting every mistake in `node`.

    `where` begins the messages: 'optim.' or 'layer 3, linear: '; `title` says whose keys they are;
    `elsewhere` says where keys belong that are often put here.
    """
    broken = {path for path, item in node.walk() if item.broken}
    try:
        values = schema.values(node.plain())
    except Mistakes as error:
        for mistake in error.mistakes:
            _Mistake(node, schema, where, report, title, elsewhere).tell(mistake, broken)
        return None
    return None if broken else values


@dataclass(frozen=True)
class _Mistake:
    """Says one of pydantic's findings in our words, at its place."""

    node: YamlNode
    schema: Schema
    where: str
    report: ErrorReport
    title: str
    elsewhere: Mapping[str, str]

    def tell(self, mistake: Any, broken: set[Path]) -> None:
        path: Path = tuple(mistake["loc"])
        if any(path[: len(bad)] == bad or bad[: len(path)] == path for bad in broken):
            return
        if mistake["type"] == "extra_forbidden":
            self._unknown(path)
        elif mistake["type"] == "missing" and isinstance(path[-1], str):
            needs = describe_type(_keys_at(self.schema.hints, path[:-1])[path[-1]])
            owner, _ = self.node.at(path[:-1])
            self.report.error("E104", f"{self._name(path)} is missing: {needs}", owner.location)
        else:
            self._wrong(path)

    def _name(self, path: Path) -> str:
        return (self.where + ".".join(str(step) for step in path)).rstrip(".: ")

    def _unknown(self, path: Path) -> None:
        owner, _ = self.node.at(path[:-1])
        key, keys = str(path[-1]), _keys_at(self.schema.hints, path[:-1])
        title = self._name(path[:-1]) if len(path) > 1 else self.title or self.where
        self.report.error(
            "E103",
            f"unknown key '{key}' in {title.rstrip('.: ') or 'the config'}",
            owner.keys.get(key, owner.location),
            caret=self._belongs(path) or suggestion(key, keys),
            notes=(f"keys here: {', '.join(keys) or 'none'}",),
        )

    def _belongs(self, path: Path) -> str:
        here = {name: f"'{key}'" for key, name in self.schema.names.items()}
        home = {**here, **self.elsewhere}.get(str(path[0])) if len(path) == 1 else None
        return f"did you mean {home}?" if home else ""

    def _wrong(self, path: Path) -> None:
        """Report a value that its field does not take, at the item inside a list or map."""
        node, prefix = self.node.at(path)
        field = prefix[:1]
        while len(prefix) > len(field) and prefix[len(field)] in _keys_at(self.schema.hints, field):
            field = prefix[: len(field) + 1]
        keys = _keys_at(self.schema.hints, field[:-1])
        wants = describe_type(keys[str(field[-1])]) if field else "a map"
        item = prefix[len(field) :]
        inside = ""
        if item:
            inside = f" (item {item[-1] + 1})" if isinstance(item[-1], int) else f" for {item[-1]}"
        message = f"{self._name(field)} must be {wants}, got {describe(node)}{inside}"
        if any(e.message == message and e.location == node.location for e in self.report.errors):
            return  # each branch of a union reports the same value
        self.report.error("E104", message, node.location, caret=_hint(node, wants))


def _keys_at(hints: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The keys of the map at `path`; of a map that takes any key, none."""
    for step in path:
        inner = dataclass_in(hints.get(str(step)))
        if inner is None:
            return {}
        hints = schema_of(inner).hints
    return hints


def dataclass_in(hint: Any) -> type | None:
    """The dataclass among the choices of a type."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    return next(filter(None, map(dataclass_in, get_args(hint))), None)


def _hint(node: YamlNode, wants: str) -> str:
    """A way out for text that looks like something else, and for a share that is no percent."""
    if isinstance(node.value, float) and 0 < node.value <= 1 and "%" in wants:
        return f"write {100 * node.value:.12g}%"
    if not isinstance(node.value, str):
        return ""
    if node.value.lower() in ("yes", "on", "no", "off"):
        return "a truth value is written true or false"
    try:
        float(node.value)
    except ValueError:
        return ""
    return "quotes make it text: drop them" if node.quoted else ""
