"""A user's own rows, arrays, pictures and texts as inputs of a model, like its training data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradcli import engine
from gradcli.data.columns import Encoder
from gradcli.data.dataset import Source, readable_in
from gradcli.data.facts import DataFacts
from gradcli.data.fitted_table import roles_of
from gradcli.data.folder import ImageFolder
from gradcli.data.samples import padded, scaled
from gradcli.data.tabular.cells import CellsReader
from gradcli.data.tabular.collected import Gaps, collect
from gradcli.data.text import ANY_FILE, TextSource, encode, windows_of
from gradcli.engine import Tensor
from gradcli.errors import DataError

HERE = "the samples"  # what messages call what lies in no file


class Transforms:
    """Samples as a tensor (N, *facts.input): files, rows, arrays or texts.

    Files are `Path`s or, but for models of text, also strings; a folder stands for the files in it.
    A row of a table is a dict, None stands for a gap; several are a list of dicts. A picture or an
    array is a tensor, a NumPy array or nested lists of the shape it had in the training data, or
    several; bytes (uint8) are divided by 255 like those of files. A model of an `image_folder`
    takes pictures of any size too: those of Pillow, or the bytes of a file. A text is a
    string, cut into samples like a file.
    """

    def __init__(self, source: Source, facts: DataFacts) -> None:
        self._source = source
        self._facts = facts

    def __call__(self, samples: Any) -> Tensor:
        """The inputs of a model.

        Raises:
            DataError: a sample is not like the training data.
        """
        facts, source, paths = self._facts, self._source, self.files(samples)
        if paths:
            in_each = (readable_in(path, source)[0] if path.is_dir() else [path] for path in paths)
            files = [file for several in in_each for file in several]
            return engine.cat([source.new_inputs(file, facts).inputs[:] for file in files])
        if facts.missing is not None:
            return row_inputs(samples, facts)
        if facts.unit is not None:
            return text_inputs(samples, facts, source)
        several = samples if isinstance(samples, list | tuple) else [samples]
        if isinstance(source, ImageFolder) and all(map(is_image, several)):
            return source.new_images(several, facts, HERE)
        return array_inputs(samples, facts)

    def files(self, samples: Any) -> list[Path]:
        """The files and folders among the samples; empty where the samples are data."""
        several = samples if isinstance(samples, list | tuple) else [samples]
        kinds = os.PathLike if self._facts.unit is not None else str | os.PathLike
        files = [Path(sample) for sample in several if isinstance(sample, kinds)]
        if files and len(files) < len(several):
            raise DataError(f"{HERE}: expected files alone, found others among them", code="E305")
        return files


def row_inputs(samples: Any, facts: DataFacts) -> Tensor:
    """Rows of a table; columns that the model was not trained on are ignored."""
    rows = [samples] if isinstance(samples, Mapping) else samples
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(
            f"{HERE}: expected a row as a dict from column to value, or a list of rows, "
            f"got {type(samples).__name__}",
            code="E305",
        )
    for number, row in enumerate(rows):
        lacks = [name for name in facts.columns if name not in row]
        if lacks:
            raise DataError(
                f"{HERE}: row {number} has no {', '.join(map(repr, lacks))}", code="E304"
            )
    columns = {name: [_cell(row[name]) for row in rows] for name in facts.columns}
    if not rows:
        return engine.zeros(0, *facts.input)
    roles = roles_of(
        [column.name for column in facts.numeric], [column.name for column in facts.category]
    )
    gaps = Gaps(facts.missing or "error", {})
    table = collect(CellsReader(HERE, columns), roles, gaps, first=0)
    return Encoder.of(facts).encode(table)


def _cell(value: Any) -> str:
    """A value as a table has it."""
    return "" if value is None else str(value)


def text_inputs(samples: Any, facts: DataFacts, source: Source) -> Tensor:
    """Texts, each cut into samples end to end; the last one ends where the text ends."""
    texts = samples if isinstance(samples, list | tuple) else [samples]
    inputs = [windows_of(_tokens(text, facts, source), facts, HERE)[0] for text in texts]
    return engine.cat(inputs) if inputs else engine.zeros(0, *facts.input, dtype=engine.int64)


def _tokens(text: Any, facts: DataFacts, source: Source) -> Any:
    in_bytes = facts.unit == "bytes"
    if in_bytes and isinstance(text, bytes | bytearray):
        return bytes(text)
    if not isinstance(text, str):
        cure = ANY_FILE if isinstance(text, bytes) else ""
        raise DataError(f"{HERE}: expected text, got {type(text).__name__}{cure}", code="E305")
    if isinstance(source, TextSource) and source.unit == "bpe":
        return source.bpe.tokenizer.encode(text)
    return text.encode() if in_bytes else encode(text, facts.labels, HERE)


def array_inputs(samples: Any, facts: DataFacts) -> Tensor:
    """Pictures, arrays or indices: one sample of the training shape, or several."""
    x, shape = as_tensor(samples), facts.stored or facts.input
    plain = shape[1:] if shape[0] == 1 and len(shape) == 3 else shape  # (H, W) is one channel
    if x.shape not in (shape, plain) and x.shape[1:] not in (shape, plain):
        raise DataError(
            f"{HERE}: expected {shape} or (N, {', '.join(map(str, shape))}), got {x.shape}",
            code="E305",
        )
    x = x.reshape(-1, *shape)
    if facts.vocab is not None:
        return _indices(x, facts.vocab)
    if x.is_floating_point() and not engine.isfinite(x).all().item():
        raise DataError(f"{HERE}: expected numbers, found NaN or infinity among them", code="E305")
    scale = 255.0 if x.dtype is engine.uint8 and facts.stored is not None else 1.0
    return scaled(padded(x, facts.input), scale, facts.mean, facts.std)


def _indices(x: Tensor, vocab: int) -> Tensor:
    """Whole numbers below `vocab`."""
    whole = x.to(engine.int64)
    if not ((whole == x) & (whole >= 0) & (whole < vocab)).all().item():
        raise DataError(
            f"{HERE}: expected whole numbers from 0 to {vocab - 1}, found others among them",
            code="E305",
        )
    return whole


def is_image(sample: Any) -> bool:
    """Whether it is a picture of Pillow, or the bytes of a file."""
    return isinstance(sample, bytes) or hasattr(sample, "getbands")


def as_tensor(samples: Any) -> Tensor:
    """A tensor, an array of NumPy or nested lists as a tensor."""
    if isinstance(samples, Tensor):
        return samples.detach()
    if hasattr(samples, "__array_interface__"):
        return engine.from_numpy(samples)
    return engine.tensor(samples)
