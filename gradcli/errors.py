"""Every error that a user can cause, with its exit code; nothing else is raised on purpose."""

from __future__ import annotations

from typing import Any, TypeVar
from warnings import warn

from gradcli.dataclass import dataclass
from gradcli.deprecated import lookup, renamed_keyword


@dataclass(frozen=True)
class Location:
    """Where in a text an error lies: file (or the override's text), line and column from 1."""

    file: str
    line: int = 0
    column: int = 0
    width: int = 1
    text: str = ""  # the source line, shown above the caret

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class GradcliError(Exception):
    """One clear sentence, with a location and a cure where there is one.

    Attributes:
        code: stable name of the kind of error, shown as `error[E103]`.
        exit_code: what the command line returns.
        location: where the mistake stands, if in a text.
        caret: short remark written beside the caret.
        notes: further lines; each is something to read or to type.
        of_earlier_op: the sentence names an op that was called before the one that raises it.
        on_all_ranks: every rank of a training raises it; rank 0 alone says it.
    """

    code = "E000"
    exit_code = 1
    of_earlier_op = False
    on_all_ranks = False

    @renamed_keyword("place", "location")
    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        location: Location | None = None,
        caret: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.location = location
        self.caret = caret
        self.notes = notes

    @property
    def place(self) -> Location | None:
        """The old name of `location`."""
        warn("GradcliError.place is now location", DeprecationWarning, stacklevel=2)
        return self.location


E = TypeVar("E", bound=GradcliError)


def say_once(error: E) -> E:
    """An error that every rank raises at the same place: rank 0 alone says it, and all end."""
    error.on_all_ranks = True
    return error


class ErrorGroup(GradcliError):  # noqa: N818 -- named like ExceptionGroup
    """Several errors of one file, reported together; its exit code is the first one's."""

    def __init__(self, errors: list[GradcliError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors
        self.exit_code = errors[0].exit_code


def members(error: GradcliError) -> list[GradcliError]:
    """The errors of a group, or the one error."""
    return error.errors if isinstance(error, ErrorGroup) else [error]


class ConfigError(GradcliError):
    """A config file, an override or the command line says something impossible."""

    code, exit_code = "E101", 2


class ShapeError(GradcliError, RuntimeError):
    """Shapes that do not fit together; torch raises RuntimeError here."""

    code, exit_code = "E201", 2


class DTypeError(GradcliError, TypeError):
    """An element type that an op does not take."""

    code, exit_code = "E202", 2


class RangeError(GradcliError, IndexError):
    """An index outside its dimension."""

    code, exit_code = "E203", 2


class OptionError(GradcliError, ValueError):
    """An argument with an impossible value."""

    code, exit_code = "E204", 2


class OptionTypeError(OptionError, TypeError):
    """An argument of another Python type; torch raises TypeError here."""


class AutogradError(GradcliError, RuntimeError):
    """A gradient that cannot be computed: no graph, graph freed, saved value changed."""

    code, exit_code = "E205", 2


class CaptureError(GradcliError, RuntimeError):
    """A step that cannot be recorded, because Python decides something in it by values."""

    code, exit_code = "E206", 2


class DataError(GradcliError):
    """A data file that is missing, broken or of another kind than the config says."""

    code, exit_code = "E301", 3


class WorkerError(DataError, RuntimeError):
    """A worker process of a DataLoader that failed, died or was too slow."""

    code, exit_code = "E311", 3


class DeviceError(GradcliError, RuntimeError):
    """A device, kernel, compiler or memory that is not to be had."""

    code, exit_code = "E401", 4


class RankError(GradcliError, RuntimeError):
    """Processes of one training that do not fit together."""

    code, exit_code = "E801", 2


class LostRankError(RankError):
    """A rank that did not come within the timeout: the run can be continued.

    Args:
        before: the sentence up to what the ranks were at.
        where: what that was, such as "step 4,211".
        after: the rest of the sentence.
    """

    code, exit_code = "E806", 75

    def __init__(self, before: str, where: str, after: str = "") -> None:
        super().__init__(before + where + after)
        self._around = before, after

    def at(self, where: str) -> LostRankError:
        """The same error, of whoever knows better what the ranks were at."""
        before, after = self._around
        return LostRankError(before, where, after)


class NumericsError(GradcliError):
    """NaN or infinity where numbers are needed, or a gradient that is wrong."""

    code, exit_code = "E501", 5


class ExpectationError(GradcliError):
    """A figure in `expect:` or a benchmark threshold was missed."""

    on_all_ranks = True
    code, exit_code = "E601", 6


class CheckpointError(GradcliError):
    """A checkpoint that is damaged, foreign, or does not fit the model."""

    code, exit_code = "E701", 7


class RunError(GradcliError):
    """A run directory that cannot be used: locked by another process, or not a run."""

    code, exit_code = "E702", 7


class Stopped(GradcliError):  # noqa: N818 -- not an error: the run can be continued
    """SIGTERM: the run stopped after a checkpoint and can be resumed."""

    on_all_ranks = True
    code, exit_code = "E751", 75


class Interrupted(GradcliError):  # noqa: N818 -- not an error: the run can be continued
    """Ctrl-C: the run stopped after a checkpoint and can be resumed."""

    on_all_ranks = True
    code, exit_code = "E130", 130


def __getattr__(name: str) -> Any:
    """The old name of `Location`."""
    return lookup(__name__, {"Place": "Location"}, name)
