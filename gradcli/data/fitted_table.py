"""A table made ready for a training: its inputs chosen, its rows in order, everything fitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data.column_kinds import ColumnKind, kind_in
from gradcli.data.columns import Encoder, classes_in, values_in
from gradcli.data.facts import CategoryColumn, DataFacts, NumericColumn
from gradcli.data.files import path_text
from gradcli.data.order import order_of
from gradcli.data.series import WindowSteps, stretches_in
from gradcli.data.split import NAMES, cut, group_of, parts_of, stratify_of, unused_of
from gradcli.data.tabular.collected import Gaps, TypedTable, collect, without_gaps
from gradcli.data.tabular.header import need
from gradcli.data.tabular.reader import Role, TableReader
from gradcli.data.tabular.time_order import step_back
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.engine.device import cpu
from gradcli.errors import DataError
from gradcli.wording import join_words, quantity

if TYPE_CHECKING:
    from gradcli.data.csv import CsvSource
    from gradcli.data.cuts import SplitAssignment
    from gradcli.data.dataset import Labelled

DEFAULT_SPLIT: dict[str, int | str] = {"train": "80%", "val": "10%", "test": "10%"}
TRAIN_AND_VAL: dict[str, int | str] = {"train": "90%", "val": "10%"}
MOST_NAMES = 12  # unused columns in a note
_MANY = 1 << 16  # rows
_WHOLE = 1 << 24  # input numbers that are kept in the file's order, beside the table


@dataclass(frozen=True)
class FittedTable:
    """A table in memory with all that is known of it.

    Attributes:
        order: the rows of the table as they go to the splits.
        parts: the places in that order of each split.
        test: the rows of the test split, where they lie in a file of their own.
    """

    source: CsvSource
    table: TypedTable
    order: Tensor
    parts: Mapping[str, range]
    encoder: Encoder
    facts: DataFacts
    notes: tuple[str, ...]
    test: Labelled | None = None

    @classmethod
    def of(
        cls, source: CsvSource, reader: TableReader, reopen: Callable[[], TableReader]
    ) -> FittedTable:
        """The table of a reader, which is read to its end; of a series it is read `reopen`."""
        numeric, category, table, notes = _columns(source, reader)
        if table.count > _MANY:
            cpu.trim()  # what reading it took, before sorting takes its own
        if source.missing == "drop":
            table, more = without_gaps(table)
            notes += more
        order, parts, more = _cut(source, table)
        notes += more
        if table.count > _MANY:
            cpu.trim()  # likewise, what sorting took
        train = _row_marks(table.count, order, parts["train"])
        encoder = Encoder.fitted(table, numeric, category, train, source.standardize)
        of_classes = source.task == "classification"
        labels = table.words[source.targets[0]].table if of_classes else ()
        steps = source.steps
        series = {} if steps is None else series_sizes(steps, parts, table)
        facts = DataFacts(
            input=(encoder.width,) if steps is None else steps.shape(encoder.width),
            input_kind="float",
            target=() if of_classes else (len(source.targets),),
            classes=len(labels) if of_classes else None,
            vocab=None,
            labels=tuple(labels),
            unused=unused_of(parts, table.count),
            step_back=""
            if steps is None
            else step_back(reopen, _time_candidates(source, table, numeric)),
            sizes=series or {name: len(part) for name, part in parts.items()},
            values=() if of_classes else source.targets,
            missing=source.missing,
            stretches=stretches_of(parts, table) if series and table.begins else {},
            **encoder.columns(),
        )
        return cls(source, table, order, parts, encoder, facts, notes)

    def inputs(self) -> Iterator[Tensor]:
        """The input numbers of all rows in order, some rows at a time."""
        if self.table.count * self.encoder.width > _WHOLE:
            yield from self.encoder.in_order(self.table, self.order)
            return
        # A row is found faster than a number in each column.
        whole = self.encoder.encode(self.table)
        for rows in self.encoder.stretches(self.table.count):
            yield engine.index_select(whole, 0, self.order[rows])

    def targets(self) -> Tensor:
        """The targets of all rows in order: classes as int64, or numbers as float32."""
        if self.facts.classes is None:
            return values_in(self.table, self.source.targets, self.order)
        return classes_in(self.table, self.source.targets[0], self.order)

    def with_test(self, test: Labelled) -> FittedTable:
        """With the test split from its own file."""
        facts = replace(self.facts, sizes={**self.facts.sizes, "test": test.split.size})
        lengths = getattr(test.split, "lengths", ())
        if len(lengths) > 1:
            facts = replace(facts, stretches={**facts.stretches, "test": lengths})
        return replace(self, facts=facts, test=test, notes=(*self.notes, *test.notes))


def stretches_of(parts: Mapping[str, range], table: TypedTable) -> dict[str, tuple[int, ...]]:
    """The rows of each split that follow each other in one file."""
    return {name: stretches_in(part, table.begins) for name, part in parts.items()}


def series_sizes(
    steps: WindowSteps, parts: Mapping[str, range], table: TypedTable
) -> dict[str, int]:
    """The samples of each split of a time series."""
    stretches = stretches_of(parts, table).items()
    return {name: steps.size(s, f"{table.source}: the {name} split") for name, s in stretches}


def _cut(
    source: CsvSource, table: TypedTable
) -> tuple[Tensor, Mapping[str, range], tuple[str, ...]]:
    """The rows as they go to the splits, the places of each, and what there is to tell."""
    split, group = source.split or {}, group_of(source.split)
    apart = source.test_file is not None
    usual, names = (TRAIN_AND_VAL, NAMES[:2]) if apart else (DEFAULT_SPLIT, NAMES)
    parts = cut(parts_of(split) or usual, table.count, names)
    if source.steps is not None:
        return engine.arange(table.count), parts, ()
    order = order_of(table.count, source.seed)
    if group is None and not stratify_of(split):
        return order, parts, ()
    from gradcli.data.cuts import grouped, stratified  # few ask for them

    column = table.words[group or source.targets[0]]
    numbers = engine.frombuffer(column.codes, dtype=engine.int32)
    parting: SplitAssignment
    if group is None:
        parting = stratified(parts, order, numbers, column.table)
    else:
        parting = grouped(parts, order, numbers, len(column.table), source.seed, table.source)
    return parting.order, parting.parts, parting.notes


def _columns(
    source: CsvSource, reader: TableReader
) -> tuple[Sequence[str], Sequence[str], TypedTable, tuple[str, ...]]:
    """The numeric columns, the category columns, their table, and notes."""
    target: Role = "number" if source.task == "regression" else "word"
    group = group_of(source.split)
    apart: dict[str, Role] = dict.fromkeys(source.targets, target)
    apart |= {group: "word"} if group else {}
    gaps = Gaps(source.missing, source.unfilled, source.steps is not None)
    if source.numeric or source.category:
        need(reader, [*source.numeric, *source.category, *apart])
        roles = roles_of(source.numeric, source.category) | apart
        return source.numeric, source.category, collect(reader, roles, gaps), ()
    need(reader, list(apart))
    header = list(reader.header)
    counts = Counter(header)
    candidates = [name for name in header if counts[name] == 1 and name not in apart]
    roles = {**dict.fromkeys(candidates, "any"), **apart}
    table = collect(reader, roles, gaps)
    kinds = [kind_in(table, name) for name in candidates]
    twice = [name for name, count in counts.items() if count > 1]
    unused = [kind for kind in kinds if kind.kind == "unused"]
    unused += [
        ColumnKind(name, "unused", "a name that appears twice", 0, 0, False) for name in twice
    ]
    numeric = [kind.name for kind in kinds if kind.kind == "numeric"]
    category = [kind.name for kind in kinds if kind.kind == "category"]
    if source.steps is not None and target == "number":  # a forecast depends on past values
        numeric.extend(source.targets)
    if not numeric and not category:
        target_names = join_words(map(repr, source.targets))
        raise DataError(
            f"{reader.source}: no column is left to predict {target_names} from: "
            f"{join_words(_reasons(unused)) or 'there is no other one'}",
            code="E305",
        )
    numbers = [*numeric, *(name for name, role in apart.items() if role == "number")]
    words = [*category, *(name for name, role in apart.items() if role == "word")]
    note = f"{Path(reader.source).name}: not used: {'; '.join(_reasons(unused))}"
    return numeric, category, table.select(numbers, words), (note,) if unused else ()


def _time_candidates(source: CsvSource, table: TypedTable, numeric: Sequence[str]) -> list[str]:
    """The columns that are neither numeric nor targets, which may hold the times of rows."""
    counts = Counter(table.header)
    numbers = {*numeric, *source.targets}
    return [name for name, count in counts.items() if count == 1 and name not in numbers]


def _reasons(unused: Sequence[ColumnKind]) -> list[str]:
    reasons = [f"{path_text(kind.name)!r} ({kind.reason})" for kind in unused[:MOST_NAMES]]
    rest = len(unused) - MOST_NAMES
    return [*reasons, quantity(rest, "more column")] if rest > 0 else reasons


def roles_of(numeric: Sequence[str], category: Sequence[str]) -> dict[str, Role]:
    """What is wanted of columns that are known."""
    return {**dict.fromkeys(numeric, "number"), **dict.fromkeys(category, "word")}


def _row_marks(count: int, order: Tensor, part: range) -> bytearray:
    """A byte for each row of the table: 1 where it is in this part of the order."""
    marks = engine.zeros(count, dtype=engine.uint8)
    marks[order[part.start : part.stop]] = 1
    return bytearray(marks.memoryview())


def facts_in(json: Mapping[str, Any]) -> DataFacts:
    """The facts of a table from their JSON."""
    tuples = {name: tuple(json[name]) for name in ("input", "target", "labels", "values")}
    numeric = tuple(NumericColumn(**column) for column in json["numeric"])
    category = tuple(
        CategoryColumn(column["name"], tuple((word, share) for word, share in column["shares"]))
        for column in json["category"]
    )
    stretches = {name: tuple(lengths) for name, lengths in json["stretches"].items()}
    fields = {**tuples, "numeric": numeric, "category": category, "stretches": stretches}
    return DataFacts(**{**json, **fields})
