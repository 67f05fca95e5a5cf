"""Folders of published models: each of their files spoilt, opened as `predict` and `load` do it."""

from __future__ import annotations

import json
import random
import shutil
import struct
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import published_folders
from parsing import Files, Parser, WrongAnswerError
from spoiling import VALUES, near, spoil_bytes, spoil_text, spoil_tree
from tensor_parsers import VALUES as OF_HEADERS

import gradcli
from gradcli.errors import GradcliError, NumericsError
from gradcli.train.safetensors_file import SIZES, RawTensor, decode, encode_header, layout

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
OUTSIDE = "outside.safetensors"  # right weights, beside the folder
PIECES = (
    "{", "}", "[", "]", ":", ",", '"', "null", "NaN", "-Infinity", "1e999", "9" * 5000, "-0", "1.5",
    "true", '{"a":' * 900, "[" * 990, "[" * 200_000, "\\ud800", "\x00", "\ufeff", "16777216", "é",
)  # fmt: skip
BYTES = tuple(piece.encode() for piece in PIECES[:20])
SETTINGS = (
    *published_folders.CONFIGS, *(2, 3, 4, 5, 10, 24, 4096, 100_000, 1 << 24, 1 << 25, 10**4000),
    "gelu", "gelu_pytorch_tanh", "relu", "silu", "swish", "tanh", {"rope_type": "default"},
    {"rope_type": "yarn", "factor": 4.0}, 1e-300, 1e11, "long " * 9000, ["long"] * 9000,
)  # fmt: skip
KEYS = (
    "head_dim", "n_inner", "use_sliding_window", "sliding_window", "tie_word_embeddings", "n_ctx",
    "attention_bias", "mlp_bias", "pretraining_tp", "num_key_value_heads", "rope_scaling",
    "scale_attn_by_inverse_layer_idx", "add_cross_attention",
)  # fmt: skip


class Published(Parser):
    """A right or spoilt folder, which writes two tokens or is refused with exit 3 or 7."""

    SHARDS: ClassVar[int] = 1

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.templates = {kind: self._template(kind) for kind in published_folders.CONFIGS}

    def _template(self, kind: str) -> Files:
        path = self.folder / kind
        prefix = "transformer." * (kind == "gpt2")
        config = published_folders.CONFIGS[kind]
        published_folders.write_folder(path, config, shards=self.SHARDS, prefix=prefix)
        return {one.name: one.read_bytes() for one in sorted(path.iterdir())}

    def right(self) -> Sequence[Files]:
        return list(self.templates.values())

    def spoilt(self, rng: random.Random) -> Files:
        return self.spoil(dict(rng.choice(self.right())), rng)

    @abstractmethod
    def spoil(self, files: Files, rng: random.Random) -> Files:
        """The files of a folder, of which some are spoilt."""

    def read(self, files: Files) -> None:
        path = self.folder / "model"
        shutil.rmtree(path, ignore_errors=True)
        for name, content in files.items():  # a name with a slash makes a folder
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        try:
            model = gradcli.load(path)
        except GradcliError as error:
            if error.exit_code not in (3, 7):
                said = f"exit {error.exit_code}: {error.message[:300]}"
                raise WrongAnswerError(said) from None
            raise
        self.check(files)
        try:
            model.generate("The old king", 2)
        except NumericsError as error:  # weights or settings under which numbers overflow
            if "not all finite" not in error.message:
                raise WrongAnswerError(error.message) from None
            raise

    def check(self, files: Files) -> None:
        """Whether a folder that was opened may be."""


class PublishedConfig(Published):
    """config.json: values of other types and sizes, keys that are missing, doubled or new."""

    def spoil(self, files: Files, rng: random.Random) -> Files:
        return {**files, CONFIG: self._spoil(files[CONFIG], rng)}

    def _spoil(self, data: bytes, rng: random.Random) -> bytes:
        way, values = rng.random(), (*VALUES, *SETTINGS)
        if way < 0.1:
            return spoil_bytes(data, rng, BYTES)
        if way < 0.25:
            return spoil_text(data.decode(), rng, PIECES).encode()
        tree = json.loads(data)
        if way < 0.4:
            return with_key_twice(tree, rng.choice(list(tree)), rng.choice(values), rng)
        if way < 0.6:
            tree[rng.choice(KEYS)] = rng.choice(values)
        elif way < 0.8:
            key = rng.choice(list(tree))
            tree[key] = near(tree[key], rng)
        else:
            tree = spoil_tree(tree, rng, values)
        return json.dumps(tree).encode()


def with_key_twice(tree: Any, key: str, value: Any, rng: random.Random) -> bytes:
    """An object as JSON with one of its keys twice."""
    text, more = json.dumps(tree)[1:-1], f"{json.dumps(key)}: {json.dumps(value)}"
    return f"{{{rng.choice((f'{more}, {text}', f'{text}, {more}'))}}}".encode()


