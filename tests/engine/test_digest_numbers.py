"""The kernel `digest_numbers` against hashlib."""

from __future__ import annotations

import hashlib

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.array import empty, run
from gradcli.errors import GradcliError


def digest_numbers(before: bytes, count: int) -> list[int]:
    bits = empty((count,), engine.float64)
    run("digest_numbers", engine.frombuffer(before, dtype=engine.uint8).array, bits)
    return list(Tensor(bits).memoryview().cast("B").cast("q"))


@pytest.mark.parametrize("before", [b"", b"0:", b"-17:", b"\xff\0x", bytes(range(108))])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1023, 1024, 1025, 12_345])
def test_keys_are_in_the_order_of_the_digests(before: bytes, count: int) -> None:
    digests = [hashlib.blake2b(before + b"%d" % i, digest_size=16).digest() for i in range(count)]
    expected = [int.from_bytes(digest[:8], "big") - 2**63 for digest in digests]
    assert digest_numbers(before, count) == expected


def test_a_text_that_leaves_no_room_for_a_number_is_refused() -> None:
    with pytest.raises(GradcliError, match="108 bytes"):
        digest_numbers(bytes(109), 3)
