"""All that a reader of tables says of one, in a form that does not depend on its blocks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradcli.data.tabular.reader import Role, TableReader
from gradcli.errors import DataError


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def content(reader: TableReader, roles: Mapping[str, Role]) -> Any:
    """All that a reader says of a table, in a form that does not depend on its blocks."""
    rows, numbers, odd = 0, {}, {}
    words: dict[str, list[str]] = {}
    tables = {}
    for block in reader.blocks({k: v for k, v in roles.items() if k in reader.header}):
        for name, one in block.numbers.items():
            numbers.setdefault(name, array("d")).extend(one.values)
            odd.setdefault(name, {}).update({rows + at: cell for at, cell in one.odd.items()})
        for name, words_ in block.words.items():
            words.setdefault(name, []).extend(words_.table[code] for code in words_.codes)
            tables[name] = list(words_.table)
        last = (set(block.numbers), set(block.words))
        rows += block.count
        for name in set(numbers) - last[0]:
            del numbers[name], odd[name]
        for name in set(words) - last[1]:
            del words[name], tables[name]
    return rows, {k: v.tobytes() for k, v in numbers.items()}, odd, words, tables


def answer(make: Callable[[], TableReader], roles: Mapping[str, Role]) -> Any:
    """The content of the table, or the sentence of its refusal."""
    try:
        reader = make()
        return list(reader.header), content(reader, roles)
    except DataError as error:
        return error.message
