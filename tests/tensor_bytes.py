"""Files of tensors byte by byte, for the strict reader."""

from __future__ import annotations

import struct

from gradcli.train.safetensors_file import Stored, encode_header, layout

SOUND = {
    "b": Stored("F32", (2, 3), struct.pack("<6f", *range(6))),
    "a.long name é": Stored("I64", (1,), struct.pack("<q", -5)),
    "scalar": Stored("F64", (), struct.pack("<d", 0.5)),
    "empty": Stored("F32", (0, 3), b""),
    "flags": Stored("BOOL", (3,), b"\x01\x00\x01"),
    "bytes": Stored("U8", (1, 1, 5), b"hello"),
}


def encode(tensors: dict[str, Stored], metadata: dict[str, str] | None = None) -> bytes:
    header = encode_header(tensors, metadata or {})
    return header + b"".join(bytes(tensors[name].data) for name in layout(tensors))
