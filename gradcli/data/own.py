"""The rest of a user's own dataset, which itself has only fields and its splits as tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from gradcli import engine
from gradcli.data.dataset import Facts, Labelled, LoadedData, Split, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.samples import Samples
from gradcli.data.targets import ScaledTargets
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.wording import quantity

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True)
class OwnDataset(ScaledTargets):
    """A Source made from `splits()`, which a subclass has; any method may be its own."""

    def splits(self) -> Any:
        """(inputs, targets) by the name of the split: float inputs or whole-number indices."""
        raise DataError(f"{type(self).__name__} has no method splits()")

    @property
    def PLACES(self) -> tuple[str, ...]:  # noqa: N802 -- a constant of other sources
        """The fields that hold a Path."""
        names = (f.name for f in fields(self))
        return tuple(name for name in names if isinstance(getattr(self, name), Path))

    def locate(self, root: Path) -> Self:
        """Fields that hold a Path are relative to `root`; they become absolute."""
        paths: dict[str, Any] = {
            name: (root / getattr(self, name)).absolute() for name in self.PLACES
        }
        return replace(self, **paths)

    @cached_property
    def _samples_by_split(self) -> dict[str, Samples]:
        splits = self.splits()
        if not isinstance(splits, Mapping) or "train" not in splits or set(splits) - set(SPLITS):
            got = sorted(splits) if isinstance(splits, Mapping) else type(splits).__name__
            raise DataError(
                f"splits() of {type(self).__name__} must give a dict with 'train' and maybe 'val' "
                f"and 'test', got {got}"
            )
        return {name: _samples(name, pair) for name, pair in splits.items()}

    def facts(self) -> Facts:
        """Those of the tensors of the training split."""
        splits = self._samples_by_split
        inputs, targets = splits["train"].inputs, splits["train"].targets
        whole = not inputs.dtype.is_floating_point
        labels = not targets.dtype.is_floating_point
        return Facts(
            input=inputs.shape[1:],
            input_kind="index" if whole else "float",
            target=targets.shape[1:],
            classes=_bound([s.targets for s in splits.values()]) if labels else None,
            vocab=_bound([s.inputs for s in splits.values()]) if whole else None,
            labels=(),
            sizes={name: split.size for name, split in splits.items()},
        )

    def outline(self, facts: Facts) -> dict[str, Split]:
        """The same splits, on "meta"."""
        del facts
        return {name: split.to("meta") for name, split in self.load().splits.items()}

    def load(self) -> LoadedData:
        """The tensors as they are, each split with a hash of its numbers."""
        splits: dict[str, Any] = dict(self._samples_by_split)
        hashes = {name: _sha256(split.inputs, split.targets) for name, split in splits.items()}
        return LoadedData(source=self, facts=self.facts(), splits=splits, sha256=hashes)

    def read(self, path: Path, state: Mapping[str, object]) -> Unseen:
        """Only a dataset that says how can read a new file."""
        del path, state
        raise DataError(f"{type(self).__name__} reads no new files; give it a method read()")

    @property
    def reads_new_files(self) -> bool:
        """Whether a subclass says how."""
        own = type(self)
        return own.read is not OwnDataset.read or own.new_inputs is not OwnDataset.new_inputs

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """As `read` says."""
        return self.read(path, facts.state)

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Only a dataset that says how can read labelled data."""
        del path, facts
        raise DataError(
            f"{type(self).__name__} reads no new labelled data; give it a method new_split()"
        )


class _Indices(Samples):
    """Samples whose inputs are indices and stay whole."""

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs as int64."""
        _, targets = super().batch(indices)
        return engine.index_select(self.inputs, 0, indices).to(engine.int64), targets


def _samples(name: str, pair: object) -> Samples:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise DataError(f"split '{name}' must be (inputs, targets), got {type(pair).__name__}")
    for tensor, what in zip(pair, ("inputs", "targets"), strict=True):
        if not isinstance(tensor, engine.Tensor) or not tensor.shape:
            found = getattr(tensor, "shape", type(tensor).__name__)
            raise DataError(f"{what} of split '{name}' must be a tensor with samples, got {found}")
    inputs, targets = (tensor.detach().contiguous() for tensor in pair)
    if inputs.shape[0] != targets.shape[0] or not inputs.shape[0]:
        raise DataError(
            f"split '{name}' has {quantity(inputs.shape[0], 'input')} and "
            f"{quantity(targets.shape[0], 'target')}; it needs as many of both, and at least one"
        )
    whole = not inputs.dtype.is_floating_point
    return _Indices(inputs, targets) if whole else Samples(inputs, targets)


def _bound(tensors: list[Tensor]) -> int:
    """One more than the largest index; none may be negative."""
    least = min(int(t.amin().item()) for t in map(_flat, tensors))
    if least < 0:
        raise DataError(f"labels and indices count from 0, got {least}")
    return 1 + max(int(t.amax().item()) for t in map(_flat, tensors))


def _flat(tensor: Tensor) -> Tensor:
    return tensor.to(engine.int64).reshape(-1)


def _sha256(*tensors: Tensor) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.memoryview())
    return digest.hexdigest()
