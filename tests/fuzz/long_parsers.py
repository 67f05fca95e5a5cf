"""Readers of data that is prepared, against those that hold the same data in memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from data_parsers import Text
from parsing import WrongAnswerError, unfit

from gradcli.data import text
from gradcli.data.long_text import long_text
from gradcli.data.tabular import pieces
from gradcli.errors import GradcliError

PIECE = 61  # bytes: characters and gzip members lie in several pieces


class LongText(Text):
    """A text that is read in pieces has the tokens that it has in memory, or is refused too."""

    def parse(self, data: bytes) -> None:
        path, refusals = Path(self.write(data)), []
        for unit in ("bytes", "characters"):
            try:
                self._compare(path, unit)
            except GradcliError as error:
                refusals.append(error)
        if refusals:
            raise refusals[-1]

    def _compare(self, path: Path, unit: Literal["bytes", "characters"]) -> None:
        refusal, prepared, piece = None, None, pieces.PIECE
        pieces.PIECE = PIECE
        try:
            prepared = long_text(path, unit, self.folder / "cache").tokens.tolist()
        except GradcliError as error:
            refusal = error
        finally:
            pieces.PIECE = piece
            shutil.rmtree(self.folder / "cache", ignore_errors=True)
        said = unfit(refusal) if refusal else ""
        if said:
            raise WrongAnswerError(said)
        try:
            whole = text.text_of_file(path, unit).tokens.tolist()
        except GradcliError:
            whole = None
        if prepared != whole:
            raise WrongAnswerError("read in pieces it is another text")
        if refusal:
            raise refusal
