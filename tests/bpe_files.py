"""Small tokenizers of each kind that people have, as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

STORY = (
    "The old king said: it's late, isn't it?\n\nBring 123 lamps (and 45 more) to the hall...\n"
    "Der König schläft; the queen doesn't.   She walks, she talks,\tshe sings!\n\n\n"
    "\u4f60\u597d \u4e16\u754c, caf\u00e9 na\u00efve \U0001f600\U0001f600 end.\n"
)
# Letters of any case, with one sign in front of them, and signs with the line breaks behind them.
_OF_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizer_of(kind: str, size: int = 400) -> Any:
    """A tokenizer of the library, trained on `STORY`: gpt2, llama3, llama2 or words."""
    tokenizer = tokenizers.Tokenizer(models.BPE(byte_fallback=kind == "llama2"))
    special = {"gpt2": ["<|endoftext|>"], "llama2": ["<s>", "</s>"]}.get(kind, ["<eos>"])
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if kind == "words":
        tokenizer = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer: Any = trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False)
        tokenizer.train_from_iterator([STORY], trainer)
        return tokenizer
    if kind == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
    elif kind == "llama3":
        split = pre_tokenizers.Split(tokenizers.Regex(_OF_LLAMA3), "isolated")
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
    else:
        normalizers = tokenizers.normalizers
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        )
        special = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
        alphabet = []
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([STORY], trainer)
    return tokenizer


def write_tokenizer(path: Path, kind: str = "gpt2") -> Any:
    """tokenizer.json of such a tokenizer; gives the library's own."""
    tokenizer = tokenizer_of(kind)
    path.write_text(tokenizer.to_str(), encoding="utf-8")
    return tokenizer


def write_parts(folder: Path) -> Any:
    """vocab.json and merges.txt of the kind gpt2, as OpenAI published them."""
    tokenizer = tokenizer_of("gpt2")
    model = json.loads(tokenizer.to_str())["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"]), ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    return tokenizer
