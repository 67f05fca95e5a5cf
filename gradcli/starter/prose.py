"""A first config for a text: a model that continues it, character by character."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradcli.data.files import load, shown
from gradcli.data.foreign import kind_of
from gradcli.errors import DataError
from gradcli.starter.draft import Bare, Draft
from gradcli.wording import quantity

FEWEST = 200  # characters


def draft_of_text(path: Path, written: str, name: str) -> Draft:
    """The config for a text in `path`, which is called `written` in it.

    Raises:
        DataError: it is no text, or too short.
    """
    content, source = load(path).unpacked(), shown(path)
    kind = kind_of(content[:64]) or ("a binary file" if b"\0" in content else None)
    if kind is not None:
        raise DataError(f"{source}: this is {kind}, not a text", code="E304")
    try:
        length, unit = len(content.decode("utf-8-sig")), "characters"
    except UnicodeDecodeError:
        length, unit = len(content), "bytes"
    if length < FEWEST:
        raise DataError(
            f"{source}: a text of {quantity(length, 'character')}; a model needs {FEWEST} or "
            "more to learn from some and be measured on others",
            code="E305",
        )
    # The last tenth is measured on, and has to hold a whole sample.
    context = next(size for size in (64, 32, 16) if length >= 12 * size or size == 16)
    data: dict[str, Any] = {"name": "text", "file": written}
    data |= {"unit": unit} if unit == "bytes" else {}
    data |= {"context": context}
    if length > 4 * context * 1000:
        data["stride"] = context // 2
    data["split"] = {"train": Bare("90%"), "val": Bare("10%")}
    what = "character" if unit == "characters" else "byte (this is no UTF-8)"
    return Draft(
        name,
        (f"A text of {quantity(length, unit.removesuffix('s'))}: each next {what} is predicted.",),
        data,
        (
            "embed: {dim: 64, std: 0.02, name: tokens}",
            "transformer: {heads: 4, rotary: true}",
            "transformer: {heads: 4, rotary: true}",
            "layernorm",
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
