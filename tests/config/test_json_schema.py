"""The JSON Schema for editors: what the reader takes, as far as a schema can say it."""

from __future__ import annotations

from gradcli.config.json_schema import json_schema
from gradcli.train.metrics import METRICS


def test_the_json_schema_accepts_what_the_reader_accepts() -> None:
    schema = json_schema()
    assert set(schema["properties"]) >= {"data", "model", "loss", "optim", "schedule", "train"}
    layers = schema["$defs"]["layer"]["anyOf"]
    assert "relu" in layers[0]["enum"]
    assert "linear" not in layers[0]["enum"]
    assert any("conv" in form.get("properties", {}) for form in layers)
    of_own_code = {"type": "string", "not": {"enum": list(METRICS)}}
    assert of_own_code in schema["properties"]["metrics"]["items"]["anyOf"]
    train = schema["properties"]["train"]
    assert train["required"] == ["batch"]
    assert train["additionalProperties"] is False
