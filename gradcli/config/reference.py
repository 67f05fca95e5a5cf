"""The tables of docs/config.md, docs/warnings.md and docs/errors.md, written from what checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from gradcli import error_codes
from gradcli.config import cautions
from gradcli.config.containers import CONTAINERS
from gradcli.config.fields import describe_type
from gradcli.config.inits import INITS
from gradcli.config.layer import LayerSpec
from gradcli.config.layers import LAYERS
from gradcli.config.losses import LOSSES
from gradcli.config.optimizers import OPTIMIZERS
from gradcli.config.schedules import SCHEDULES
from gradcli.config.schema import Schema, schema_of
from gradcli.config.sections import top
from gradcli.data import DATASETS
from gradcli.train.job import TrainSettings
from gradcli.train.metrics import METRICS

_TABLE = re.compile(r"(<!-- keys: (\w+) -->\n)(?:\|.*\n)*")


def renewed(text: str) -> str:
    """Rewrite each table behind `<!-- keys: NAME -->` in a document."""
    return _TABLE.sub(lambda match: match[1] + "\n".join(_TABLES[match[2]]()) + "\n", text)


def _section(make: Callable[..., Any]) -> Iterator[str]:
    """The keys of a section, with their types and meanings."""
    schema = schema_of(make)
    yield from ("| Key | Takes | Meaning |", "|---|---|---|")
    for key, hint in schema.hints.items():
        doc = schema.model.model_fields[key].description or ""
        accepts = "" if Any in (hint, *get_args(hint)) else _cell(describe_type(hint))
        yield f"| {_key(schema, key)} | {accepts} | {_cell(doc)} |"


def _rows(table: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    """The names of a table, each with its keys and meaning."""
    yield from ("| Name | Keys | Meaning |", "|---|---|---|")
    for name, make in table.items():
        yield f"| `{name}` | {_keys(make)} | {_meaning(make)} |"


def _layers() -> Iterator[str]:
    """The layers, with what goes into each."""
    yield from ("| Layer | Takes | Keys | Meaning |", "|---|---|---|---|")
    tables: Mapping[str, Callable[..., Any]] = {**LAYERS, **CONTAINERS}
    for name, make in tables.items():
        accepts = ", ".join(make.forms) if isinstance(make, LayerSpec) else "anything"
        yield f"| `{name}` | {accepts} | {_keys(make)} | {_meaning(make)} |"


def _keys(make: Callable[..., Any]) -> str:
    schema = schema_of(make)
    return _cell(", ".join(_key(schema, key) + _alternatives(schema, key) for key in schema.hints))


def _meaning(make: Callable[..., Any]) -> str:
    return _cell(" ".join(schema_of(make).doc.split()))


def _key(schema: Schema, key: str) -> str:
    """A key with its default."""
    field = schema.model.model_fields[key]
    if field.is_required():
        return f"`{key}` (required)"
    default = field.get_default(call_default_factory=True)
    return f"`{key}`" if default in (None, "") else f"`{key}: {_format(default)}`"


def _alternatives(schema: Schema, key: str) -> str:
    """The other choices of a key that takes one of a few words."""
    hint, default = schema.hints[key], schema.model.model_fields[key].default
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(hint) is not Literal:
        return ""
    return f" (or {', '.join(f'`{_format(each)}`' for each in get_args(hint) if each != default)})"


def _format(value: Any) -> str:
    """Format a value as YAML, with numbers as short as possible."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format, value))}]"
    if isinstance(value, float):
        return re.sub(r"e-0", "e-", f"{value:g}")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace("\t", "\\t")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "top": lambda: _section(top),
    "train": lambda: _section(TrainSettings),
    "datasets": lambda: _rows(DATASETS),
    "losses": lambda: _rows(LOSSES),
    "optimizers": lambda: _rows(OPTIMIZERS),
    "schedules": lambda: _rows(SCHEDULES),
    "layers": _layers,
    "metrics": lambda: _rows(METRICS),
    "inits": lambda: _rows(INITS),
    "warnings": cautions.table,
    "errors": error_codes.table,
}
