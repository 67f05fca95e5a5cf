"""What a word of a config or an error means, looked up in every table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

from gradcli.config.cautions import CAUTIONS
from gradcli.config.fields import describe_type
from gradcli.config.schema import schema_of, suggestion
from gradcli.config.sections import plain_value, top
from gradcli.dataclass import dataclass
from gradcli.error_codes import CODES
from gradcli.errors import ConfigError
from gradcli.registry import did_you_mean
from gradcli.starter import examples
from gradcli.starter.examples import Example
from gradcli.starter.meanings import FIXED, NAMES, meaning, plain
from gradcli.train.yaml_text import inline

SECTIONS = {
    "dataset": "data",
    "loss": "loss",
    "metric": "metrics",
    "layer": "model",
    "optimizer": "optim",
    "schedule": "schedule",
}
MOST = 6  # tables whose keys are shown for one word


@dataclass(frozen=True)
class Explained:
    """One meaning of a word.

    Attributes:
        title: the word with what it is: "layer linear", "key train.batch".
        rows: its keys, each with what it takes and means.
    """

    title: str
    text: str
    rows: tuple[tuple[str, str], ...] = ()
    example: Example | None = None


def explained(word: str) -> list[Explained]:
    """All meanings of a word.

    Raises:
        ConfigError: no table has it; with the nearest.
    """
    meanings = list(_meanings(word.strip().strip("`'\":")))
    if meanings:
        return meanings
    plainly = word.strip().lower()
    words = sorted({*vocabulary(), *_keys_of(plainly.rpartition(".")[0])})
    near = suggestion(plainly, dict.fromkeys(words)) if plainly else ""
    raise ConfigError(
        f"no key, layer, loss, metric, dataset, optimizer, schedule or code is called "
        f"'{_visible(word)}'; {near or did_you_mean(plainly, words, 'docs/config.md lists them')}",
        code="E102",
    )


def vocabulary() -> Iterator[str]:
    """Every word that can be explained."""
    yield from schema_of(top).hints
    for make in FIXED.values():
        yield from schema_of(make).hints
    for table in NAMES.values():
        yield from table
        for make in table.values():
            yield from schema_of(make).hints
    yield from CODES
    yield from CAUTIONS


def _keys_of(owner: str) -> Iterator[str]:
    """`train.batch`, ... of train: every key that may stand behind this owner and a dot."""
    makes = [
        make
        for kind in NAMES
        for name, make in NAMES[kind].items()
        if owner in (name, SECTIONS[kind])
    ]
    for make in [FIXED[owner], *makes] if owner in FIXED else makes:
        yield from (f"{owner}.{key}" for key in schema_of(make).hints)


def _meanings(word: str) -> Iterator[Explained]:
    if re.fullmatch(r"[eEwW]\d{3}", word):
        yield from _code(word.upper())
        return
    owner, dot, key = word.rpartition(".")
    if dot:
        yield from _key_of(owner, key)
        return
    if word in schema_of(top).hints:
        yield _top(word)
    sections = [name for name, make in FIXED.items() if word in schema_of(make).hints]
    names = [(kind, table[word]) for kind, table in NAMES.items() if word in table]
    yield from (_of_section(name, word) for name in sections if name == "train")
    yield from (_explain_choice(kind, word, make) for kind, make in names)
    yield from (_of_section(name, word) for name in sections if name != "train")
    if not names:
        yield from _keys_called(word)


def _code(code: str) -> Iterator[Explained]:
    if code in CODES:
        yield Explained(f"error {code}", f"{CODES[code].meaning}. {CODES[code].cure}")
    if code in CAUTIONS:
        caution = CAUTIONS[code]
        yield Explained(f"warning {code}", f"{caution.title}. {caution.cause} {caution.cure}")


def _key_of(owner: str, key: str) -> Iterator[Explained]:
    """`train.batch`, `csv.missing`, `data.missing`."""
    if owner in FIXED and key in schema_of(FIXED[owner]).hints:
        yield _of_section(owner, key)
    for kind, table in NAMES.items():
        section = SECTIONS[kind]
        for name, make in table.items():
            if owner in (name, section) and key in schema_of(make).hints:
                yield _key(
                    f"key {key} of {kind} {name}", make, key, examples.with_key(kind, name, key)
                )


def _top(key: str) -> Explained:
    kind = next((kind for kind, section in SECTIONS.items() if section == key), None)
    rows = [("names", ", ".join(NAMES[kind]))] if kind else []
    rows = list(_rows(FIXED[key])) if key in FIXED else rows
    parts = [part for part in meaning(top, key).split("; ") if not part.startswith("see ")]
    return Explained(f"key {key}", "; ".join(parts), tuple(rows), examples.of_top(key))


def _of_section(name: str, key: str) -> Explained:
    example = examples.of_train(key) if name == "train" else examples.of_top(name)
    return _key(f"key {name}.{key}", FIXED[name], key, example)


def _explain_choice(kind: str, name: str, make: Callable[..., Any]) -> Explained:
    text = " ".join(plain(schema_of(make).doc).split())
    example = examples.of_choice(kind, name)
    return Explained(f"{kind} {name}", text, tuple(_rows(make)), example)


def _keys_called(key: str) -> Iterator[Explained]:
    """A key of rows of the tables, such as `missing` or `lr`, with the first few of each kind."""
    for kind, table in NAMES.items():
        owners = [name for name, make in table.items() if key in schema_of(make).hints]
        if owners:
            also = f", also of {', '.join(owners[1:MOST])}" if owners[1:] else ""
            more = ", ..." if len(owners) > MOST else ""
            title = f"key {key} of {kind} {owners[0]}{also}{more}"
            yield _key(title, table[owners[0]], key, examples.with_key(kind, owners[0], key))


def _key(title: str, make: Callable[..., Any], key: str, example: Example) -> Explained:
    return Explained(title, meaning(make, key), (("takes", _describe_value(make, key)),), example)


def _rows(make: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """The keys of a row, each with what it takes and means."""
    for key in schema_of(make).hints:
        text = meaning(make, key)
        yield key, f"{_describe_value(make, key)}{'; ' * bool(text)}{text}"


def _describe_value(make: Callable[..., Any], key: str) -> str:
    """What a value of a key may be, and which one it has where it is left out."""
    schema = schema_of(make)
    hint, field = schema.hints[key], schema.model.model_fields[key]
    kinds = "anything" if Any in (hint, *get_args(hint)) else describe_type(hint)
    if field.is_required():
        return f"{kinds} (required)"
    default = field.get_default(call_default_factory=True)
    return kinds if default in (None, "") else f"{kinds} (default: {inline(plain_value(default))})"


def _visible(word: str) -> str:
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word)
    return text if len(text) <= 40 else text[:40] + "..."
