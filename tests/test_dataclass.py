"""gradcli's dataclass against that of the standard library."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from inspect import signature
from math import nan
from typing import Any

import pytest

from gradcli.dataclass import dataclass

MAKERS = {"ours": dataclass, "theirs": dataclasses.dataclass}
OPTIONS = [{}, {"frozen": True}, {"eq": False}, {"repr": False}, {"frozen": True, "kw_only": True}]
FIELDS: list[list[Any]] = [
    [],
    [("a", float)],
    [("a", float), ("b", list[int], field(default_factory=list))],
    [
        ("a", float),
        ("b", str, field(default="x", compare=False)),
        ("c", int, field(default=0, repr=False)),
    ],
]


def built(make: Any, fields: list[Any], options: dict[str, Any]) -> Any:
    """A class of these fields, declared as in a file."""
    defaults = {one[0]: one[2] for one in fields if len(one) == 3}
    types = {one[0]: one[1] for one in fields}
    return make(**options)(type("Row", (), {"__annotations__": types, **defaults}))


def behaviour(kind: Any) -> list[object]:
    """What its rows say, and how they compare and hash."""
    count = len(dataclasses.fields(kind))
    values = [{}] if not count else [{"a": 1.0}, {"a": 1.0}, {"a": 2.0}, {"a": nan}]
    if count == 3:
        values += [{"a": 1.0, "b": "other"}, {"a": 1.0, "c": 3}]
    rows = [kind(**one) for one in values]
    texts = [repr(row).rpartition(" object at ")[0] or repr(row) for row in rows]
    equal = [one == other for one in rows for other in (*rows, values, None)]
    return [texts, equal, [hashable(row) for row in rows], kind.__hash__ is None]


def hashable(row: object) -> object:
    """Whether rows that are equal have one hash; None where there is none."""
    try:
        return hash(row) == hash(dataclasses.replace(row))  # type: ignore[type-var]
    except TypeError:
        return None


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("fields", FIELDS, ids=len)
def test_rows_say_compare_and_hash_as_the_librarys(fields: Any, options: dict[str, Any]) -> None:
    ours, theirs = (behaviour(built(make, fields, options)) for make in MAKERS.values())
    assert ours == theirs


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("fields", FIELDS, ids=len)
def test_constructors_are_called_as_the_librarys(fields: Any, options: dict[str, Any]) -> None:
    ours, theirs = (built(make, fields, options) for make in MAKERS.values())
    calls: list[tuple[Any, ...]] = [(), (1.0,), (1.0, [2]), (1.0, [2], 3, 4)]
    answers = [[answer(kind, *call) for call in calls] for kind in (ours, theirs)]
    assert answers[0] == answers[1]
    assert ours.__dataclass_params__.init
    parameters, expected = (signature(kind).parameters for kind in (ours, theirs))
    assert [(one.name, one.kind, one.annotation) for one in parameters.values()] == [
        (one.name, one.kind, one.annotation) for one in expected.values()
    ]
    assert ours.__init__.__qualname__ == theirs.__init__.__qualname__


def answer(kind: Any, *values: object) -> object:
    """The attributes of a row, or why there is none."""
    try:
        return vars(kind(*values))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_frozen_row_may_reckon_what_nobody_passes(make: Any) -> None:
    @make(frozen=True)
    class Row:
        a: int
        rest: list[int] = field(init=False, default_factory=list)
        double: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", 2 * self.a)

    assert vars(Row(4)) == {"a": 4, "rest": [], "double": 8}
    assert Row(1).rest is not Row(1).rest


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_frozen_row_refuses_every_change(make: Any) -> None:
    @make(frozen=True)
    class Row:
        a: int

    class Free(Row):
        """A subclass that is no dataclass."""

    for row, name in ((Row(1), "a"), (Row(1), "b"), (Free(1), "a")):
        with pytest.raises(
            dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}"
        ):
            setattr(row, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{name}"):
            delattr(row, name)
    free = Free(1)
    free.b = 2  # type: ignore[attr-defined]
    assert vars(free) == {"a": 1, "b": 2}


@pytest.mark.parametrize("above", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("below", MAKERS.values(), ids=MAKERS)
def test_classes_derive_from_each_others(above: Any, below: Any) -> None:
    @above(frozen=True)
    class One:
        a: int

    @below(frozen=True)
    class Two(One):
        b: int = 0

    assert vars(Two(1)) == {"a": 1, "b": 0}
    for name in ("a", "b", "c"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(Two(1), name, 2)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        below(type("Free", (One,), {}))
    free = above(type("Free", (), {"__annotations__": {"a": int}}))
    with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):
        below(frozen=True)(type("Frozen", (free,), {}))


def test_what_a_class_writes_itself_stays() -> None:
    @dataclass(frozen=True)
    class Row:
        a: int

        def __repr__(self) -> str:
            return "row"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (repr(Row(1)), Row(1) == Row(2), hash(Row(1))) == ("row", True, 7)


def test_rows_of_a_subclass_are_others_and_compare_all_fields() -> None:
    @dataclass(frozen=True)
    class One:
        a: int

    @dataclass(frozen=True)
    class Two(One):
        b: int = 0

    assert One(1) != Two(1) and Two(1) != Two(1, 2) and Two(1, 2) == Two(1, 2)


def test_a_row_that_holds_itself_has_a_text() -> None:
    @dataclass
    class Row:
        rows: list[Any]

    row = Row([])
    row.rows.append(row)
    assert repr(row).endswith("Row(rows=[...])")


def test_a_frozen_row_stays_as_it_is() -> None:
    @dataclass(frozen=True)
    class Row:
        a: int

    with pytest.raises(dataclasses.FrozenInstanceError):
        Row(1).a = 2  # type: ignore[misc]
    assert dataclasses.asdict(dataclasses.replace(Row(1), a=3)) == {"a": 3}
