"""What a dataset is: facts for the config, splits that give batches, a reader for new files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from gradcli.engine import Tensor


@dataclass(frozen=True)
class Facts:
    """What a config may know of the data before it is loaded.

    Attributes:
        input: shape of one sample, without the batch.
        input_kind: "float", or "index" for whole numbers below `vocab`.
        target: shape of one target: () for a class, (T,) for next tokens, (K,) for regression.
        classes: labels are 0..classes-1; None for regression.
        vocab: tokens are 0..vocab-1; None for float inputs.
        labels: names of the classes, sorted by bytes; () if they have none.
        sizes: samples by the name of the split.
        mixed: while training, a label is probabilities of the classes.
        values: names of the numbers in a target; () if they have none.
    """

    input: tuple[int, ...]
    input_kind: str
    target: tuple[int, ...]
    classes: int | None
    vocab: int | None
    labels: tuple[str, ...]
    sizes: dict[str, int]
    mixed: bool = False
    values: tuple[str, ...] = ()


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

    `PLACES`, where a class has it, names the keys that say where files lie. A training whose data
    moved is the same: what the files hold is compared by its hash.
    """

    def locate(self, root: Path) -> Source:
        """The same source with absolute paths; relative ones are relative to `root`."""

    def facts(self) -> Facts:
        """What is known without loading everything."""

    def outline(self, facts: Facts) -> Mapping[str, Split]:
        """The splits as `load` makes them, of tensors on "meta": shapes and types, no numbers."""

    def load(self) -> LoadedData:
        """Everything in memory, checked."""

    def read(self, path: Path, state: Mapping[str, object]) -> Unseen:
        """The samples of a new file, encoded as `state` says."""


def places(source: Source) -> tuple[str, ...]:
    """The keys of a source that say where files lie."""
    return tuple(getattr(source, "PLACES", ()))


@dataclass(frozen=True)
class Unseen:
    """Samples of a new file, for prediction.

    Attributes:
        names: where each sample stands in the file, such as "penguins.csv:5".
        indices: the number of each sample in the file, from 0; gaps where some are left out.
        notes: lines worth telling the user.
    """

    inputs: Tensor
    names: Sequence[str]
    indices: Sequence[int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadedData:
    """A source in memory.

    Attributes:
        sha256: hash of each file by its role: the split that it begins, and what of that it holds
            or its number, such as "train", "test.labels" or "train[2]".
        files: where the file of a role lies; a role of numbers that lie in no file has none.
        state: what was fitted on the data (category tables, means); JSON values.
        notes: lines worth telling the user: rows left out, gzip under a plain name.
    """

    source: Source
    facts: Facts
    splits: dict[str, Split]
    sha256: dict[str, str]
    state: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def to(self, device: str) -> LoadedData:
        """The same data with its splits in the memory of a device."""
        return replace(self, splits={name: s.to(device) for name, s in self.splits.items()})

    def read(self, path: Path) -> Unseen:
        """The samples of a new file, for prediction."""
        return self.source.read(path, self.state)
