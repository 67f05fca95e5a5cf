"""Changes at random to bytes, texts and trees that are right, decided by the random source."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

BOUNDARIES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
CHARACTERS = (b'"', b",", b"\r", b"\n", b"\0", b"\xff", b"\xef", b"N", b" ", b"\x1c", b"\x85")
DEEP: Any = {}
for _ in range(300):
    DEEP = {"a": DEEP}
# What may stand anywhere in a tree of JSON, right or wrong.
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2.5, 2**31, 2**63, 10**30, -(2**70), 1e308, 1e-320, -0.0,
    math.nan, math.inf, "", "x", "0", "$a", "a\x00b", "é\n", "\ud800", "../x", "x" * 5000,
    [], [[]], [None], [0], {}, {"": None}, {"a": [1]}, DEEP,
)  # fmt: skip


def spoil_bytes(data: bytes, rng: random.Random, pieces: Sequence[bytes] = CHARACTERS) -> bytes:
    """One to four flips, cuts, splices, boundary integers, repeats or pieces."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        _change_bytes(out, rng.randrange(len(out) + 1), rng, pieces)
    return bytes(out)


def _change_bytes(out: bytearray, at: int, rng: random.Random, pieces: Sequence[bytes]) -> None:
    match rng.randrange(8):
        case 0:
            out[at : at + 1] = (byte ^ 1 << rng.randrange(8) for byte in out[at : at + 1])
        case 1:
            del out[at : at + rng.choice((1, 1, 3, 8, 8, len(out)))]
        case 2:
            out[at:at] = out[rng.randrange(len(out) + 1) :][: rng.randint(1, 30)]
        case 3:
            _put_number(out, at, rng)
        case 4:
            out[at : at + 1] = bytes((rng.randrange(256),))
        case 5:
            out[at:at] = out[at : at + rng.randint(1, 9)] * rng.randint(1, 20)
        case _:
            out[at : at + rng.randrange(3)] = rng.choice(pieces)


def _put_number(out: bytearray, at: int, rng: random.Random) -> None:
    """A number at the border of its type, in the place of the bytes there."""
    width = rng.choice((1, 2, 4, 8))
    number = rng.choice(BOUNDARIES) & ((1 << 8 * width) - 1)
    out[at : at + width] = number.to_bytes(width, rng.choice(("big", "little")))


def spoil_text(text: str, rng: random.Random, pieces: Sequence[str]) -> str:
    """One to four insertions of pieces, cuts, repeats or replacements."""
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randrange(len(text) + 1), rng.randrange(4)
        end = min(len(text), at + rng.choice((1, 1, 3, 20)))
        if kind == 0:
            text = text[:at] + rng.choice(pieces) + text[at:]
        elif kind == 1:
            text = text[:at] + text[end:]
        elif kind == 2:
            text = text[:end] + text[at:end] * rng.choice((1, 2, 50)) + text[end:]
        else:
            text = text[:at] + rng.choice(pieces) + text[end:]
    return text


def spoil_tree(tree: Any, rng: random.Random, values: Sequence[Any] = VALUES) -> Any:
    """A copy of a tree of maps and lists in which one to three places are changed."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return rng.choice(values)
        _change(*rng.choice(places), rng, values)
    return tree


def _change(owner: Any, key: Any, rng: random.Random, values: Sequence[Any]) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, dict):
        owner[rng.choice(("x", "name", "", str(key).upper()))] = owner.pop(key)
    elif kind == 2:
        owner[key] = near(owner[key], rng)
    elif kind == 3 and isinstance(owner, list):
        owner[key:key] = [copy.deepcopy(owner[key])] * rng.choice((1, 3))
    else:
        owner[key] = copy.deepcopy(rng.choice(values))


def near(value: Any, rng: random.Random) -> Any:
    """A value of the same type that is another one, where there is such a thing."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value * 2, value * 10**6, float(value)))
    if isinstance(value, float):
        return rng.choice(
            (-value, value * 1e30, value + 1, round(value) if -9e9 < value < 9e9 else 0)
        )
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice(("", "x", " ", "\n", "\u2028", "0", "é")) + value[at + 1 :]
    if isinstance(value, list):
        return rng.choice(
            (value[1:], [*value, *value], value[::-1], {str(i): v for i, v in enumerate(value)})
        )
    return list(value) if isinstance(value, dict) else value


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every map or list in a tree, with each key or position in it."""
    stack = [tree] if isinstance(tree, dict | list) else []
    while stack:
        owner = stack.pop()
        for key, item in list(owner.items() if isinstance(owner, dict) else enumerate(owner)):
            yield owner, key
            if isinstance(item, dict | list):
                stack.append(item)
