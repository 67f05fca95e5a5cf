"""Files of tensors, against the reader of the package safetensors."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from parsing import OneFile, WrongAnswerError
from spoiling import CHARACTERS, spoil_bytes, spoil_tree
from tensor_bytes import SOUND, encode

from gradcli import load_tensors
from gradcli.train.safetensors_file import SIZES, RawTensor, decode

VALUES = (
    None, True, -1, 0, 1, 2, 3, 8, 2.0, 2**31, 2**63, 2**64, 10**30, "F32", "F31", "x", "",
    "\ud800", [], [0], [1, 1], [0, 8], [8, 0], [2**62, 2**62], [[]], {}, {"a": {}}, *SIZES,
)  # fmt: skip


class Safetensors(OneFile):
    """Never does this reader accept what the package refuses, and the bytes are the same."""

    REFERENCE = "safetensors"
    PIECES = (*CHARACTERS, *(bytes([c]) for c in b'{}[]",:09-.e\\'), b'"__metadata__"', b"\\ud800")

    @cached_property
    def _seeds(self) -> list[bytes]:
        half = RawTensor("BF16", (2,), b"\x80\x3f\x00\x40")
        return [encode({**SOUND, "half": half}, {"k": "v"}), encode({"a": half}), encode({})]

    def seeds(self) -> Sequence[bytes]:
        return self._seeds

    def spoil(self, data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.6:
            return spoil_bytes(data, rng, self.PIECES)
        length = int.from_bytes(data[:8], "little")
        text, body = data[8 : 8 + length], data[8 + length :]
        if rng.random() < 0.7:
            text = json.dumps(spoil_tree(json.loads(text), rng, VALUES)).encode()
        else:
            text = spoil_bytes(text, rng, self.PIECES)
        return struct.pack("<Q", len(text)) + text + body

    def parse(self, data: bytes) -> None:
        contents = decode(data, "input")
        theirs = self._theirs(data)
        for name, stored in contents.tensors.items():
            if theirs.get(name) != (stored.shape, bytes(stored.data)):
                raise WrongAnswerError(f"another tensor {name!a} than that of safetensors")
        load_tensors(Path(self.write(data)))

    def _theirs(self, data: bytes) -> dict[str, Any]:
        try:
            read = self.reference.deserialize(data)
        except self.reference.SafetensorError as error:
            raise WrongAnswerError(f"safetensors refuses it: {error}") from None
        return {name: (tuple(one["shape"]), bytes(one["data"])) for name, one in read}
