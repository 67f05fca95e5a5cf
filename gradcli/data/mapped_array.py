"""Arrays that are larger than one wants in memory, mapped where they lie in their file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from gradcli.data.files import path_text
from gradcli.data.prepared.identity import FileIdentity
from gradcli.data.prepared.mapped import map_file
from gradcli.data.prepared.number_checks import Check
from gradcli.data.prepared.reading import FileReading, begin
from gradcli.engine import DType, Tensor
from gradcli.errors import DataError
from gradcli.wording import quantity


class MappedArray:
    """An array in a file: a tensor at once, its hash and a look at its numbers later.

    Attributes:
        sha256: of the whole file, while a thread reads it.
    """

    def __init__(
        self,
        path: Path,
        dtype: DType,
        shape: Sequence[int],
        offset: int,
        check: Check | None,
        cache: Path | None = None,
    ) -> None:
        self.path = path
        identity = FileIdentity.of(path)
        length = offset + dtype.size * math.prod(shape)
        if identity.size != length:
            raise DataError(
                f"{path_text(path)}: expected {quantity(length, 'byte')} from the header, got "
                f"{identity.size}",
                code="E302",
            )
        self.tensor: Tensor = map_file(path, dtype, shape, offset, identity)
        self.sha256 = FileReading(path, identity, check, cache)
        begin([self.sha256])

    def notes(self) -> tuple[str, ...]:
        """No notes: the file is not compressed."""
        return ()
