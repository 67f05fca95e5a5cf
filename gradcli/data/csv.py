"""Tables in CSV files: `data: {name: csv}`, for classes or for numbers as targets."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from gradcli import engine
from gradcli.data.cached import Cached, locate_cache
from gradcli.data.columns import Encoder, classes_in, values_in
from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Split, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import Loaded, gzip_notes, load, path_text
from gradcli.data.fitted_table import FittedTable, facts_in, roles_of
from gradcli.data.prepared.cache import cache_folder, small
from gradcli.data.samples import InFiles, Samples, imagined, outlined
from gradcli.data.series import InTime, Stretches, TimeSeries, WindowSteps, stretches_in
from gradcli.data.small_table import read
from gradcli.data.split import SplitMap, check_stratify, group_of, stratify_of
from gradcli.data.sums import SUMS
from gradcli.data.tabular.cells import indices_among
from gradcli.data.tabular.collected import Gaps, TypedTable, collect, without_gaps
from gradcli.data.tabular.header import need
from gradcli.data.tabular.opening import reader_ahead
from gradcli.data.tabular.reader import FIRST_ROW, Role
from gradcli.data.tabular.table_files import (
    by_role,
    files_of,
    locate_files,
    of_split,
    open_files,
    text_size,
)
from gradcli.data.targets import ScaledTargets
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError, DataError
from gradcli.wording import join_words, quantity

if TYPE_CHECKING:
    from gradcli.data.prepared.sets import PreparedSet
    from gradcli.data.prepared.writer import Writer

VERSION = 2  # of what is prepared
# Of files in a folder that are tables; their first bytes say what they hold.
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class CsvSource(InTime, ScaledTargets, Cached):
    """A table with a header; inputs are the columns in the config, by default all useful ones."""

    PATH_KEYS: ClassVar = ("file", "test_file", "cache")

    file: Annotated[
        str, "CSV, Parquet, Arrow or JSON lines file; a pattern such as parts/*.csv names several"
    ]
    target: Annotated[
        str | tuple[str, ...], "column to predict; of a regression several: [price, rent]"
    ]
    task: Annotated[
        Literal["classification", "regression"], "whether the target is a class or a number"
    ] = "classification"
    numeric: Annotated[
        tuple[str, ...], "input columns that are numbers; without both keys columns are sorted"
    ] = ()
    category: Annotated[tuple[str, ...], "input columns that are categories, one-hot encoded"] = ()
    missing: Annotated[
        Literal["error", "drop", "mean"],
        "empty, NA or nan cells: refuse, drop the row, or fill with the mean",
    ] = "error"
    standardize: Annotated[bool, "numeric columns to mean 0, deviation 1 of the train split"] = True
    split: Annotated[
        SplitMap | None,
        "counts or percents of rows for train, val, test; 80%, 10%, 10%; `stratify: true`: each "
        "class has its share; `group: COLUMN`: rows of one group lie in one part",
    ] = None
    test_file: Annotated[
        str | None, "the same with the rows of the test split; `split` is of train and val then"
    ] = None
    seed: Annotated[int, "the order in which rows go to the splits"] = 0
    delimiter: Annotated[Literal[",", ";", "\t", "|"], "character between cells"] = ","

    def __post_init__(self) -> None:
        columns = (*self.numeric, *self.category, *self.targets)
        how = "stratify" if stratify_of(self.split) else "group" if group_of(self.split) else None
        self.check_steps(self.missing, how, self.seed)
        own = self.numeric if self.task == "regression" else self.category
        if self.window is not None:  # a forecast depends on past values
            columns = (*(name for name in columns if name not in own), *own)
        if not self.targets or (len(self.targets) > 1 and self.task == "classification"):
            raise ConfigError(
                f"target names {quantity(len(self.targets), 'column')}; a classification has one, "
                "a regression (task: regression) one or more",
                code="E104",
            )
        twice = next((c for c, times in Counter(columns).items() if times > 1), None)
        if twice is not None:
            raise ConfigError(f"the column '{twice}' is named twice", code="E104")
        check_stratify(self.split, None if self.task == "regression" else 1)
        group = group_of(self.split)
        if group in columns:
            raise ConfigError(
                f"split: group {group!r} is an input or the target too, which would tell the model "
                "the group; it is read without being named there",
                code="E104",
            )

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns to predict."""
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def unfilled(self) -> dict[str, str]:
        """The columns whose gaps nothing fills, and what each is."""
        group = group_of(self.split)
        return dict.fromkeys(self.targets, "target") | ({group: "group"} if group else {})

    def locate(self, root: Path) -> CsvSource:
        """The paths made absolute."""
        file, test = locate_files(self.file, root), self.test_file
        test = None if test is None else locate_files(test, root)
        return replace(self, file=file, test_file=test, cache=locate_cache(self.cache, root))

    def facts(self) -> DataSpec:
        """From the whole table; what was read is kept for `load`."""
        if not small(*self.paths().values()):
            return facts_in(self._prepared().facts["data"])
        return read.remember(self)[1].facts

    def outline(self, facts: DataSpec) -> dict[str, Samples] | dict[str, TimeSeries]:
        """The splits as `load` makes them, on "meta"."""
        if (steps := self.steps) is not None:
            return self._series_outline(facts, steps)
        targets = "float32" if self.task == "regression" else "int64"
        in_files = InFiles(facts.input, targets=True) if self._maps() else InFiles()
        return outlined(facts, "float32", targets, 1.0, 0.0, 1.0, in_files)

    def _maps(self) -> bool:
        """Whether the table is prepared; a run may be inspected without its data."""
        with suppress(DataError):
            return not small(*self.paths().values())
        return False

    def _series_outline(self, facts: DataSpec, steps: WindowSteps) -> dict[str, TimeSeries]:
        width = facts.input[0 if steps.first else 1]
        dtype = engine.float32 if self.task == "regression" else engine.int64
        alone = {name: (size + steps.behind,) for name, size in facts.sizes.items()}
        in_files = facts.stretches if isinstance(facts, DataFacts) else {}
        maps, outline = self._maps(), {}
        for name, lengths in {**alone, **in_files}.items():
            rows = imagined((sum(lengths), width), engine.float32, mapped=maps)
            values = imagined((sum(lengths), *facts.target), dtype, mapped=maps)
            stretches = Stretches.of(lengths, steps)
            outline[name] = TimeSeries(rows, values, steps, stretches and stretches.to("meta"))
        return outline

    def _whole(
        self, inputs: Tensor, targets: Tensor, begins: Sequence[int] = ()
    ) -> Samples | TimeSeries:
        """All rows as samples, before they are cut; `begins` are first rows of files."""
        steps = self.steps
        if steps is None:
            return Samples(inputs, targets)
        lengths = stretches_in(range(inputs.shape[0]), begins)
        return TimeSeries(inputs, targets, steps, Stretches.of(lengths, steps))

    def load(self) -> LoadedData:
        """Every row encoded, shuffled and split."""
        if not small(*self.paths().values()):
            return self._of_prepared(self._prepared())
        (hashes, notes), fitted = read.take(self)
        inputs = engine.cat(list(fitted.inputs()))
        whole = self._whole(inputs, fitted.targets(), fitted.table.begins)
        return LoadedData(
            source=self,
            facts=fitted.facts,
            splits={name: whole.part(part) for name, part in fitted.parts.items()}
            | ({} if fitted.test is None else {"test": fitted.test.split}),
            sha256=hashes,
            files={role: str(path) for role, path in self.paths().items()},
            notes=(*notes, *fitted.notes),
        )

    def _of_prepared(self, prepared: PreparedSet) -> LoadedData:
        tensor, content = prepared.tensor, prepared.facts
        whole = self._whole(tensor("inputs"), tensor("targets"), content["begins"])
        splits: dict[str, Split] = {
            name: whole.part(range(*part)) for name, part in content["parts"].items()
        }
        if self.test_file is not None:
            pair = tensor("test_inputs"), tensor("test_targets")
            splits["test"] = self._whole(*pair, content["test_begins"])
        return LoadedData(
            source=self,
            facts=facts_in(content["data"]),
            splits=splits,
            sha256=prepared.sha256,
            files={role: str(path) for role, path in self.paths().items()},
            notes=(
                *(note for path in self.paths().values() for note in gzip_notes(path)),
                *content["notes"],
            ),
        )

    def paths(self) -> dict[str, Path]:
        """The file of each role."""
        test = {} if self.test_file is None else by_role("test", files_of(self.test_file))
        return {**by_role("train", files_of(self.file)), **test}

    def _prepared(self) -> PreparedSet:
        """The table as arrays in the order of its splits, which are written if need be."""
        from gradcli.data.prepared.identity import sha256_of_all
        from gradcli.data.prepared.sets import Recipe, prepared

        cache, files = cache_folder(self.cache), self.paths()
        hashes = sha256_of_all(files.values(), reader_ahead(next(iter(files.values()))), cache)
        sources = {role: (path, hashes[path]) for role, path in files.items()}
        # A set of another version of gradcli, which keeps other facts, is another set.
        keys = {**self._shaping(), "facts": [field.name for field in fields(DataFacts)]}
        recipe = Recipe("csv", VERSION, keys, sources)
        return prepared(recipe, lambda writer: self._write(writer, files), cache)

    def _shaping(self) -> dict[str, Any]:
        """The keys that decide which numbers a file becomes."""
        apart = {*self.PATH_KEYS, "target_scale"}
        return {name: value for name, value in asdict(self).items() if name not in apart}

    def _write(self, writer: Writer, files: Mapping[str, Path]) -> Mapping[str, Any]:
        """Write `files` only: a pattern may match more by now, which were not hashed."""
        train, tests = of_split("train", files), of_split("test", files)
        progress = writer.progress(text_size(train), "B")
        reopen = partial(open_files, train, path_text(self.file), self.delimiter)
        fitted = FittedTable.of(self, reopen(progress.advance), reopen)
        inputs = writer.array("inputs", engine.float32, (fitted.encoder.width,))
        for rows in fitted.inputs():
            inputs.append(rows.memoryview())
        targets = fitted.targets()
        writer.array("targets", targets.dtype, targets.shape[1:]).append(targets.memoryview())
        if tests:
            test = self.labelled(tests, fitted.facts)
            fitted = fitted.with_test(test)
            for name, tensor in zip(
                ("test_inputs", "test_targets"), _tensors_of(test), strict=True
            ):
                writer.array(name, tensor.dtype, tensor.shape[1:]).append(tensor.memoryview())
        return {
            "data": fitted.facts.as_json(),
            "parts": {name: [part.start, part.stop] for name, part in fitted.parts.items()},
            "begins": fitted.table.begins,
            "test_begins": _begins(fitted.test),
            "notes": fitted.notes,
        }

    def misfits(self, facts: DataFacts) -> Iterator[tuple[str, str]]:
        """Fields of facts that do not fit this table, each with what is expected."""
        if facts.missing != self.missing:
            yield "missing", f"expected '{self.missing}'"
        targets = [name for name in self.targets if name in facts.columns]
        if self.window is None and targets:
            yield "numeric", f"expected columns without the target {targets[0]!r}"
        if facts.input != (expected := self._shape(facts)):
            yield "input", f"expected {list(expected)}"
        for field in ("numeric", "category") if self.numeric or self.category else ():
            names = tuple(column.name for column in getattr(facts, field))
            if names != getattr(self, field):
                yield field, f"expected the columns {', '.join(getattr(self, field)) or 'none'}"
        if (facts.classes is None) != (self.task == "regression"):
            yield "classes", f"expected those of a {self.task}"

    def _shape(self, facts: DataFacts) -> tuple[int, ...]:
        width = len(facts.numeric) + sum(len(column.shares) for column in facts.category)
        return (width,) if self.steps is None else self.steps.shape(width)

    def reads(self, path: Path) -> bool:
        """Whether a file in a folder is one of tables."""
        return path.name.removesuffix(".gz").removesuffix(".zst").endswith(SUFFIXES)

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Rows of another table with the same input columns; the target may be absent.

        A window is called by its last row.
        """
        table, notes = self._new_table([_load_if_small(path)], facts)
        encoded, rows, steps = _encoded(table, facts), table.rows, self.steps
        inputs = encoded if steps is None else steps.windows(encoded, table.source)
        rows = rows if steps is None else rows[steps.window - 1 :]
        names = [f"{path.name}:{table.locate(number)[1]}" for number in rows]
        return Unseen(inputs, names, [number - FIRST_ROW for number in rows], notes)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Rows of another table with the same input columns and the target."""
        return self.labelled([_load_if_small(path)], facts)

    def labelled(self, files: Sequence[Path | Loaded], facts: DataFacts) -> Labelled:
        """Rows of other files with the same input columns and the target, as one table."""
        table, notes = self._new_table(files, facts, with_target=True)
        if facts.classes is None:
            targets = values_in(table, self.targets)
        else:
            targets = known_classes(table, self.targets[0], facts)
        if self.steps is not None:
            self.steps.size(stretches_in(range(table.count), table.begins), table.source)
        return Labelled(self._whole(_encoded(table, facts), targets, table.begins), notes)

    def _new_table(
        self, files: Sequence[Path | Loaded], facts: DataFacts, with_target: bool = False
    ) -> tuple[TypedTable, tuple[str, ...]]:
        """A table with the columns that were trained on, without rows to be dropped."""
        roles = roles_of(
            [column.name for column in facts.numeric], [column.name for column in facts.category]
        )
        if with_target:
            role: Role = "number" if facts.classes is None else "word"
            roles |= dict.fromkeys(self.targets, role)
        first = files[0] if isinstance(files[0], Path) else files[0].path
        reader = open_files(files, path_text(first), self.delimiter)
        need(reader, list(roles), self._past(facts))
        gaps = Gaps(facts.missing or "error", self.unfilled, self.steps is not None)
        table = collect(reader, roles, gaps)
        return without_gaps(table) if facts.missing == "drop" else (table, ())

    def _past(self, facts: DataFacts) -> dict[str, str]:
        """Why a new table needs columns that it would not need but in a time series."""
        return {
            name: f"the past of {name!r} is an input of this run: a new series needs it too"
            for name in self.targets
            if name in facts.columns
        }


