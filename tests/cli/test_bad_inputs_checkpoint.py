"""Every kind of broken checkpoint through the command line: exit 7 and the reason, no traceback."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from points import gradcli, only_run

__all__ = ["gradcli"]


def header(value: object, body: bytes = b"") -> bytes:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + body


def row(begin: int, end: int, shape: object = None, dtype: str = "U8") -> dict[str, object]:
    shape = [end - begin] if shape is None else shape
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def flipped(data: bytes) -> bytes:
    return data[:-5] + bytes([data[-5] ^ 16]) + data[-4:]


def newer(data: bytes) -> bytes:
    return data.replace(b'\\"format\\": 1', b'\\"format\\": 2', 1)


BROKEN: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "0 bytes"),
    "seven bytes": (lambda data: data[:7], "7 bytes"),
    "header over the file": (lambda data: struct.pack("<Q", 10**7) + data[8:], "10000000 bytes"),
    "header of 2**63": (lambda data: struct.pack("<Q", 2**63) + data[8:], str(2**63)),
    "header over 100 MB": (lambda data: struct.pack("<Q", 10**8 + 1) + data[8:], "100000001"),
    "no json": (lambda _: header(b"{'a'}"), "not valid JSON"),
    "no object": (lambda _: header([1]), "'{'"),
    "doubled": (lambda _: header(b'{"a": 1, "a": 2}'), "'a' occurs twice"),
    "nan": (lambda _: header(b'{"a": NaN}'), "NaN"),
    "float": (lambda _: header({"a": row(0, 1, [1.0])}, b"x"), "shape of tensor 'a'"),
    "deep": (lambda _: header(b'{"a":' + b"[" * 9999 + b"]" * 9999 + b"}"), "nested deeper"),
    "long number": (lambda _: header(b'{"a":' + b"1" * 5000 + b"}"), "5000 digits"),
    "surrogate": (lambda _: header(b'{"\\ud800": 1}'), "surrogate"),
    "overlap": (lambda _: header({"a": row(0, 3), "b": row(2, 4)}, b"1234"), "'a' and 'b' overlap"),
    "hole": (lambda _: header({"a": row(0, 1), "b": row(2, 4)}, b"1234"), "'a' and 'b' belong"),
    "reversed": (lambda _: header({"a": row(4, 0, [4])}, b"1234"), "before its begin"),
    "past the end": (lambda _: header({"a": row(0, 9)}, b"1234"), "ends at 9"),
    "not covering": (lambda _: header({"a": row(0, 3)}, b"1234"), "end at 3"),
    "range": (lambda _: header({"a": row(0, 4, [9])}, b"1234"), "needs 9 bytes"),
    "dtype": (lambda _: header({"a": row(0, 4, dtype="F7")}, b"1234"), "F7"),
    "overflow": (lambda _: header({"a": row(0, 4, [2**60, 2**60])}, b"1234"), "would have"),
    "pickle": (lambda _: b"\x80\x02}q\x00.", "a Python pickle; convert it"),
    "zip": (lambda _: b"PK\x03\x04", "a zip archive"),
    "gguf": (lambda _: b"GGUF\x03\x00\x00\x00", "a GGUF file"),
    "lfs": (lambda _: b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
    "html": (lambda _: b"<!DOCTYPE html>", "an HTML page"),
    "one flipped bit": (flipped, "it is damaged"),
    "newer format": (newer, "it is damaged"),
    "foreign": (lambda _: header({"a": row(0, 4)}, b"1234"), "not a checkpoint of gradcli"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_checkpoint_is_refused_with_the_reason(gradcli, name: str) -> None:
    change, reason = BROKEN[name]
    gradcli("train", "dots.yaml", "--max-steps", "4")
    path: Path = only_run() / "checkpoints" / "step-00000004.safetensors"
    path.write_bytes(change(path.read_bytes()))
    ended = gradcli("eval", "last")
    assert ended.code == 7
    assert reason in ended.err
    assert len(ended.err.splitlines()) == 1
    ended = gradcli("resume", "last")
    assert ended.code == 0
    assert f"skipped {path.name}" in ended.err
    assert reason in ended.err
