"""Files of tensors byte by byte, for the strict reader."""

from __future__ import annotations

import struct

from gradcli.train.safetensors_file import RawTensor, encode_header, layout

SOUND = {
    "b": RawTensor("F32", (2, 3), struct.pack("<6f", *range(6))),
    "a.long name é": RawTensor("I64", (1,), struct.pack("<q", -5)),
    "scalar": RawTensor("F64", (), struct.pack("<d", 0.5)),
    "empty": RawTensor("F32", (0, 3), b""),
    "flags": RawTensor("BOOL", (3,), b"\x01\x00\x01"),
    "bytes": RawTensor("U8", (1, 1, 5), b"hello"),
}


def encode(tensors: dict[str, RawTensor], metadata: dict[str, str] | None = None) -> bytes:
    header = encode_header(tensors, metadata or {})
    return header + b"".join(bytes(tensors[name].data) for name in layout(tensors))