def _load_if_small(path: Path) -> Path | Loaded:
    """Load a small file; check a large one against the SHA256SUMS beside it."""
    if small(path):
        return load(path)
    if (path.parent / SUMS).exists():
        from gradcli.data.prepared.identity import sha256_of

        sha256_of(path)
    return path


def _tensors_of(labelled: Labelled) -> tuple[Tensor, Tensor]:
    """The inputs and targets of a split."""
    split = labelled.split
    if isinstance(split, TimeSeries):
        return split.rows, split.values
    assert isinstance(split, Samples), "a table has no other splits"
    return split.inputs, split.targets


def _begins(test: Labelled | None) -> list[int]:
    """The first row of each file of a test table but the first one."""
    lengths = getattr(test and test.split, "lengths", ())
    return list(accumulate(lengths))[:-1]


def _encoded(table: TypedTable, facts: DataFacts) -> Tensor:
    return Encoder.of(facts).encode(table)


def known_classes(table: TypedTable, target: str, facts: DataFacts) -> Tensor:
    """The number of each row's class among those that were trained on."""
    column = table.words[target]
    number = indices_among(column.table, facts.labels)
    odd = {code for code, word in enumerate(column.table) if word not in number}
    if odd:
        index = next(at for at, code in enumerate(column.codes) if code in odd)
        cell = column.table[column.codes[index]]
        what = f"the model knows no class {cell!r}; known: {join_words(facts.labels)}"
        table.refuse(index, target, what)
    indices = [number[word] for word in column.table]
    codes = array("i", map(indices.__getitem__, column.codes))
    return classes_in(replace(table, words={target: replace(column, codes=codes)}), target)
