"""A first config for a text: a model that continues it, character by character."""

from __future__ import annotations

from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any

from gradcli.data.files import path_text
from gradcli.data.foreign import kind_of
from gradcli.data.tabular.pieces import pieces_of
from gradcli.errors import DataError
from gradcli.starter.draft import Bare, ConfigDraft
from gradcli.wording import quantity

FEWEST = 200  # characters
MOST_VAL_TOKENS = 250_000  # more of them take longer, and tell little more about a model
SHARES = (10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # percents that are measured on


def draft_of_text(path: Path, config_path: str, name: str) -> ConfigDraft:
    """The config for a text in `path`, written in it as `config_path`.

    Raises:
        DataError: it is no text, or too short.
    """
    source = path_text(path)
    length, unit = _length(path)
    long = quantity(length, unit.removesuffix("s"), form=",")
    if length < FEWEST:
        raise DataError(
            f"{source}: a text of {long}; a model needs {FEWEST} or "
            "more to learn from some and be measured on others",
            code="E305",
        )
    # What is measured on, at least a tenth of a short text, has to hold a whole sample.
    context = next(size for size in (64, 32, 16) if length >= 12 * size or size == 16)
    data: dict[str, Any] = {"name": "text", "file": config_path}
    data |= {"unit": unit} if unit == "bytes" else {}
    data |= {"context": context}
    if length > 4 * context * 1000:
        data["stride"] = context // 2
    share = next(
        (percent for percent in SHARES if length * percent / 100 <= MOST_VAL_TOKENS), SHARES[-1]
    )
    data["split"] = {"train": Bare(f"{100 - share:g}%"), "val": Bare(f"{share:g}%")}
    what = "character" if unit == "characters" else "byte (this is no UTF-8)"
    return ConfigDraft(
        name,
        (f"A text of {long}: each next {what} is predicted.",),
        data,
        (
            "embed: {dim: 64, std: 0.02, name: tokens}",
            "transformer: {heads: 4, rotary: true}",
            "transformer: {heads: 4, rotary: true}",
            "layer_norm",
            "linear: {out: $data.vocab, bias: false, tied: tokens}",
        ),
        "cross_entropy",
        (),
        "{name: adamw, lr: 3e-3, weight_decay: 0.1}",
        {
            "steps": 600,
            "batch": 16,
            "seed": 1,
            "clip": 1.0,
            "best": Bare("val.loss"),
            "eval_every": 100,
        },
    )


def _length(path: Path) -> tuple[int, str]:
    """How long a text of any length is, and in what: in bytes where it is no UTF-8."""
    decoder = getincrementaldecoder("utf-8-sig")()
    size, characters, utf8 = 0, 0, True
    for piece in pieces_of(path):
        kind = None if size else kind_of(piece[:64])
        kind = kind or ("a binary file" if b"\0" in piece else None)
        if kind is not None:
            raise DataError(f"{path_text(path)}: this is {kind}, not a text", code="E304")
        size += len(piece)
        try:
            characters += len(decoder.decode(piece)) if utf8 else 0
        except UnicodeDecodeError:
            utf8 = False
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        utf8 = False
    return (characters, "characters") if utf8 else (size, "bytes")
