"""A first config for a published language model, to train it on a text of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradcli.config.published_model import checked_tokenizer, end_of, layers_of
from gradcli.data.bpe.documents import documents
from gradcli.data.files import path_text, regular_size
from gradcli.errors import ConfigError, DataError
from gradcli.starter.draft import Bare, ConfigDraft
from gradcli.starter.prose import MOST_VAL_TOKENS, SHARES
from gradcli.train.published.shape import shape_in
from gradcli.wording import quantity

CONTEXTS = (256, 128, 64, 32, 16)  # tokens of a sample, of which the text has a dozen at least
_LOOKED_AT = 1 << 16  # characters, by which the length of a text in tokens is judged


def draft_of_model(
    folder: Path, config_path: str, name: str, text: tuple[Path, str] | None
) -> ConfigDraft:
    """The config that trains the model in `folder`, written `config_path`, on a text and its name.

    Raises:
        ConfigError: no text is named.
        DataError: a file is missing, damaged, or of what is not read; the text is too short.
    """
    shape = shape_in(folder)
    tokenizer = checked_tokenizer(folder, shape)
    if text is None:
        raise ConfigError(
            f"'{config_path}' is a published model: name the text that it is to learn, such as "
            f"`gradcli init {config_path} --data story.txt`"
        )
    path, file = text
    begin = next((part for part, _ in documents(path, None) if part), "")[:_LOOKED_AT]
    length = len(tokenizer.encode(begin))
    if len(begin) == _LOOKED_AT:
        length = length * regular_size(path) // max(1, len(begin.encode()))
    most = min(shape.context, length // 12)
    context = next((size for size in CONTEXTS if size <= most), 0)
    if not context:
        what = f"a text of {quantity(length, 'token')}; a model needs 200 or more to learn from"
        raise DataError(f"{path_text(path)}: {what}", code="E305")
    share = next(
        (percent for percent in SHARES if length * percent / 100 <= MOST_VAL_TOKENS), SHARES[-1]
    )
    data: dict[str, Any] = {
        "name": "text",
        "file": file,
        "unit": "bpe",
        "tokenizer": config_path,
        **end_of(shape, tokenizer),
        "context": context,
        "split": {"train": Bare(f"{100 - share:g}%"), "val": Bare(f"{share:g}%")},
    }
    return ConfigDraft(
        name,
        (
            f"The model in {config_path} goes on learning, from a text of about "
            f"{quantity(length, 'token', form=',')}.",
        ),
        data,
        layers_of(shape),
        "cross_entropy",
        ("perplexity", "bits_per_byte"),
        "{name: adamw, lr: 3e-5, weight_decay: 0.01}",
        {
            "steps": 200,
            "batch": 4,
            "seed": 1,
            "clip": 1.0,
            "best": Bare("val.loss"),
            "eval_every": 50,
        },
        pretrained=config_path,
    )
