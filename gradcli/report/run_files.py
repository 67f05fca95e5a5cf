"""The files of a run for whoever looks at it: what is absent or damaged is empty, and is named."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gradcli.errors import GradcliError, RunError
from gradcli.report.log_lines import LogLines
from gradcli.train.directory import LOG
from gradcli.train.json_file import decoded
from gradcli.train.run_name import is_run
from gradcli.train.safetensors_file import RawTensor, read
from gradcli.train.small_file import read_small
from gradcli.wording import quantity, verb

MOST_TENSORS = 256 << 20  # bytes
FORMATS = {"F32": "f", "F64": "d", "I64": "q"}
LARGEST = 1e308  # as far as numbers are drawn and added


def number(value: object) -> float | None:
    """A figure of a file as a float; None where it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LARGEST else None


class RunFiles:
    """The files of one run, read when they are asked for and never believed.

    Nothing is raised for a damaged file: it counts as empty, and `problems` says so.

    Attributes:
        path: the run's directory.
    """

    def __init__(self, path: Path) -> None:
        """A run that was resolved by `train.run_name.find`.

        Raises:
            RunError: the path is no run.
        """
        try:
            if not is_run(path):
                raise RunError(f"{path} is not a run: it has no resolved.yaml")
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror}") from error
        self.path = path
        self._objects: dict[str, dict[str, Any]] = {}
        self._texts: dict[str, str] = {}
        self._tensors: dict[str, RawTensor] | None = None
        self._problems: dict[str, str] = {}  # by the file

    @property
    def problems(self) -> list[str]:
        """A sentence on each file that was asked for and is damaged."""
        return list(self._problems.values())

    def note(self, file: str, problem: str) -> None:
        """A sentence on a file that is damaged; the first one of each counts."""
        self._problems.setdefault(file, problem)

    @property
    def name(self) -> str:
        """The run's name: that of the manifest, else of the folder that the run lies in."""
        name = self.manifest.get("name")
        return name if isinstance(name, str) and name else self.path.absolute().parent.name

    @property
    def manifest(self) -> dict[str, Any]:
        """manifest.json: how the run came about."""
        return self._object("manifest.json")

    @property
    def status(self) -> dict[str, Any]:
        """status.json: what the run is doing, or how it ended."""
        return self._object("status.json")

    @property
    def plan(self) -> dict[str, Any]:
        """plan.json: the model, and what its training needs."""
        return self._object("plan.json")

    @property
    def origins(self) -> dict[str, Any]:
        """origins.json: where each value of the config comes from."""
        return self._object("origins.json")

    @property
    def evaluation(self) -> dict[str, Any]:
        """evaluation.json: what the last evaluation saw."""
        return self._object("evaluation.json")

    @property
    def config_text(self) -> str:
        """config.yaml as it was written."""
        return self._text("config.yaml")

    @property
    def resolved_text(self) -> str:
        """resolved.yaml: the config with every default."""
        return self._text("resolved.yaml")

    def tensors(self) -> dict[str, RawTensor]:
        """The tensors of evaluation.safetensors by name."""
        if self._tensors is None:
            self._tensors = self._read_tensors("evaluation.safetensors")
        return self._tensors

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of log.jsonl in their order, without lines that are none.

        Figures may be None, and, in a log that somebody changed, anything: see `number`.
        """
        for records in self.blocks():
            yield from records

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """The records, many at a time, which is faster."""
        lines = LogLines(self.path / LOG)
        try:
            yield from lines.blocks()
        except FileNotFoundError:
            self._problems[LOG] = f"{LOG} is absent"
            return
        except OSError as error:
            self._problems[LOG] = f"{LOG} cannot be read: {error.strerror or error}"
            return
        self._note_lines(lines)

    def _note_lines(self, lines: LogLines) -> None:
        parts = []
        if lines.damaged:
            count = verb(lines.damaged, "is no record", "are no records")
            parts.append(f"{quantity(lines.damaged, 'line')} {count}")
        if lines.too_long:
            count = verb(lines.too_long, "is", "are")
            parts.append(f"{quantity(lines.too_long, 'line')} {count} longer than 1 MiB")
        if lines.torn:
            parts.append("the last line is cut off")
        if parts:
            self._problems[LOG] = f"{LOG} is damaged: {', '.join(parts)}"

    def _object(self, name: str) -> dict[str, Any]:
        if name not in self._objects:
            self._objects[name] = self._read_object(name)
        return self._objects[name]

    def _read_object(self, name: str) -> dict[str, Any]:
        try:
            value = decoded(read_small(self.path / name))
            json.dumps(value, allow_nan=False)  # NaN, and what loads as infinity
        except FileNotFoundError:
            return {}
        except OSError as error:
            self._problems[name] = f"{name} cannot be read: {error.strerror or error}"
            return {}
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
        self._problems[name] = f"{name} is damaged: it holds no JSON object"
        return {}

    def _text(self, name: str) -> str:
        if name not in self._texts:
            try:
                self._texts[name] = read_small(self.path / name).decode("utf-8", "replace")
            except FileNotFoundError:
                self._texts[name] = ""
            except OSError as error:
                self._problems[name] = f"{name} cannot be read: {error.strerror or error}"
                self._texts[name] = ""
        return self._texts[name]

    def _read_tensors(self, name: str) -> dict[str, RawTensor]:
        file = self.path / name
        try:
            size = file.stat().st_size
            if size > MOST_TENSORS:
                self._problems[name] = f"{name} has {quantity(size, 'byte', form=',')}: too many"
                return {}
            return dict(read(file).tensors)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self._problems[name] = f"{name} cannot be read: {error.strerror or error}"
        except GradcliError as error:
            self._problems[name] = f"{name} is damaged: {error.message}"
        return {}


def floats(tensors: Mapping[str, RawTensor], name: str) -> list[list[float | None]]:
    """The rows of a tensor of numbers, flat; empty if it is absent or of another type."""
    tensor = tensors.get(name)
    if tensor is None or tensor.dtype not in FORMATS or not tensor.shape:
        return []
    count = math.prod(tensor.shape)
    values = struct.unpack(f"<{count}{FORMATS[tensor.dtype]}", tensor.data)
    width = math.prod(tensor.shape[1:])
    rows = [values[at : at + width] for at in range(0, len(values), width)] if width else []
    return [[number(value) for value in row] for row in rows]
