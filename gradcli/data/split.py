"""How `split:` cuts samples into train, val and test."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from gradcli.engine.kind import Bound
from gradcli.errors import ConfigError, DataError
from gradcli.registry import did_you_mean
from gradcli.wording import quantity

if TYPE_CHECKING:
    from fractions import Fraction

# The sizes of train, val and test, and how samples go there.
SplitMap = Annotated[
    dict[str, int | str | bool], Bound("a map of counts such as 5000 or percents such as 10%")
]
NAMES = ("train", "val", "test")
HOW = ("stratify", "group")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%")


def cut(
    split: Mapping[str, int | str | bool], total: int, names: tuple[str, ...] = NAMES
) -> dict[str, range]:
    """Each name's range of positions in 0..total-1, in the order train, val, test.

    Counts are taken as written and may leave a rest unused; percents are rounded at the borders,
    so that 100% is every sample.
    """
    stratify_of(split)
    if "group" in split:
        raise ConfigError("split: group names a column of a table, and here is none", code="E104")
    split = parts_of(split)
    _check_names(split, names)
    order = [name for name in names if name in split]
    ends = _ends([split[name] for name in order], total)
    starts = [0, *ends[:-1]]
    ranges = {name: range(a, b) for name, a, b in zip(order, starts, ends, strict=True)}
    # Not by len(), which ends at 64 bits: a count may be of any length.
    sizes = {name: part.stop - part.start for name, part in ranges.items()}
    counts = ", ".join(f"{name} {size}" for name, size in sizes.items())
    if ends[-1] > total:
        raise DataError(
            f"split asks for {quantity(ends[-1], 'sample')} ({counts}), the data has {total}",
            code="E305",
        )
    empty = next((name for name, size in sizes.items() if not size), None)
    if empty:
        raise DataError(
            f"split leaves {empty} empty: {counts} of {quantity(total, 'sample')}; every part "
            "needs one",
            code="E305",
        )
    return ranges


def unused_of(parts: Mapping[str, range], total: int) -> int:
    """How many samples are in no part."""
    return total - sum(map(len, parts.values()))


def parts_of(split: Mapping[str, int | str | bool]) -> dict[str, int | str | bool]:
    """The sizes alone, without the keys that say how samples go there."""
    return {name: size for name, size in split.items() if name not in HOW}


def stratify_of(split: Mapping[str, int | str | bool] | None) -> bool:
    """Whether each class has its share in every part."""
    value = (split or {}).get("stratify", False)
    if not isinstance(value, bool):
        raise ConfigError(f"split: stratify must be true or false, got {value!r}", code="E104")
    return value


def check_stratify(split: Mapping[str, int | str | bool] | None, classes: int | None) -> None:
    """Refuse to share out classes where there are none."""
    if stratify_of(split) and classes is None:
        raise ConfigError(
            "split: stratify shares out classes, and the targets here are none; leave it out",
            code="E104",
        )


def group_of(split: Mapping[str, int | str | bool] | None) -> str | None:
    """The column whose equal cells stay together."""
    value = (split or {}).get("group")
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ConfigError(f"split: group must be the name of a column, got {value!r}", code="E104")
    if stratify_of(split):
        raise ConfigError(
            "split has stratify and group, which cannot both be kept; leave one out", code="E104"
        )
    return value


def _check_names(split: Mapping[str, int | str | bool], names: tuple[str, ...]) -> None:
    odd = next((name for name in split if name not in names), None)
    if odd is not None:
        hint = did_you_mean(odd, [*names, *HOW], "")
        raise ConfigError(
            f"split has '{odd}'; here it takes {', '.join(names)}{hint and f'; {hint}'}",
            code="E104",
        )
    if "train" not in split:
        raise ConfigError("split names no 'train' part", code="E104")


def _ends(sizes: list[int | str | bool], total: int) -> list[int]:
    percents = [_percent(size) for size in sizes]
    if all(percent is None for percent in percents):
        return _running([_count(size) for size in sizes])
    if any(percent is None for percent in percents):
        raise ConfigError("split mixes counts and percents; use one of the two", code="E104")
    parts = [percent for percent in percents if percent is not None]
    if sum(parts) > 100:
        raise ConfigError(f"split adds up to {float(sum(parts)):g}%; at most 100%", code="E104")
    return [round(sum(parts[: i + 1]) * total / 100) for i in range(len(parts))]


def _running(counts: list[int]) -> list[int]:
    return [sum(counts[: i + 1]) for i in range(len(counts))]


def _percent(size: int | str | bool) -> Fraction | None:
    match = _PERCENT.fullmatch(size) if isinstance(size, str) else None
    if not match:
        return None
    from fractions import Fraction  # with decimal, which takes 5 ms of a start

    return Fraction(match[1])


def _count(size: int | str | bool) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ConfigError(
            f"split: expected a count such as 5000 or a percent such as 10%, got {size!r}",
            code="E104",
        )
    return size


def shuffled(count: int, seed: int) -> list[int]:
    """0..count-1 in an order that depends on nothing but `seed` and `count`."""

    def key(index: int) -> bytes:
        return hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=16).digest()

    return sorted(range(count), key=key)
