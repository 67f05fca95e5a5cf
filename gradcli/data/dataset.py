"""What a dataset is: facts for the config, splits that give batches, a reader for new files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Protocol

from gradcli import engine
from gradcli.data import staging
from gradcli.data.facts import DataFacts, DataSpec, data_facts
from gradcli.data.files import files_below, gzip_notes, path_text
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError

__all__ = ["DataSpec", "Labelled", "LoadedData", "Source", "Split", "Unseen"]


class Split(Protocol):
    """A part of a dataset."""

    @property
    def size(self) -> int:
        """The number of samples."""

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of the samples that the int64 tensor `indices` names."""

    def to(self, device: str) -> Split:
        """The same samples in the memory of a device."""


class Source(Protocol):
    """The `data:` section of a config: a frozen dataclass whose fields are the YAML keys.

    `PATH_KEYS`, where a class has it, names the keys that say where files lie. A training whose
    data moved is the same: what the files hold is compared by its hash.
    """

    def locate(self, root: Path) -> Source:
        """The same source with absolute paths; relative ones are relative to `root`."""

    def facts(self) -> DataSpec:
        """What is known without loading everything."""

    def outline(self, facts: DataSpec) -> Mapping[str, Split]:
        """The splits as `load` makes them, of tensors on "meta": shapes and types, no numbers."""

    def load(self) -> LoadedData:
        """Everything in memory, checked."""

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """The samples of a new file, as a model wants them that was trained on such data."""

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Labelled samples of a new file or folder, to be measured on."""


def readable_in(folder: Path, source: Source) -> tuple[list[Path], list[Path]]:
    """The files in a folder that `new_inputs` of the source reads, and those that it does not."""
    reads = getattr(source, "reads", None)  # a dataset of a user's own may read any file
    paths = files_below(folder)
    fit = [path for path in paths if reads is None or reads(path)]
    if not fit:
        raise DataError(f"{path_text(folder)} holds no file that is read here", code="E305")
    return fit, [path for path in paths if path not in set(fit)]


def misfits(source: Source, facts: DataFacts) -> Iterator[tuple[str, str]]:
    """Fields of facts that do not fit this source, each with what is expected."""
    method = getattr(source, "misfits", None)  # a dataset of a user's own may have any
    if method is not None:
        yield from method(facts)


def beside(source: Source) -> Mapping[str, tuple[str, str]]:
    """Files that a run keeps beside its config, name and text, by the key that names them there."""
    method = getattr(source, "beside", None)
    return {} if method is None else method()


def without_data(source: Source, run: Path) -> Source:
    """The source of a run whose data need not be there, with what lies beside its config."""
    method = getattr(source, "without_data", None)
    return source if method is None else method(run)


def path_keys(source: Source) -> tuple[str, ...]:
    """The keys of a source that say where files lie; one that holds other keys says no place."""
    keys = getattr(source, "PATH_KEYS", ())
    return tuple(key for key in keys if not isinstance(getattr(source, key, None), Mapping))


@dataclass(frozen=True)
class LaterInputs:
    """Samples that are made when they are asked for, so that many need little memory.

    Attributes:
        shape: that of all of them.
        of: makes the samples of these numbers, an int64 tensor.
    """

    shape: tuple[int, ...]
    of: Callable[[Tensor], Tensor]

    def __getitem__(self, some: slice) -> Tensor:
        """The samples between two numbers."""
        return self.of(engine.arange(*some.indices(self.shape[0]), dtype=engine.int64))


@dataclass(frozen=True)
class Unseen:
    """Samples of a new file, for prediction.

    Attributes:
        names: where each sample stands in the file, such as "penguins.csv:5".
        indices: the number of each sample in the file, from 0; gaps where some are left out.
        notes: lines worth telling the user.
    """

    inputs: Tensor | LaterInputs
    names: Sequence[str]
    indices: Sequence[int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Labelled:
    """Samples of a new file with their targets, to be measured on; `notes` are for the user."""

    split: Split
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadedData:
    """A source in memory.

    Attributes:
        facts: of a reader of gradcli's own DataFacts, with all that was fitted on the data.
        sha256: hash of each file by its role: the split that it begins, and what of that it holds
            or its number, such as "train", "test.labels" or "train[2]". Reading one of a large
            file may wait for it: hashes.py.
        files: where the file of a role lies; a role of numbers that lie in no file has none.
        state: what an own dataset's `read` needs besides; JSON values.
        notes: lines worth telling the user: rows left out, gzip under a plain name.
    """

    source: Source
    facts: DataSpec
    splits: dict[str, Split]
    sha256: Mapping[str, str]
    state: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def to(self, device: str, memory: int | None = None) -> LoadedData:
        """The same data for a device: in its memory, or where it is if it is large (staging.py).

        `memory` limits the bytes to use there; None: no limit.
        """
        splits, notes = staging.placed(self.splits, device, memory)
        return replace(self, splits=splits, notes=(*self.notes, *notes))

    def read(self, path: Path) -> Unseen:
        """The samples of a new file, for prediction."""
        samples = self.source.new_inputs(path, self._data_facts())
        return replace(samples, notes=(*gzip_notes(path), *samples.notes))

    def read_split(self, path: Path) -> Labelled:
        """The labelled samples of a new file or folder, to be measured on."""
        samples = self.source.new_split(path, self._data_facts())
        return replace(samples, notes=(*gzip_notes(path), *samples.notes))

    def _data_facts(self) -> DataFacts:
        facts = data_facts(self.facts, self.state)
        assert facts is not None, "loaded data has facts"
        return facts
