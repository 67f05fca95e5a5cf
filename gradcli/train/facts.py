"""Read the facts of a run's data from a checkpoint and check each field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from gradcli.data.facts import VERSION, DataFacts
from gradcli.engine.kind import format_value
from gradcli.errors import CheckpointError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a map",
    "dataclass_type": "a map",
    "too_long": "fewer values",
}


@cache
def _adapter() -> TypeAdapter[DataFacts]:
    from pydantic import TypeAdapter

    return TypeAdapter(DataFacts)


def facts_of(value: object, source: str) -> DataFacts:
    """DataFacts from their JSON; an error names the checkpoint and the first wrong field."""
    from pydantic import ValidationError  # late: a new run reads no checkpoint

    version = value.get("version") if isinstance(value, Mapping) else VERSION
    if type(version) is int and version > VERSION:
        raise CheckpointError(
            f"{source}: facts.version: the checkpoint has {version}, this gradcli reads 1 to "
            f"{VERSION}",
            notes=("use the gradcli that wrote it, or a newer one",),
        )
    try:
        facts = _adapter().validate_json(json.dumps(value))
    except RecursionError:
        raise _unusable(source, (), "it is nested too deep") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _unusable(source, _key_path(value, first), _sentence(first)) from None
    for field, expected in facts.problems():
        raise misfit(source, facts, field, expected)
    return facts


def misfit(source: str, facts: DataFacts, field: str, expected: str) -> CheckpointError:
    """A field that contradicts others, or the config."""
    return _unusable(source, (field,), f"{expected}, found {format_value(getattr(facts, field))}")


def _key_path(value: Any, mistake: Mapping[str, Any]) -> Iterator[str]:
    """The keys that lead to a value, without the names of types that pydantic tried there."""
    for step in mistake["loc"]:
        if isinstance(value, Mapping) and (step in value or mistake["type"] == "missing"):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            continue
        yield str(step)


def _sentence(mistake: Mapping[str, Any]) -> str:
    kind = mistake["type"]
    if kind == "missing":
        return "it is missing"
    if kind == "json_invalid":
        return f"its JSON cannot be read: {mistake['ctx']['error']}"
    if kind == "unexpected_keyword_argument":
        return "no such field is known"
    expected = EXPECTED.get(kind) or mistake.get("ctx", {}).get("expected", "another value")
    return f"expected {expected}, found {format_value(mistake['input'])}"


def _unusable(source: str, steps: Iterator[str] | Sequence[str], what: str) -> CheckpointError:
    name = ".".join(("facts", *steps))
    return CheckpointError(f"{source}: the metadata has no usable '{name}': {what}")
