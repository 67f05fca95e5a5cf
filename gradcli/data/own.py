"""The rest of a user's own dataset, which itself has only fields and its splits as tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from functools import cached_property
from mmap import mmap
from pathlib import Path
from typing import Any, Self

from gradcli import engine
from gradcli.data import hashes
from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Split, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.samples import Samples, imagined
from gradcli.data.staging import gathered
from gradcli.data.targets import ScaledTargets
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError
from gradcli.wording import quantity

SPLITS = ("train", "val", "test")
PORTION = 1 << 20  # numbers that are checked at once
_DEPTH = 8  # of parts of parts of an array
_ORDER = "=<" if sys.byteorder == "little" else "=>"


@dataclass(frozen=True, kw_only=True)
class OwnDataset(ScaledTargets):
    """A Source made from `splits()`, which a subclass has; any method may be its own."""

    def splits(self) -> Any:
        """(inputs, targets) by the name of the split: float inputs or whole-number indices.

        Arrays that are mapped stay so; what has a length and gives (input, target) one after
        another is prepared once.
        """
        raise DataError(f"{type(self).__name__} has no method splits()")

    @property
    def PATH_KEYS(self) -> tuple[str, ...]:  # noqa: N802 -- a constant of other sources
        """The fields that hold a Path."""
        names = (f.name for f in fields(self))
        return tuple(name for name in names if isinstance(getattr(self, name), Path))

    def locate(self, root: Path) -> Self:
        """Fields that hold a Path are relative to `root`; they become absolute."""
        paths: dict[str, Any] = {
            name: (root / getattr(self, name)).absolute() for name in self.PATH_KEYS
        }
        return replace(self, **paths)

    @cached_property
    def _samples_by_split(self) -> dict[str, Samples]:
        splits = self.splits()
        if not isinstance(splits, Mapping) or "train" not in splits or set(splits) - set(SPLITS):
            names = sorted(splits) if isinstance(splits, Mapping) else type(splits).__name__
            raise DataError(
                f"splits() of {type(self).__name__} must give a dict with 'train' and maybe 'val' "
                f"and 'test', got {names}"
            )
        streams = {name: split for name, split in splits.items() if _is_stream(split)}
        pairs = {name: split for name, split in splits.items() if name not in streams}
        samples = {name: _samples(name, pair) for name, pair in pairs.items()}
        vars(self)["_mapped"] = {
            name: [mapping_of(array) is not None for array in pair] for name, pair in pairs.items()
        }
        if streams:
            from gradcli.data.own_stream import keep
            from gradcli.data.prepared.cache import cache_folder

            prepared = keep(self, streams, self.guarded, cache_folder(None))
            samples |= {
                name: _samples_of(split.inputs, split.targets) for name, split in prepared.items()
            }
            vars(self)["_prepared"] = prepared
        return {name: samples[name] for name in splits}

    def guarded(self) -> AbstractContextManager[None]:
        """What tells an error of own code as one sentence."""
        return nullcontext()

    def _bound(self, what: str) -> int:
        """One more than the largest index among inputs or targets; none may be negative."""
        prepared = vars(self).get("_prepared", {})
        splits = self._samples_by_split.items()
        bounds = [
            prepared[name].bounds[what] if name in prepared else _bounds(getattr(split, what))
            for name, split in splits
        ]
        least = min(low for low, _ in bounds)
        if least < 0:
            raise DataError(f"labels and indices count from 0, got {least}")
        return 1 + max(high for _, high in bounds)

    @cached_property
    def _hashes(self) -> Mapping[str, str]:
        from gradcli.data.own_hash import sha256_of_tensors  # once there is something to hash

        values: dict[str, str | hashes.PendingHash] = {}
        prepared = vars(self).get("_prepared", {})
        for name, split in self._samples_by_split.items():
            if name in prepared:
                values[name] = prepared[name].sha256
                continue
            pair, mapped = (split.inputs, split.targets), any(vars(self)["_mapped"][name])
            values[name] = sha256_of_tensors(name, pair, mapped=mapped)
        return hashes.gathered(values)

    @cached_property
    def _facts(self) -> DataSpec:
        splits = self._samples_by_split
        inputs, targets = splits["train"].inputs, splits["train"].targets
        whole = not inputs.dtype.is_floating_point
        labels = not targets.dtype.is_floating_point
        return DataSpec(
            input=inputs.shape[1:],
            input_kind="index" if whole else "float",
            target=targets.shape[1:],
            classes=self._bound("targets") if labels else None,
            vocab=self._bound("inputs") if whole else None,
            labels=(),
            sizes={name: split.size for name, split in splits.items()},
        )

    def facts(self) -> DataSpec:
        """Those of the tensors of the training split."""
        return self._facts

    def outline(self, facts: DataSpec) -> dict[str, Split]:
        """The same splits, on "meta"."""
        del facts
        _ = self._facts
        prepared = vars(self).get("_prepared", {})
        return {
            name: _outlined(
                split, (True, True) if name in prepared else vars(self)["_mapped"][name]
            )
            for name, split in self._samples_by_split.items()
        }

    def load(self) -> LoadedData:
        """The tensors as they are, each split with a hash of its numbers."""
        splits: dict[str, Any] = dict(self._samples_by_split)
        return LoadedData(source=self, facts=self.facts(), splits=splits, sha256=self._hashes)

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
        return gathered(self.inputs, indices, self.device).to(engine.int64), targets


def _is_stream(split: object) -> bool:
    return not isinstance(split, tuple) and isinstance(split, Sized) and isinstance(split, Iterable)


def _samples(name: str, pair: object) -> Samples:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise DataError(f"split '{name}' must be (inputs, targets), got {type(pair).__name__}")
    arrays = []
    for values, what in zip(pair, ("inputs", "targets"), strict=True):
        if (mapping := mapping_of(values)) is not None:
            from gradcli.data.own_mapping import watch  # few map files themselves

            watch(*mapping)
        tensor = values if isinstance(values, engine.Tensor) else wrapped(values)
        if tensor is None or not tensor.shape:
            shape = getattr(values, "shape", type(values).__name__)
            raise DataError(f"{what} of split '{name}' must be a tensor with samples, got {shape}")
        arrays.append(tensor.detach().contiguous())
    inputs, targets = arrays
    if inputs.shape[0] != targets.shape[0] or not inputs.shape[0]:
        raise DataError(
            f"split '{name}' has {quantity(inputs.shape[0], 'input')} and "
            f"{quantity(targets.shape[0], 'target')}; it needs as many of both, and at least one"
        )
    return _samples_of(inputs, targets)


def _samples_of(inputs: Tensor, targets: Tensor) -> Samples:
    whole = not inputs.dtype.is_floating_point
    return _Indices(inputs, targets) if whole else Samples(inputs, targets)


# By memoryview's code and size of an element: the type of a tensor over the same memory.
_SHARED = {
    ("f", 4): engine.float32,
    ("d", 8): engine.float64,
    ("i", 4): engine.int32,
    ("q", 8): engine.int64,
    ("l", 8): engine.int64,
    ("B", 1): engine.uint8,
    ("?", 1): engine.bool,
}


def wrapped(values: object) -> Tensor | None:
    """A tensor that shares the memory of an array, read-only; None where it is no array."""
    try:
        view = memoryview(values)  # type: ignore[arg-type]
    except (TypeError, BufferError):
        return None
    dtype = _SHARED.get((view.format.lstrip(_ORDER), view.itemsize))
    if dtype is None or not view.c_contiguous or not view.nbytes:
        return engine.tensor(values)
    return engine.frombuffer(view, dtype=dtype).reshape(tuple(view.shape or ()))


def _outlined(split: Samples, mapped: Sequence[bool]) -> Samples:
    inputs, targets = (
        imagined(tensor.shape, tensor.dtype, mapped=elsewhere)
        for tensor, elsewhere in zip((split.inputs, split.targets), mapped, strict=True)
    )
    return replace(split, inputs=inputs, targets=targets)


def mapping_of(array: object) -> tuple[mmap, object] | None:
    """The mapped file that an array looks into, and its name, as far as the array says that."""
    name: object = None
    for _ in range(_DEPTH):
        if isinstance(array, mmap):
            return array, name
        name = name or getattr(array, "filename", None)
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


def _bounds(tensor: Tensor) -> tuple[int, int]:
    """The least and the largest number, some at a time."""
    flat = tensor.reshape(-1)
    parts = [flat[at : at + PORTION] for at in range(0, flat.shape[0], PORTION)]
    lows, highs = ([int(end(part).item()) for part in parts] for end in (_least, _largest))
    return min(lows), max(highs)


def _least(part: Tensor) -> Tensor:
    return part.to(engine.int64).amin()


def _largest(part: Tensor) -> Tensor:
    return part.to(engine.int64).amax()
