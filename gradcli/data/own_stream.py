"""Samples of a user's own dataset that come one after another, prepared once."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from importlib.abc import InspectLoader
from pathlib import Path
from typing import Any, NoReturn

from gradcli import engine
from gradcli.data.files import files_below, path_text, read
from gradcli.data.prepared.folder_hash import listing_of
from gradcli.data.prepared.identity import sha256_of
from gradcli.data.prepared.sets import PreparedSet, Recipe, prepared
from gradcli.data.prepared.writer import Writer
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import DataError, GradcliError
from gradcli.wording import quantity

READER, VERSION = "own", 1  # of prepared data
NAMES = ("inputs", "targets")
_LATER = ("target_scale",)  # fields that change no sample
Guarded = Callable[[], AbstractContextManager[None]]
Bounds = tuple[int, int]


@dataclass(frozen=True)
class PreparedSplit:
    """A split whose samples came one after another; bounds are the least and the largest number."""

    inputs: Tensor
    targets: Tensor
    sha256: str
    bounds: Mapping[str, Bounds]


def keep(
    source: Any, streams: Mapping[str, Any], guarded: Guarded, cache: Path
) -> dict[str, PreparedSplit]:
    """The samples of each stream in prepared data; `guarded` tells what own code raises."""
    code = _code_of(source)
    with guarded():
        lengths = {name: len(stream) for name, stream in streams.items()}

    def write(writer: Writer) -> dict[str, Any]:
        progress = writer.progress(sum(lengths.values()), "sample")
        facts = {}
        for name, stream in streams.items():
            reading = _SplitWriter(name, lengths[name], code, guarded)
            facts[name] = reading.write(stream, writer, progress.advance)
        return facts

    whole = prepared(_recipe(source, code, lengths, cache), write, cache)
    return {name: _split_in(whole, name) for name in streams}


def _split_in(whole: PreparedSet, name: str) -> PreparedSplit:
    inputs, targets = (whole.tensor(f"{name}-{what}") for what in NAMES)
    bounds = {what: (low, high) for what, (low, high) in whole.facts[name]["bounds"].items()}
    return PreparedSplit(inputs, targets, whole.facts[name]["sha256"], bounds)


def _code_of(source: Any) -> Path:
    """The file of own code, which must still hold what was run."""
    module = sys.modules[type(source).__module__]
    code, loader = Path(str(module.__file__)), module.__loader__
    text = loader.get_source(module.__name__) if isinstance(loader, InspectLoader) else None
    if text is not None and text.splitlines() != read(code).decode().splitlines():
        raise DataError(f"own code, {path_text(code)}: it was edited since it was run; start again")
    return code


def _recipe(source: Any, code: Path, lengths: Mapping[str, int], cache: Path) -> Recipe:
    """The recipe: fields, lengths, code, and the files that fields name."""
    sources, keys = {"code": (code, sha256_of(code, cache=cache))}, {}
    for field in fields(source):
        if field.name in _LATER:
            continue
        value = getattr(source, field.name)
        if not isinstance(value, Path):
            keys[field.name] = repr(value)
        elif value.is_dir():
            keys[field.name] = listing_of(value, files_below(value))[0]
        else:
            sources[f"field {field.name}"] = (value, sha256_of(value, cache=cache))
        for number, path in enumerate(_files_in(value)):
            sources[f"field {field.name}[{number}]"] = (path, sha256_of(path, cache=cache))
    content = {"class": type(source).__name__, "fields": keys, "lengths": dict(lengths)}
    return Recipe(READER, VERSION, content, sources)


def _files_in(value: object) -> Iterator[Path]:
    """Files that a field names as text: own code is likely to read them."""
    if isinstance(value, str) and os.path.isfile(value):  # noqa: PTH113 -- any text, no OSError
        yield Path(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _files_in(str(item) if isinstance(item, Path) else item)
    elif isinstance(value, Mapping):
        yield from _files_in([*value.values()])


class _SplitWriter:
    """The samples of one split on their way into prepared data."""

    def __init__(self, name: str, length: int, code: Path, guarded: Guarded) -> None:
        self._name, self._length, self._code = name, length, code
        self._guarded = guarded
        self._line: int | None = None  # where the generator stands
        self._at = 0

    def write(
        self, stream: Any, writer: Writer, advance: Callable[[int], object]
    ) -> dict[str, Any]:
        """Two arrays, all samples of one shape and type; gives their hash and bounds."""
        columns: dict[str, _Column] = {}
        for sample in self._samples(stream):
            if self._at >= self._length:
                self._refuse(
                    f"it gives more than the {quantity(self._length, 'sample')} of its length"
                )
            if not isinstance(sample, tuple) or len(sample) != 2:
                what = type(sample).__name__
                self._refuse(f"sample {self._at} must be (input, target), got {what}")
            for what, value in zip(NAMES, sample, strict=True):
                tensor = self._tensor(what, value)
                if what not in columns:
                    columns[what] = _Column(writer, f"{self._name}-{what}", tensor)
                if columns[what].add(tensor):
                    continue
                self._refuse(
                    f"sample {self._at} has {what} {_facts(tensor)}, those before it "
                    f"{_facts(columns[what].first)}; give all of one shape and type"
                )
            self._at += 1
            advance(1)
        if self._at < self._length or not self._length:
            ends = quantity(self._at, "sample")
            self._refuse(f"it ends after {ends}, its length is {self._length}")
        digest = hashlib.sha256(b"".join(columns[what].digest.digest() for what in NAMES))
        bounds = {what: columns[what].bounds for what in NAMES if columns[what].bounds}
        return {"sha256": digest.hexdigest(), "bounds": bounds}

    def _samples(self, stream: Any) -> Iterator[Any]:
        with self._telling():
            samples = iter(stream)
        while True:
            with self._telling():
                try:
                    sample = next(samples)
                except StopIteration:
                    return
            frame = getattr(samples, "gi_frame", None)
            self._line = None if frame is None else frame.f_lineno
            yield sample

    def _telling(self) -> _Telling:
        return _Telling(self._guarded, f"sample {self._at} of split '{self._name}'")

    def _tensor(self, what: str, value: Any) -> Tensor:
        try:
            tensor = value if isinstance(value, Tensor) else engine.tensor(value)
        except GradcliError as error:
            self._refuse(f"sample {self._at} has {what} that are no numbers: {error.message}")
        tensor = tensor.detach().contiguous()
        return tensor.to(_WIDER.get(tensor.dtype.name, tensor.dtype))

    def _refuse(self, what: str) -> NoReturn:
        where = path_text(self._code) + (f":{self._line}" if self._line else "")
        raise DataError(f"own code, {where}: split '{self._name}': {what}", code="E305")


# Types that arrays of prepared data do not have, and what holds their numbers.
_WIDER = {
    "float16": engine.float32,
    "bfloat16": engine.float32,
    "int8": engine.int32,
    "int16": engine.int32,
}


class _Telling:
    """Adds to what own code raises at which sample that was."""

    def __init__(self, guarded: Guarded, sample: str) -> None:
        self._guard, self._sample = guarded(), sample

    def __enter__(self) -> None:
        self._guard.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        try:
            return bool(self._guard.__exit__(kind, error, trace))
        except GradcliError as told:
            told.message += f", at {self._sample}"
            told.args = (told.message,)
            raise


class _Column:
    """Inputs or targets of one split."""

    def __init__(self, writer: Writer, name: str, first: Tensor) -> None:
        self.first = first
        self.bounds: Bounds | None = None
        self.digest = hashlib.sha256()
        self._array = writer.array(name, first.dtype, first.shape)

    def add(self, tensor: Tensor) -> bool:
        """Whether the numbers of one more sample are of the shape and type of the first."""
        if tensor.shape != self.first.shape or tensor.dtype is not self.first.dtype:
            return False
        content = tensor.memoryview()
        self._array.append(content)
        self.digest.update(content)
        if not tensor.dtype.is_floating_point:
            flat = tensor.reshape(-1)
            low, high = int(flat.amin().item()), int(flat.amax().item())
            before = self.bounds or (low, high)
            self.bounds = min(low, before[0]), max(high, before[1])
        return True


def _facts(tensor: Tensor) -> str:
    return f"{tensor.dtype.name} of shape {tuple(tensor.shape)}"