class PublishedIndex(Published):
    """The index of shards, and shards that are missing, folders, exchanged or cut off."""

    SHARDS = 2

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        whole = self.folder / "whole"
        published_folders.write_folder(whole, published_folders.LLAMA)
        (whole / WEIGHTS).rename(self.folder / OUTSIDE)
        self.names = (
            f"../{OUTSIDE}", str(self.folder / OUTSIDE), f"./{OUTSIDE}", f"..\\{OUTSIDE}", "..",
            ".", "/dev/zero", CONFIG, INDEX, "tokenizer.json", "é" * 200, "x" * 256, "a\nb",
            "folder", "folder/one.safetensors", f"~/{OUTSIDE}", "", None, 0, ["x"], {"x": "y"},
        )  # fmt: skip

    def spoil(self, files: Files, rng: random.Random) -> Files:
        if rng.random() < 0.7:
            files[INDEX] = self._spoil(files[INDEX], rng)
        if rng.random() < 0.4:
            first, second = (name for name in files if name.endswith("2.safetensors"))
            way = rng.randrange(6)
            data = files.pop(first)
            if way == 0:
                files[f"{first}/inside"] = b""
            elif way == 1:
                files[first], files[second] = files[second], data
            elif way == 2:
                files[first] = spoil_bytes(data, rng)
            elif way == 3:
                files[first] = files[second]
            elif way == 4:
                files[f"{WEIGHTS}/inside"] = data
        return files

    def _spoil(self, data: bytes, rng: random.Random) -> bytes:
        way, tree = rng.random(), json.loads(data)
        if way < 0.1:
            return spoil_bytes(data, rng, BYTES)
        if way < 0.3:
            return spoil_text(data.decode(), rng, PIECES).encode()
        values = (*VALUES, *self.names)
        if way < 0.4:
            return with_key_twice(tree, "weight_map", rng.choice(values), rng)
        if way < 0.6:
            return json.dumps(spoil_tree(tree, rng, values)).encode()
        places, name = tree["weight_map"], rng.choice(self.names)
        every = rng.random() < 0.5
        tree["weight_map"] |= dict.fromkeys(places if every else [rng.choice(list(places))], name)
        return json.dumps(tree).encode()

    def check(self, files: Files) -> None:
        if WEIGHTS in files:
            return
        for name in json.loads(files[INDEX])["weight_map"].values():
            if name not in files:
                raise WrongAnswerError(f"opened with {name!a}, which is no file beside the index")


class PublishedWeights(Published):
    """Weights whose header or tensors are spoilt: others are missing, added, turned or renamed."""

    def spoil(self, files: Files, rng: random.Random) -> Files:
        way, data = rng.random(), files[WEIGHTS]
        if way < 0.2:
            return {**files, WEIGHTS: spoil_bytes(data, rng)}
        if way < 0.6:
            return {**files, WEIGHTS: other_tensors(decode(data, WEIGHTS).tensors, rng)}
        length = int.from_bytes(data[:8], "little")
        header, body = data[8 : 8 + length], data[8 + length :]
        if way < 0.9:
            text = json.dumps(spoil_tree(json.loads(header), rng, OF_HEADERS)).encode()
        else:
            text = spoil_bytes(header, rng, BYTES)
        return {**files, WEIGHTS: struct.pack("<Q", len(text)) + text + body}

    def check(self, files: Files) -> None:
        header = files[WEIGHTS][8:][: int.from_bytes(files[WEIGHTS][:8], "little")]
        rows = {
            name.removeprefix("transformer."): (row["dtype"], tuple(row["shape"]))
            for name, row in json.loads(header).items()
            if name != "__metadata__"
        }
        for name, size in published_folders.shapes_of(json.loads(files[CONFIG])).items():
            kind, there = rows.get(name, ("no", ()))
            first = published_folders.VOCAB if size[0] > published_folders.VOCAB else size[0]
            fits = there == size or (there[1:] == size[1:] and first <= [*there, 0][0])
            if not fits or kind not in ("F32", "F16", "BF16"):
                raise WrongAnswerError(f"opened with {name} {kind}{list(there)}, not {list(size)}")


def other_tensors(tensors: dict[str, RawTensor], rng: random.Random) -> bytes:
    """A right file of the tensors, one to three of which are others."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(list(tensors))
        one, way = tensors[name], rng.randrange(7)
        if way == 0:
            del tensors[name]
        elif way == 1:
            prefix = rng.choice(("transformer.", "", "x")) + rng.choice(("", "x", "long " * 3000))
            tensors[prefix + name] = tensors.pop(name) if rng.random() < 0.5 else one
        elif way == 2:
            tensors[name], other = tensors[rng.choice(list(tensors))], one
            tensors[rng.choice(list(tensors))] = other
        elif way == 3:
            tensors[name] = of_one_byte(rng.choice(list(SIZES)), one.shape, rng)
        elif way == 4:
            tensors[name] = of_one_byte(one.dtype, other_size(one.shape, rng), rng)
        elif way == 5:
            tensors[name] = RawTensor(one.dtype, one.shape[::-1], one.data)
        else:
            tensors[name] = of_one_byte(one.dtype, one.shape, rng)
    names = layout(tensors)
    return encode_header(tensors, {}) + b"".join(bytes(tensors[name].data) for name in names)


def other_size(shape: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    if not shape:
        return (1,)
    at = rng.randrange(len(shape))
    side = rng.choice((0, 1, shape[at] - 1, shape[at] + 1, 2 * shape[at]))
    return rng.choice(((*shape[:at], side, *shape[at + 1 :]), (1, *shape), shape[1:], ()))


def of_one_byte(kind: str, shape: tuple[int, ...], rng: random.Random) -> RawTensor:
    """Zeros, ones of all bits, which are NaN, or huge numbers."""
    stored = RawTensor(kind, shape, b"")
    return RawTensor(kind, shape, rng.choice((b"\0", b"\xff", b"\x7e")) * stored.size)
