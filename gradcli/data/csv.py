"""Tables in CSV files: `data: {name: csv}`, for classes or for numbers as targets."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from gradcli.data.columns import (
    FIRST_ROW,
    Encoder,
    Table,
    categories,
    fit_category,
    fit_number,
    numbers,
    sorted_table,
    without_gaps,
)
from gradcli.data.csv_rows import parse_rows
from gradcli.data.dataset import Facts, Labelled, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import Loaded, load, locate, shown
from gradcli.data.foreign import kind_of
from gradcli.data.samples import Samples, outlined, tensor_of
from gradcli.data.split import cut, shuffled
from gradcli.data.targets import ScaledTargets
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import listed

DEFAULT_SPLIT: dict[str, int | str] = {"train": "80%", "val": "10%", "test": "10%"}


@dataclass(frozen=True)
class CsvSource(ScaledTargets):
    """A table with a header; columns that are not named here are not used."""

    PLACES: ClassVar = ("file",)

    file: Annotated[str, "CSV file with a header row, gzipped or not"]
    target: Annotated[str, "column to predict"]
    task: Annotated[
        Literal["classification", "regression"], "whether the target is a class or a number"
    ] = "classification"
    numeric: Annotated[tuple[str, ...], "input columns that are numbers"] = ()
    category: Annotated[tuple[str, ...], "input columns that are categories, one-hot encoded"] = ()
    missing: Annotated[
        Literal["error", "drop", "mean"],
        "empty, NA or nan cells: refuse, drop the row, or fill with the mean",
    ] = "error"
    standardize: Annotated[bool, "numeric columns to mean 0, deviation 1 of the train split"] = True
    split: Annotated[
        dict[str, int | str] | None,
        "counts or percents of rows for train, val, test; 80%, 10%, 10%",
    ] = None
    seed: Annotated[int, "the order in which rows go to the splits"] = 0
    delimiter: Annotated[Literal[",", ";", "\t", "|"], "character between cells"] = ","

    def __post_init__(self) -> None:
        inputs = (*self.numeric, *self.category)
        if not inputs:
            raise ConfigError(
                "input columns are needed: numeric, category or both; `gradcli init FILE.csv` "
                "sorts the columns of a table",
                code="E104",
            )
        named = (*inputs, self.target)
        twice = next((c for c, times in Counter(named).items() if times > 1), None)
        if twice is not None:
            raise ConfigError(f"the column '{twice}' is named twice", code="E104")

    @property
    def _gaps(self) -> bool:
        return self.missing != "error"

    def locate(self, root: Path) -> CsvSource:
        """The path made absolute."""
        return replace(self, file=str(locate(self.file, root)))

    def facts(self) -> Facts:
        """From the whole table."""
        return self._prepared().facts

    def outline(self, facts: Facts) -> dict[str, Samples]:
        """The splits as `load` makes them, on "meta"."""
        targets = "float32" if self.task == "regression" else "int64"
        return outlined(facts, "float32", targets, 1.0, 0.0, 1.0)

    def load(self) -> LoadedData:
        """Every row encoded, shuffled and split."""
        made = self._prepared()
        inputs = made.encoder.encode(made.table, self._gaps)
        shape = (len(made.table.rows), made.encoder.width)
        target_shape = (shape[0], *made.facts.target)
        whole = Samples(tensor_of(inputs, shape), tensor_of(made.targets, target_shape))
        return LoadedData(
            source=self,
            facts=DataFacts.of(made.facts, **made.encoder.columns(), missing=self.missing),
            splits={name: whole.part(part) for name, part in made.parts.items()},
            sha256={"train": made.loaded.sha256},
            files={"train": self.file},
            notes=made.notes,
        )

    def _prepared(self) -> _Prepared:
        loaded, table = self._table(Path(self.file))
        table.need([*self.numeric, *self.category, self.target])
        notes: tuple[str, ...] = ()
        if self.missing == "drop":
            table, notes = without_gaps(table, [*self.numeric, *self.category, self.target])
        order = shuffled(len(table.rows), self.seed)
        rows = table.only(order)
        parts = cut(self.split or DEFAULT_SPLIT, len(rows.rows))
        encoder = self._fitted(rows, parts["train"])
        labels, targets = self._targets(rows)
        facts = Facts(
            input=(encoder.width,),
            input_kind="float",
            target=() if self.task == "classification" else (1,),
            classes=len(labels) if self.task == "classification" else None,
            vocab=None,
            labels=tuple(labels),
            sizes={name: len(part) for name, part in parts.items()},
            values=(self.target,) if self.task == "regression" else (),
        )
        return _Prepared(loaded, rows, parts, encoder, targets, facts, (*loaded.notes(), *notes))

    def _table(self, path: Path) -> tuple[Loaded, Table]:
        loaded = load(path)
        source = shown(path)
        content = loaded.unpacked()
        try:
            return loaded, Table.of(parse_rows(content, source, self.delimiter), source)
        except DataError as error:
            kind = kind_of(content[:64])
            if kind is None:
                raise
            what = f"this is {kind}, not a table; save it as CSV"
            raise DataError(f"{source}: {what}", code=error.code) from None

    def _fitted(self, rows: Table, train: range) -> Encoder:
        """Means, deviations and shares of the training rows; category tables of all rows."""
        numeric = {}
        for name in self.numeric:
            values = numbers(rows, name, self._gaps)
            numeric[name] = fit_number(values[train.start : train.stop], self.standardize)
        category = {}
        for name in self.category:
            cells = categories(rows, name, self._gaps)
            known = sorted_table(cells)
            category[name] = fit_category(cells[train.start : train.stop], known)
        return Encoder(numeric, category)

    def _targets(self, rows: Table) -> tuple[list[str], array[int] | array[float]]:
        """Labels and the class of each row, or no labels and the number of each row."""
        if self.task == "regression":
            values = numbers(rows, self.target, allowed=False)
            return [], array("f", [v for v in values if v is not None])
        cells = categories(rows, self.target, allowed=False)
        labels = sorted_table(cells)
        index = {label: i for i, label in enumerate(labels)}
        return labels, array("q", [index[cell] for cell in cells if cell is not None])

    def misfits(self, facts: DataFacts) -> Iterator[tuple[str, str]]:
        """Fields of facts that are not of such a table, each with what is expected."""
        if facts.missing != self.missing:
            yield "missing", f"expected '{self.missing}'"
        for field in ("numeric", "category"):
            names = tuple(column.name for column in getattr(facts, field))
            if names != getattr(self, field):
                yield field, f"expected the columns {', '.join(getattr(self, field)) or 'none'}"
        if (facts.classes is None) != (self.task == "regression"):
            yield "classes", f"expected those of a {self.task}"

    def reads(self, path: Path) -> bool:
        """Whether a file in a folder is one of tables."""
        return path.name.removesuffix(".gz").endswith((".csv", ".tsv", ".txt"))

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Rows of another table with the same input columns; the target may be absent."""
        table, notes = self._new_table(path, facts, ())
        names = [f"{path.name}:{number}" for number in table.numbers]
        indices = [number - FIRST_ROW for number in table.numbers]
        return Unseen(_encoded(table, facts), names, indices, notes)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Rows of another table with the same input columns and the target."""
        table, notes = self._new_table(path, facts, (self.target,))
        if facts.classes is None:
            values = numbers(table, self.target, allowed=False)
            targets = tensor_of(array("f", [v for v in values if v is not None]), (len(values), 1))
        else:
            cells = categories(table, self.target, allowed=False)
            targets = tensor_of(known_classes(table, self.target, cells, facts), (len(cells),))
        return Labelled(Samples(_encoded(table, facts), targets), notes)

    def _new_table(
        self, path: Path, facts: DataFacts, more: tuple[str, ...]
    ) -> tuple[Table, tuple[str, ...]]:
        """A table with the columns that were trained on and these, without rows to be dropped."""
        _, table = self._table(path)
        columns = (*facts.columns, *more)
        table.need(columns)
        return without_gaps(table, columns) if facts.missing == "drop" else (table, ())


def _encoded(table: Table, facts: DataFacts) -> Tensor:
    numbers_in = Encoder.of(facts).encode(table, facts.missing != "error")
    return tensor_of(numbers_in, (len(table.rows), *facts.input))


def known_classes(
    table: Table, target: str, cells: Sequence[str | None], facts: DataFacts
) -> array[int]:
    """The number of each row's class among those that were trained on."""
    number = {label: i for i, label in enumerate(facts.labels)}
    for index, cell in enumerate(cells):
        if cell not in number:
            what = f"the model knows no class {cell!r}; known: {listed(facts.labels)}"
            table.refuse(index, target, what)
    return array("q", [number[cell] for cell in cells if cell is not None])


@dataclass(frozen=True)
class _Prepared:
    """A table read, shuffled and fitted, not yet encoded."""

    loaded: Loaded
    table: Table
    parts: dict[str, range]
    encoder: Encoder
    targets: array[int] | array[float]
    facts: Facts
    notes: tuple[str, ...]
