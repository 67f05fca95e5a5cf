"""The strict reader: every malformed file of a list is refused, every sound one is read."""

from __future__ import annotations

import ctypes
import json
import struct
import time

import pytest
import safetensors
from safetensors import deserialize, serialize
from tensor_bytes import SOUND, encode

from gradcli.errors import CheckpointError
from gradcli.train.safetensors_file import RawTensor, decode, encode_header


def build(header: object, body: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def row(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


REFUSED = {
    "no bytes": (b"", "0 bytes"),
    "seven bytes": (b"\x01" * 7, "7 bytes"),
    "another kind of file": (b"gradcli: 1\nname: tiny\n", "not a safetensors file"),
    "header of one byte": (build(b"{"), "claims 1 byte"),
    "header longer than file": (build({}, length=100), "100 bytes"),
    "header length 2**63": (build({}, length=2**63), str(2**63)),
    "header over the limit": (build({}, length=100_000_001), "limit is 100000000"),
    "not json": (build(b"{nope}"), "not valid JSON"),
    "a list": (build(b"[1, 2]"), "'{'"),
    "not utf-8": (build(b'{"\xff": 1}'), "UTF-8 at byte 2"),
    "tensor twice": (build(b'{"a": {}, "a": {}}'), "'a' occurs twice"),
    "key twice in a tensor": (
        build(b'{"a": {"dtype": "U8", "dtype": "U8", "shape": [0], "data_offsets": [0,0]}}'),
        "'dtype' occurs twice",
    ),
    "NaN": (build(b'{"a": {"dtype": "U8", "shape": [NaN], "data_offsets": [0,0]}}'), "NaN"),
    "float in shape": (build({"a": row(shape=[2.0])}, b"8" * 8), "shape of tensor 'a'"),
    "bool in shape": (build({"a": row("F32", [True], [0, 4])}, b"8" * 4), "shape of tensor 'a'"),
    "negative shape": (build({"a": row(shape=[-1, -2])}, b"8" * 8), "shape of tensor 'a'"),
    "shape not a list": (build({"a": row(shape=2)}, b"8" * 8), "shape of tensor 'a'"),
    "deep nesting": (build(b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "nested deeper"),
    "long integer": (
        build(b'{"a": {"dtype":"U8","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,0]}}'),
        "5000 digits",
    ),
    "negative zero": (
        build(b'{"a": {"dtype":"U8","shape":[0],"data_offsets":[-0,0]}}'),
        "-0 in place of 0",
    ),
    "lone surrogate": (build(b'{"\\ud800": 1}'), "surrogate"),
    "surrogate in metadata": (build(b'{"__metadata__": {"x": "\\ud800"}}'), "__metadata__"),
    "metadata not an object": (build({"__metadata__": [1]}), "__metadata__"),
    "metadata not strings": (build({"__metadata__": {"x": 1}}), "__metadata__ 'x'"),
    "unknown dtype": (build({"a": row("F31")}, b"8" * 8), "F31"),
    "dtype not a string": (build({"a": row(["F32"])}, b"8" * 8), "unknown dtype"),
    "missing key": (build({"a": {"dtype": "F32", "shape": [2]}}, b"8" * 8), "needs exactly"),
    "extra key": (build({"a": {**row(), "x": 1}}, b"8" * 8), "needs exactly"),
    "row not an object": (build({"a": 3}), "needs exactly"),
    "three offsets": (build({"a": row(offsets=[0, 4, 8])}, b"8" * 8), "data_offsets of tensor 'a'"),
    "reversed": (build({"a": row(offsets=[8, 0])}, b"8" * 8), "before its begin"),
    "past the end": (build({"a": row()}, b"8" * 4), "ends at 8, the file has 4"),
    "range too small": (build({"a": row(offsets=[0, 4])}, b"8" * 4), "needs 8 bytes"),
    "product overflow": (build({"a": row("F64", [2**62, 2**62], [0, 8])}, b"8" * 8), "would have"),
    "hole": (build({"a": row(), "b": row(offsets=[9, 17])}, b"8" * 17), "1 byte between 'a'"),
    "overlap": (build({"a": row(), "b": row(offsets=[4, 12])}, b"8" * 12), "'a' and 'b' overlap"),
    "not from the start": (build({"a": row(offsets=[4, 12])}, b"8" * 12), "'the header' and 'a'"),
    "not to the end": (build({"a": row()}, b"8" * 9), "end at 8, the file has 9"),
    "no tensors but data": (build({}, b"8"), "end at 0, the file has 1"),
    "pickle": (b"\x80\x04\x95 rest of it", "this is a Python pickle; convert it"),
    "zip": (b"PK\x03\x04 and so on", "this is a zip archive"),
    "gguf": (b"GGUF\x03\x00\x00\x00\x00\x00", "this is a GGUF file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\n", "this is a Git LFS pointer"),
    "html": (b"\n<!DOCTYPE html><html>", "this is an HTML page"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_file_is_refused_with_the_reason(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(CheckpointError) as caught:
        decode(data, "x.safetensors")
    assert "x.safetensors" in str(caught.value)
    assert reason in str(caught.value)


def test_own_files_come_back_equal() -> None:
    found = decode(encode(SOUND, {"k": "v"}), "x")
    assert found.metadata == {"k": "v"}
    assert {
        name: (one.dtype, one.shape, bytes(one.data)) for name, one in found.tensors.items()
    } == {name: (one.dtype, one.shape, one.data) for name, one in SOUND.items()}


def test_a_file_without_tensors_or_metadata_comes_back_empty() -> None:
    found = decode(encode({}), "x")
    assert (found.tensors, found.metadata) == ({}, {})


def test_the_safetensors_package_reads_our_files() -> None:
    data = encode(SOUND, {"k": "v"})
    read = dict(deserialize(data))
    assert {name: bytes(one["data"]) for name, one in read.items()} == {
        name: one.data for name, one in SOUND.items()
    }
    assert {name: tuple(one["shape"]) for name, one in read.items()} == {
        name: one.shape for name, one in SOUND.items()
    }


def theirs(tensors: dict[str, RawTensor]) -> tuple[dict[str, object], list[object]]:
    """Arguments of the package's `serialize`, older and newer form, and what must stay alive."""
    names = {"F32": "float32", "I64": "int64", "F64": "float64", "BOOL": "bool", "U8": "uint8"}
    keep = [ctypes.create_string_buffer(bytes(one.data), len(one.data)) for one in tensors.values()]
    made: dict[str, object] = {}
    for (name, one), buffer in zip(tensors.items(), keep, strict=True):
        options = {"dtype": names[one.dtype], "shape": list(one.shape)}
        if hasattr(safetensors, "TensorSpec"):
            place = {"data_ptr": ctypes.addressof(buffer), "data_len": len(one.data)}
            made[name] = safetensors.TensorSpec(**options, **place)
        else:
            made[name] = {**options, "data": one.data}
    return made, keep


def test_we_read_the_files_of_the_safetensors_package() -> None:
    arguments, _alive = theirs(SOUND)
    found = decode(serialize(arguments, {"k": "v"}), "x")
    assert found.metadata == {"k": "v"}
    assert {name: bytes(one.data) for name, one in found.tensors.items()} == {
        name: one.data for name, one in SOUND.items()
    }


def test_a_file_cut_at_any_length_is_refused() -> None:
    data = encode(SOUND, {"k": "v"})
    for length in range(len(data)):
        with pytest.raises(CheckpointError):
            decode(data[:length], "x")


def test_a_header_length_that_begins_like_a_pickle_is_read() -> None:
    tensors = {"a": RawTensor("U8", (1,), b"x")}
    padding = 0x280 - len(encode_header(tensors, {"k": ""})) + 8
    data = encode(tensors, {"k": "v" * padding})
    assert data[:2] == b"\x80\x02"
    assert decode(data, "x").tensors["a"].shape == (1,)


def test_an_unterminated_string_of_quotes_takes_linear_time() -> None:
    began = time.monotonic()
    with pytest.raises(CheckpointError):
        decode(build(b'{"' + b'\\"' * 500_000), "x")
    assert time.monotonic() - began < 2
