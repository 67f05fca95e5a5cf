"""What a parser is to the fuzzer: right inputs, spoilt ones by number, and how one is read."""

from __future__ import annotations

import random
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from spoiling import CHARACTERS, spoil_bytes

import gradcli
from gradcli.cli import output
from gradcli.data import Source
from gradcli.errors import ErrorGroup, GradcliError

Files = dict[str, bytes]  # an input: the content of each of its files, by name
Outcome = Literal["refused", "accepted", "fault"]
LONGEST = 8000  # characters of one error as it is printed


class WrongAnswerError(Exception):
    """The parser said something that is not so: it accepts what nobody else reads, for example."""


class Parser(ABC):
    """One parser; it may write into its own folder.

    Attributes:
        REFERENCE: the module of another reader, whose answers are compared where it is installed.
    """

    REFERENCE: ClassVar[str | None] = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reference: Any = _installed(self.REFERENCE)

    @abstractmethod
    def right(self) -> Sequence[Files]:
        """Inputs that must be accepted."""

    @abstractmethod
    def spoilt(self, rng: random.Random) -> Files:
        """An input that may be wrong in any way."""

    @abstractmethod
    def read(self, files: Files) -> None:
        """Read it: returns, or raises a GradcliError; all else is a fault."""


class OneFile(Parser):
    """A parser of single files, each of some bytes."""

    PIECES: ClassVar[Sequence[bytes]] = CHARACTERS

    @abstractmethod
    def seeds(self) -> Sequence[bytes]:
        """Contents that must be accepted."""

    @abstractmethod
    def parse(self, data: bytes) -> None:
        """Read one file of this content."""

    def right(self) -> Sequence[Files]:
        return [{"input": seed} for seed in self.seeds()]

    def spoilt(self, rng: random.Random) -> Files:
        return {"input": self.spoil(rng.choice(self.seeds()), rng)}

    def spoil(self, data: bytes, rng: random.Random) -> bytes:
        return spoil_bytes(data, rng, self.PIECES)

    def read(self, files: Files) -> None:
        self.parse(files["input"])

    def use(self, source: Source, path: str) -> None:
        """Load a dataset with this file in it, and the file as a new one; it may be refused."""
        try:
            source.load().read(Path(path))
        except GradcliError as error:
            said = unfit(error)
            if said:
                raise WrongAnswerError(said) from None

    def write(self, data: bytes, name: str = "input") -> str:
        """The path of a file with this content."""
        path = self.folder / name
        path.write_bytes(data)
        return str(path)


def _installed(name: str | None) -> Any:
    if name is None:
        return None
    try:
        return import_module(name)
    except ImportError:
        return None


def input_of(parser: Parser, name: str, number: int) -> Files:
    """The spoilt input of this number."""
    return parser.spoilt(random.Random(f"{name} {number}"))


def judge(parser: Parser, files: Files) -> tuple[Outcome, str]:
    """What came of an input, and what was said of it."""
    try:
        parser.read(files)
    except GradcliError as error:
        said = unfit(error)
        return ("fault", said) if said else ("refused", error.message)
    except Exception as error:  # whatever it is, it is the fault that was looked for
        return "fault", _cause(error)
    return "accepted", ""


def unfit(error: GradcliError) -> str:
    """Why an error is none for a user; "" where it is one."""
    errors = error.errors if isinstance(error, ErrorGroup) else [error]
    if error.exit_code in (0, 1) or not errors:
        return f"exit {error.exit_code}: {_cause(error)}"
    for one in errors:
        text = output.render(one)
        if not one.message or len(text) > LONGEST:
            return f"an error of {len(text)} characters: {text[:300]}"
    return ""


def _cause(error: BaseException) -> str:
    """The error and the two places nearest to it, without what differs from input to input."""
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(gradcli.__file__).parent
    ours = [one for one in frames if Path(one.filename).is_relative_to(package)] or frames
    where = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in ours[:-3:-1])
    return f"{type(error).__name__} at {where}: {str(error)[:400]}"
