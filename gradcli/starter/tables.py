"""A first config for a table: which column is predicted, from which others, by what model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradcli.data.column_kinds import ColumnKind, is_of_classes, kind_in
from gradcli.data.files import load, path_text
from gradcli.data.foreign import kind_of_text
from gradcli.data.prepared.cache import small
from gradcli.data.tabular.collected import GAP, Gaps, TypedTable, collect
from gradcli.data.tabular.header import DELIMITERS
from gradcli.data.tabular.opening import open_table
from gradcli.data.tabular.pieces import pieces_of
from gradcli.data.tabular.reader import WithoutHeaderRow
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.registry import did_you_mean
from gradcli.starter.draft import Bare, ConfigDraft, brief, split_of
from gradcli.wording import join_words, quantity

# Names that say what a column is for, the clearest first; else the last column is the target.
TARGETS = ("target", "label", "class", "outcome", "species", "y")
FEWEST = 10  # rows
STEPS = 1500  # of a training, about
MOST_NAMES = 12  # of columns, in a remark


def draft_of_table(path: Path, config_path: str, name: str, target: str | None) -> ConfigDraft:
    """The config for a table in `path`, written in it as `config_path`.

    Raises:
        DataError: it is no table, too small, or holds nothing to learn from.
    """
    table, delimiter = read_table(path)
    if table.count < FEWEST:
        raise DataError(
            f"{table.source}: {quantity(table.count, 'row')}; a model needs "
            f"{FEWEST} or more to learn from some and be measured on others",
            code="E305",
        )
    return _Sorted.of(table, target).draft(config_path, name, delimiter)


def read_table(path: Path) -> tuple[TypedTable, str | None]:
    """The columns with unique names, and for CSV the delimiter.

    The delimiter is the one that splits the header into most cells.
    """
    source, start = path_text(path), next(pieces_of(path), b"")
    kind = kind_of_text(start[:64])
    if kind is not None:
        raise DataError(f"{source}: this is {kind}, not a table; save it as CSV", code="E304")
    head = start[: 1 << 16].partition(b"\n")[0]
    delimiter = max(DELIMITERS.values(), key=lambda sign: head.count(sign.encode()))
    reader = open_table(load(path) if small(path) else path, delimiter)
    cells = not isinstance(reader, WithoutHeaderRow)
    once = [name for name, count in Counter(reader.header).items() if count == 1]
    table = collect(reader, dict.fromkeys(once, "any"), Gaps("mean", {}))
    if len(table.header) < 2:
        *firsts, last = DELIMITERS
        apart = f"; cells stand apart by {', '.join(firsts)} or {last}" if cells else ""
        raise DataError(
            f"{source}: the table has one column; one to predict and one to predict it from are "
            f"needed{apart}",
            code="E304",
        )
    return table, delimiter if cells else None


@dataclass(frozen=True)
class _Sorted:
    """The columns of a table by what they are good for."""

    table: TypedTable
    target: ColumnKind
    inputs: list[ColumnKind]
    unused: list[ColumnKind]
    drop: bool  # rows with gaps, for a missing target is never filled

    @classmethod
    def of(cls, table: TypedTable, target_name: str | None) -> _Sorted:
        once = [name for name, count in Counter(table.header).items() if count == 1]
        name = _target(table, once, target_name)
        kinds = {each: kind_in(table, each) for each in once}
        target = kinds.pop(name)
        _check_target(table, target)
        unused = [
            ColumnKind(each, "unused", "a name that appears twice", 0, 0, False)
            for each in dict.fromkeys(table.header)
            if each not in once
        ]
        unused += [kind for kind in kinds.values() if kind.kind == "unused"]
        inputs = [kind for kind in kinds.values() if kind.kind != "unused"]
        if target.gaps:
            inputs, emptied = _with_whole_rows(table, target, inputs)
            unused += emptied
        if not inputs:
            raise DataError(
                f"{table.source}: no column is left to predict {brief(name)} from: "
                f"{'; '.join(_unused_reasons(unused, 4))}",
                code="E305",
            )
        return cls(table, target, inputs, unused, drop=target.gaps > 0)

    def draft(self, config_path: str, name: str, delimiter: str | None) -> ConfigDraft:
        rows = self.table.count
        classes = is_of_classes(self.target, rows - self.target.gaps)
        kind = "table" if delimiter is None else "csv"
        data: dict[str, Any] = {"name": kind, "file": config_path, "target": self.target.name}
        if not classes:
            data["task"] = "regression"
        for key in ("numeric", "category"):
            names = [column.name for column in self.inputs if column.kind == key]
            data |= {key: names} if names else {}
        if self.drop or any(column.gaps for column in self.inputs):
            data["missing"] = "drop" if self.drop else "mean"
        if delimiter not in (None, ","):
            data["delimiter"] = delimiter
        data["split"] = split_of(rows, classes)
        batch, epochs = _lengths(rows)
        # A few rows are equally well told apart at many steps.
        best = "val.loss" if rows < 4000 else "val.accuracy"
        return ConfigDraft(
            name,
            (
                self._about(classes),
                *(f"Not used: {text}." for text in _unused_reasons(self.unused, MOST_NAMES)),
            ),
            data,
            _layers(rows, classes),
            "cross_entropy" if classes else "mse",
            ("accuracy",) if classes else ("mae", "r2"),
            "{name: adamw, lr: 3e-3, weight_decay: 0.01}",
            {
                "epochs": epochs,
                "batch": batch,
                "seed": 1,
                "best": Bare(best if classes else "val.mae"),
            },
        )

    def _about(self, classes: bool) -> str:
        what = "a number" if not classes else quantity(self.target.distinct, "class")
        inputs = quantity(len(self.inputs), "column")
        alternative = "" if self.target.kind == "category" else _other_way(classes)
        return (
            f"{brief(self.target.name)} ({what}) from {inputs} of "
            f"{quantity(self.table.count, 'row')}.{alternative}"
        )


def _other_way(classes: bool) -> str:
    if classes:
        return (
            " Should these be numbers to predict: task: regression, loss: mse, metrics: [mae] and "
            "one output."
        )
    return ""


def _target(table: TypedTable, once: Sequence[str], target_name: str | None) -> str:
    if target_name is not None:
        if target_name not in once:
            hint = did_you_mean(target_name, once, f"columns: {path_text(join_words(once))}")
            what = "appears twice" if target_name in table.header else "is not there"
            raise DataError(
                f"{table.source}: the column '{path_text(target_name)}' {what}; {path_text(hint)}",
                code="E304",
            )
        return target_name
    plain = {name.strip().lower(): name for name in once}
    usual = next((plain[word] for word in TARGETS if word in plain), None)
    if usual is None and table.header[-1] not in once:
        raise DataError(
            f"{table.source}: the last column, {brief(table.header[-1])}, appears twice; say with "
            "--target which one to predict",
            code="E304",
        )
    return usual if usual is not None else table.header[-1]


def _check_target(table: TypedTable, target: ColumnKind) -> None:
    """A target may count or be called an id, so long as it is numbers."""
    reason = target.reason
    if reason and (target.distinct < 2 or not target.whole):
        raise DataError(
            f"{table.source}: the column {brief(target.name)} cannot be predicted: {reason}; "
            "choose another one with --target",
            code="E305",
        )
    if table.count - target.gaps < FEWEST:
        raise DataError(
            f"{table.source}: the column {brief(target.name)} has "
            f"{quantity(table.count - target.gaps, 'value')}; at least {FEWEST} are needed",
            code="E305",
        )


def _with_whole_rows(
    table: TypedTable, target: ColumnKind, inputs: list[ColumnKind]
) -> tuple[list[ColumnKind], list[ColumnKind]]:
    """The inputs without those whose gaps would cost more than half of the rows with a target."""
    missing = {column.name: _gaps(table, column.name) for column in (target, *inputs)}
    rows = [row for row, gap in enumerate(missing[target.name]) if not gap]
    remaining, out = list(inputs), []
    while remaining:
        gaps = [missing[column.name] for column in remaining]
        if 2 * sum(not any(gap[row] for gap in gaps) for row in rows) > len(rows):
            break
        worst = max(remaining, key=lambda column: column.gaps)
        remaining.remove(worst)
        out.append(
            ColumnKind(worst.name, "unused", quantity(worst.gaps, "gap"), worst.gaps, 0, False)
        )
    return remaining, out


def _gaps(table: TypedTable, name: str) -> list[bool]:
    """Of each row whether it lacks a value of a column."""
    if name in table.numbers:
        return [value != value for value in table.numbers[name]]
    return [code == GAP for code in table.words[name].codes]


def _unused_reasons(unused: Sequence[ColumnKind], most: int) -> list[str]:
    reasons = [f"{brief(column.name)} ({column.reason})" for column in unused[:most]]
    rest = len(unused) - most
    return [*reasons, f"{quantity(rest, 'more column')}"] if rest > 0 else reasons


def _lengths(rows: int) -> tuple[int, int]:
    """Samples of a batch and epochs, by the number of rows: some 1,500 steps."""
    batch = min(max(2 ** round(math.log2(rows / 16)), 4), 256)
    return batch, min(max(round(STEPS * batch / rows), 5), 100)


def _layers(rows: int, classes: bool) -> tuple[str, ...]:
    width = 32 if rows < 1000 else 64 if rows < 20_000 else 128
    hidden = [f"linear: {width}", "relu"] * (1 if rows < 1000 else 2)
    return (*hidden, f"linear: {{out: {'$data.classes' if classes else 1}, name: head}}")
