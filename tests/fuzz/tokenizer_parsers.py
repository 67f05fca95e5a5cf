"""Tokenizers and the documents that they encode, against the library and `json`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from bpe_files import STORY, tokenizer_of
from parsing import Files, Parser, WrongAnswerError
from spoiling import spoil_bytes

from gradcli.data.bpe.documents import documents
from gradcli.data.bpe.encoding import encoded
from gradcli.data.bpe.tokenizer import tokenizer_at
from gradcli.errors import DataError

KINDS = ("gpt2", "llama3", "llama2", "words")
WORDS = (b'"', b"{", b"}", b"[", b"]", b":", b",", b"null", b"-1", b"1e9", b"4294967296", b"\\u")


class Tokenizers(Parser):
    """tokenizer.json, or vocab.json and merges.txt: whatever is accepted encodes a text."""

    def right(self) -> Sequence[Files]:
        whole = [{"tokenizer.json": tokenizer_of(kind).to_str().encode()} for kind in KINDS]
        model = json.loads(whole[0]["tokenizer.json"])["model"]
        merges = "\n".join(["#version: 0.2", *map(" ".join, model["merges"])])
        parts = {"vocab.json": json.dumps(model["vocab"]).encode(), "merges.txt": merges.encode()}
        return [*whole, parts]

    def spoilt(self, rng: random.Random) -> Files:
        files = dict(rng.choice(self._seeds()))
        name = rng.choice(list(files))
        files[name] = spoil_bytes(files[name], rng, WORDS)
        return files

    def _seeds(self) -> Sequence[Files]:
        if not hasattr(self, "_right"):
            self._right = self.right()
        return self._right

    def read(self, files: Files) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        tokenizer = tokenizer_at(self.folder)
        tokens = tokenizer.encode(STORY)
        if not all(0 <= token < tokenizer.vocab for token in tokens):
            raise WrongAnswerError("a token beyond the vocabulary")
        tokenizer.decode(tokens)
        "".join(map(tokenizer.stream(), tokens))


class Documents(Parser):
    """JSON lines: each text that `json` finds, with a token behind it, or a sentence."""

    def __init__(self, folder: object) -> None:
        super().__init__(folder)  # type: ignore[arg-type]
        (self.folder / "tokenizer.json").write_text(tokenizer_of("gpt2").to_str())
        self.tokenizer = tokenizer_at(self.folder)

    def right(self) -> Sequence[Files]:
        lines = [json.dumps({"text": STORY[i : i + 40], "id": i}) for i in range(0, 200, 40)]
        return [{"input": "\n".join(lines).encode()}, {"input": b'\n{"text": "\\u00e9"}\r\n'}]

    def spoilt(self, rng: random.Random) -> Files:
        return {"input": spoil_bytes(rng.choice(self.right())["input"], rng, (*WORDS, b"\n"))}

    def read(self, files: Files) -> None:
        path = self.folder / "texts.jsonl"
        path.write_bytes(files["input"])
        expected = texts_of(files["input"])
        try:
            tokens = [t for some in encoded(documents(path, "text"), self.tokenizer) for t in some]
        except DataError:
            if expected is not None:
                raise WrongAnswerError("refused, though each line has its text") from None
            raise
        if expected is None:
            raise WrongAnswerError("accepted, though json finds a line without text")
        whole: list[int | None] = []
        for text in expected:
            whole += [*self.tokenizer.encode(text), self.tokenizer.end]
        if tokens != whole:
            raise WrongAnswerError("other tokens than those of each text")


def texts_of(content: bytes) -> list[str] | None:
    """The texts of all lines; None where a line has none."""
    texts = []
    try:
        for line in content.decode("utf-8-sig").split("\n"):
            if line.strip():
                text = json.loads(line)["text"]
                text.encode()
                texts.append(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return texts
