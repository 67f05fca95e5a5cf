"""What pydantic makes of a schema: it judges the values that do not plainly fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from gradcli.config.schema import Mistakes, Schema, dataclass_in, schema_of


def validated(schema: Schema, plain: Any) -> dict[str, Any]:
    """The values by key, as pydantic has them; raises Mistakes."""
    try:
        model = schema.model.model_validate_json(json.dumps(plain))
    except ValidationError as error:
        raise Mistakes(error.errors(include_url=False, include_context=False)) from None
    return _values(schema, model)


def _values(schema: Schema, model: BaseModel) -> dict[str, Any]:
    return {key: getattr(model, key) for key in schema.hints}


def model_of(schema: Schema) -> type[BaseModel]:
    """The model of a schema."""
    fields: dict[str, Any] = {
        key: (_pydantic_type(hint), _field(schema, key)) for key, hint in schema.hints.items()
    }
    config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        protected_namespaces=(),
    )
    return create_model(schema.make.__name__, __config__=config, **fields)


def _field(schema: Schema, key: str) -> Any:
    """The default of a parameter, and what it means: the text among the notes of Annotated."""
    notes = getattr(schema.hints[key], "__metadata__", ())
    doc = next((note for note in notes if isinstance(note, str)), None)
    factory, parameter = schema.factory(key), schema.parameters[key]
    if factory is not None:
        return Field(default_factory=factory, description=doc)
    default: Any = ... if parameter.default is parameter.empty else parameter.default
    return Field(default=default, description=doc)


def _pydantic_type(hint: Any) -> Any:
    """The type for pydantic; a dataclass is checked by its own schema.

    A bare value fills the key that the class attribute ALONE names.
    """
    inner = dataclass_in(hint)
    if inner is None:
        return hint
    schema = schema_of(inner)
    notes: list[Any] = [AfterValidator(lambda model: inner(**_values(schema, model)))]
    alone = getattr(inner, "ALONE", None)
    if alone is not None:
        either = _pydantic_type(schema.hints[alone]) | schema.model
        wrap = BeforeValidator(lambda value: _mapped(value, alone), json_schema_input_type=either)
        notes.append(wrap)
    section: Any = Annotated[(schema.model, *notes)]
    return section if hint is inner else section | None


def _mapped(value: object, key: str) -> object:
    """A value that stands for the map with this key alone."""
    return value if value is None or isinstance(value, Mapping) else {key: value}
