"""What becomes of a table, against a plain way to compute the same: cell by cell, in lists."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data import columns, fitted_table, order
from gradcli.data.csv import CsvSource
from gradcli.data.csv_rows import parse_rows
from gradcli.data.split import cut, shuffled
from gradcli.data.tabular.cells import is_missing, number_of

SPLIT: dict[str, int | str] = {"train": "70%", "val": "20%", "test": "10%"}


def numbers(cells: Sequence[str], allowed: bool) -> list[float | None]:
    return [None if is_missing(cell, allowed) else number_of(cell) for cell in cells]


def fit_number(values: Sequence[float | None], standardize: bool) -> tuple[float, float, float]:
    known = [v for v in values if v is not None]
    mean = math.fsum(known) / len(known) if known else 0.0
    if not standardize:
        return mean, 0.0, 1.0
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / max(len(known), 1))
    return mean, mean, deviation or 1.0


def reference(source: CsvSource) -> tuple[bytes, bytes, list[Any]]:
    """The bytes of inputs and targets, and what was fitted."""
    header, *rows = parse_rows(Path(source.file).read_bytes(), "f")
    allowed = source.missing != "error"
    used = [header.index(name) for name in (*source.numeric, *source.category, source.target)]
    if source.missing == "drop":
        rows = [row for row in rows if not any(is_missing(row[at], allowed=True) for at in used)]
    rows = [rows[place] for place in shuffled(len(rows), source.seed)]
    train = cut(source.split or {}, len(rows))["train"].stop
    columns: list[list[float]] = []
    fitted: list[Any] = []
    for name in source.numeric:
        values = numbers([row[header.index(name)] for row in rows], allowed)
        fill, shift, scale = fit_number(values[:train], source.standardize)
        columns.append([((fill if v is None else v) - shift) / scale for v in values])
        fitted.append((name, fill, shift, scale))
    for name in source.category:
        cells = [row[header.index(name)] for row in rows]
        words = [None if is_missing(cell, allowed) else cell for cell in cells]
        known = sorted({w for w in words if w is not None}, key=lambda w: w.encode())
        total = sum(1 for w in words[:train] if w is not None) or 1
        shares = {word: words[:train].count(word) / total for word in known}
        columns += [
            [share if w is None else float(w == word) for w in words]
            for word, share in shares.items()
        ]
        fitted.append((name, tuple(shares.items())))
    inputs = array("f", (column[i] for i in range(len(rows)) for column in columns))
    cells = [row[header.index(source.target)] for row in rows]
    if source.task == "regression":
        return inputs.tobytes(), array("f", map(number_of, cells)).tobytes(), fitted
    labels = sorted(set(cells), key=lambda w: w.encode())
    return inputs.tobytes(), array("q", map(labels.index, cells)).tobytes(), fitted


def random_table(rng: random.Random, missing: str, target: str) -> str:
    gaps = ["", "NA", " ", "nan"] if missing != "error" else []

    def cell(kinds: list[str]) -> str:
        return rng.choice(gaps) if gaps and rng.random() < 0.1 else rng.choice(kinds)

    numbers = [repr(rng.gauss(5, 3)), " 7 ", "1e-3", "-2.", repr(rng.random() * 1e30)]
    words = ["a", "é", "B", '"x, y"', "10", "2"]
    labels = ["1.5", "-2", "7e3"] if target == "regression" else ["dog", "cat", "1"]
    rows = [
        f"{cell(numbers)},{cell([*numbers, str(rng.random())])},x{i},{cell(words)},{cell(words)},"
        f"{cell(labels) if missing == 'drop' else rng.choice(labels)}"
        for i in range(rng.randrange(20, 200))
    ]
    return "n,m,id,c,d,y\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize("missing", ["error", "drop", "mean"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_inputs_and_targets_have_the_bits_of_the_plain_way(
    tmp_path: Path, missing: Any, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        if number % 2:  # several blocks, and every other time row by row
            monkeypatch.setattr(columns, "_TOGETHER", 50)
            monkeypatch.setattr(fitted_table, "_WHOLE", (number % 4 == 1) << 24)
        rng = random.Random(f"{missing} {task} {number}")
        path = tmp_path / "table.csv"
        path.write_text(random_table(rng, missing, task))
        source = CsvSource(
            file=str(path),
            target="y",
            task=task,
            numeric=("m", "n"),
            category=("d", "c"),
            missing=missing,
            standardize=number % 3 > 0,
            split=SPLIT,
            seed=number,
        )
        inputs, targets, fitted = reference(source)
        loaded = source.load()
        parts = [loaded.splits[name] for name in SPLIT]
        assert b"".join(part.inputs.contiguous().memoryview() for part in parts) == inputs
        assert b"".join(part.targets.contiguous().memoryview() for part in parts) == targets
        facts: Any = loaded.facts
        assert fitted == [
            *((one.name, one.fill, one.shift, one.scale) for one in facts.numeric),
            *((one.name, one.shares) for one in facts.category),
        ]
        assert vars(source.facts()) == vars(facts)


@pytest.mark.parametrize("standardize", [True, False])
def test_what_is_fitted_on_many_numbers_has_the_bits_of_the_plain_way(standardize: bool) -> None:
    rng = random.Random(1)
    for size in (0, 1, 2, 30_000):
        values = [None if rng.random() < 0.1 else rng.gauss(3, 2) for _ in range(size)]
        train = bytes(rng.random() < 0.8 for _ in range(size))
        marks = engine.frombuffer(train, dtype=engine.uint8)
        with_nan = array("d", [math.nan if v is None else v for v in values])
        expected = fit_number(list(compress(values, train)), standardize)
        assert columns.fit_number(with_nan, marks, standardize) == expected


def test_squares_are_those_of_python() -> None:
    rng = random.Random(2)
    values = array("d", (rng.gauss(0, 1) * 10 ** rng.randrange(-20, 20) for _ in range(50_000)))
    two = engine.tensor([2.0], dtype=engine.float64)
    squares = engine.pow(engine.frombuffer(values, dtype=engine.float64), two).tolist()
    assert squares == [value**2 for value in values]


@pytest.mark.parametrize("seed", [0, 1, -5, 10**30, 10**106, 10**107, 10**200])
def test_rows_are_ordered_as_they_always_were(seed: int) -> None:
    for count in (0, 1, 2, 3, 1000):
        assert order.order_of(count, seed).tolist() == shuffled(count, seed)


def test_more_rows_than_are_hashed_together_are_ordered_alike() -> None:
    assert order.order_of(70_000, 3).tolist() == shuffled(70_000, 3)


def test_digests_that_begin_alike_are_ordered_by_their_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = engine.zeros(100, dtype=engine.int64)
    monkeypatch.setattr(order, "_beginnings", lambda before, count: same)
    assert order.order_of(100, 3).tolist() == shuffled(100, 3)
