"""Seeded mutations of right configs: each ends in a Config or in a GradcliError, and soon."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradcli.config.json_schema import json_schema
from gradcli.config.load import Config, load
from gradcli.errors import GradcliError
from gradcli.train.metrics import METRICS

Write = Callable[..., Path]
PIECES = [
    "{", "}", "[", "]", ":", ": ", "- ", ",", "&a ", "*a", "!!", "!x ", "<<: ", "'", '"', "|", ">",
    "#", "%", "@", "`", "\t", "\n", "\r", "\x00", "\x85", "\ufeff", "\ud7ff", "é", "$", "$data.",
    "$vars.a",
    "null", "~", "true", "no", ".nan", ".inf", "-", "1e400", "0x", "017", "9" * 400, "-1", "0",
    "---\n",
    "...\n", "? ",
    "extends: .", "extends: config.yaml", "name: ", "repeat: {times: 3, layers: [relu]}",
    "\\ud800",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, -1, 0, 1, 2.5, 10**30, 1e308, "", "x", "$a", "$data.classes", "relu", "5%",
    "a\x00b",
    [], [[]], [None], {}, {"": None}, {"name": None}, {"name": []}, {"a.b": 1}, "é\n", "../x", "/",
]  # fmt: skip


def loaded(path: Path, overrides: tuple[str, ...] = ()) -> bool:
    """Whether the config is right; anything but a GradcliError is a failure of the test."""
    try:
        assert isinstance(load(path, overrides), Config)
    except GradcliError as error:
        assert error.message
        return False
    return True


def mutated(text: str, random: random.Random) -> str:
    for _ in range(random.randint(1, 4)):
        at, kind = random.randrange(len(text) + 1), random.randrange(4)
        end = min(len(text), at + random.choice([1, 1, 3, 20]))
        if kind == 0:
            text = text[:at] + random.choice(PIECES) + text[at:]
        elif kind == 1:
            text = text[:at] + text[end:]
        elif kind == 2:
            text = text[:end] + text[at:end] * 2 + text[end:]
        else:
            text = text[:at] + random.choice(PIECES) + text[end:]
    return text


def test_mutated_text_never_escapes(config_file: Write) -> None:
    random_source = random.Random(20)
    right = config_file().read_text()
    outcomes = [loaded(config_file(text=mutated(right, random_source))) for _ in range(400)]
    assert 0 < sum(outcomes) < 400


def test_mutated_bytes_never_escape(config_file: Write) -> None:
    random_source = random.Random(21)
    path = config_file()
    right = path.read_bytes()
    for _ in range(200):
        data = bytearray(right)
        for _ in range(random_source.randint(1, 5)):
            data[random_source.randrange(len(data))] = random_source.randrange(256)
        path.write_bytes(data)
        loaded(path)


def test_mutated_trees_never_escape(config_file: Write) -> None:
    import json

    random_source = random.Random(22)
    right = load(config_file()).resolved
    wrong = 0
    for _ in range(300):
        tree = json.loads(json.dumps(right))
        spots = list(_spots(tree))
        owner, key = random_source.choice(spots)
        if random_source.random() < 0.2 and isinstance(owner, dict):
            owner[random_source.choice(["x", "name", "in", "model"])] = owner.pop(key)
        else:
            owner[key] = random_source.choice(VALUES)
        wrong += not loaded(config_file(text=json.dumps(tree)))
    assert wrong > 150


def _spots(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, item in items:
        yield tree, key
        if isinstance(item, dict | list):
            yield from _spots(item)


def test_mutated_overrides_never_escape(config_file: Write) -> None:
    random_source = random.Random(23)
    path = config_file()
    rights = ["optim.lr=0.1", "model.head.out=10", "train.batch=5", "optim=adam", "data.classes=3"]
    for _ in range(300):
        texts = [mutated(random_source.choice(rights), random_source) for _ in range(2)]
        loaded(path, tuple(texts))


def test_the_json_schema_accepts_what_the_reader_accepts(config_file: Write) -> None:
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
