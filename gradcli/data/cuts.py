"""Splits that give each class its share, or that keep the samples of a group together.

Where a sample goes is a function of the labels or groups, and of the order that the seed gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gradcli import engine
from gradcli.data.dataset import DataSpec
from gradcli.data.samples import Samples
from gradcli.data.split import shuffled
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.wording import join_words, quantity, verb

MOST_NAMES = 10  # classes in a note
Shared = tuple[dict[str, Samples], tuple[str, ...]]


@dataclass(frozen=True)
class SplitAssignment:
    """Which samples each split has.

    Attributes:
        order: int64 places of samples, those of one split behind those of the one before.
        parts: the places in `order` of each split.
        notes: lines worth telling the user.
    """

    order: Tensor
    parts: Mapping[str, range]
    notes: tuple[str, ...] = ()

    def indices(self, name: str) -> Tensor:
        """The samples of a split."""
        part = self.parts[name]
        return self.order[part.start : part.stop]


def shared_out(whole: Samples, parts: Mapping[str, range], facts: DataSpec) -> Shared:
    """The splits of samples with labels, and what there is to tell of them."""
    labels = facts.labels or [str(number) for number in range(facts.classes or 0)]
    division = stratified(parts, engine.arange(whole.size), whole.targets, labels)
    return {name: replace(whole, rows=division.indices(name)) for name in parts}, division.notes


def stratified(
    parts: Mapping[str, range], order: Tensor, numbers: Tensor, labels: Sequence[str]
) -> SplitAssignment:
    """Give each class its share in every split; the splits are as large as `parts`.

    `numbers` are the classes of the samples, by sample. The first samples of a class in `order`
    go to the first split.
    """
    sizes = [part.stop - part.start for part in parts.values()]
    in_order = engine.index_select(numbers.to(engine.int64), 0, order)
    counts: list[int] = engine.bincount(in_order, minlength=len(labels)).tolist()
    shares = _shares(counts, sizes)
    by_class = b"".join(
        b"".join(bytes([part]) * count for part, count in enumerate(class_shares))
        for class_shares in shares
    )
    _, positions = engine.sort(in_order, stable=True)
    which = engine.index_select(_bytes(by_class), 0, engine.sort(positions)[1])
    return SplitAssignment(
        _by_part(order, which), dict(parts), tuple(_lacks(labels, counts, shares, list(parts)))
    )


def _shares(counts: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """For each class its count in each part, and last in none; parts sum to `sizes`.

    Part by part, the rest of the classes is shared by largest remainders.
    """
    remaining = list(counts)
    shares: list[list[int]] = [[] for _ in counts]
    for size in sizes:
        total = sum(remaining)
        whole = [count * size // total for count in remaining]
        rest = [count * size % total for count in remaining]
        by_rest = sorted(range(len(counts)), key=lambda index: (-rest[index], index))
        for index in by_rest[: size - sum(whole)]:
            whole[index] += 1
        for index, count in enumerate(whole):
            shares[index].append(count)
            remaining[index] -= count
    for index, count in enumerate(remaining):
        shares[index].append(count)
    return shares


def _lacks(
    labels: Sequence[str], counts: Sequence[int], shares: Sequence[Sequence[int]], parts: list[str]
) -> list[str]:
    """A warning about classes with samples, but too few for each part."""
    few = [
        f"{label!r} ({count})"
        for label, count, class_shares in zip(labels, counts, shares, strict=True)
        if count and not all(class_shares[: len(parts)])
    ]
    if not few:
        return []
    them = f"{quantity(len(few), 'class')} {verb(len(few), 'has', 'have')}"
    return [
        f"warning: split.stratify: {them} too few samples for a share in each of "
        f"{join_words(parts)}: {join_words(few, MOST_NAMES)}"
    ]


def grouped(
    ranges: Mapping[str, range], order: Tensor, numbers: Tensor, groups: int, seed: int, what: str
) -> SplitAssignment:
    """All samples of a group lie in one split; borders are the nearest to those asked for.

    `numbers` are the groups of the samples, by their places; `what` names the data for messages.
    """
    if groups < len(ranges):
        raise DataError(
            f"{what}: split.group: {quantity(groups, 'group')} {verb(groups)} too few for "
            f"{join_words(ranges)}; every part needs one",
            code="E305",
        )
    in_order = engine.index_select(numbers.to(engine.int64), 0, order)
    sizes: list[int] = engine.bincount(in_order, minlength=groups).tolist()
    by_chance = shuffled(groups, seed)
    borders = _borders([sizes[group] for group in by_chance], [p.stop for p in ranges.values()])
    part_of = bytearray([len(ranges)]) * groups
    parts, start, low = {}, 0, 0
    for number, (name, high) in enumerate(zip(ranges, borders, strict=True)):
        for group in by_chance[low:high]:
            part_of[group] = number
        stop = start + sum(sizes[group] for group in by_chance[low:high])
        parts[name], start, low = range(start, stop), stop, high
    which = engine.index_select(_bytes(bytes(part_of)), 0, in_order)
    return SplitAssignment(_by_part(order, which), parts)


def _borders(sizes: Sequence[int], ends: Sequence[int]) -> list[int]:
    """How many of the groups lie before each border: the nearest, and one or more in each part."""
    borders: list[int] = []
    count = total = 0
    for number, end in enumerate(ends):
        least, most = count + 1, len(sizes) - (len(ends) - 1 - number)
        while count < least or (
            count < most and abs(total + sizes[count] - end) <= abs(total - end)
        ):
            total += sizes[count]
            count += 1
        borders.append(count)
    return borders


def _bytes(numbers: bytes) -> Tensor:
    return engine.frombuffer(numbers, dtype=engine.uint8)


def _by_part(order: Tensor, which: Tensor) -> Tensor:
    """The samples by their part, in each as they were."""
    return engine.index_select(order, 0, engine.sort(which.to(engine.int64), stable=True)[1])
