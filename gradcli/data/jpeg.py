"""The frame of a JPEG file: how many scans it has."""

from __future__ import annotations

import re

MOST_SCANS = 64  # a progressive picture has about ten
_MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")  # those with a length behind, and the end
_END, _SCAN = 0xD9, 0xDA


def check(data: bytes) -> None:
    """Raise a ValueError where a file has so many scans that each of its pixels is a bomb.

    A scan of 36 bytes may change no pixel, yet all of them are gone through.
    """
    at, scans = 2, 0
    while (marker := _MARKER.search(data, at)) and (kind := data[marker.end() - 1]) != _END:
        scans += kind == _SCAN
        if scans > MOST_SCANS:
            raise ValueError(f"it has more than {MOST_SCANS} scans")
        at = marker.end() + int.from_bytes(data[marker.end() : marker.end() + 2])
