"""The log of a run for other tools: a table of all records, and event files of TensorBoard."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from gradcli.errors import ConfigError, RunError
from gradcli.report.run_files import RunFiles, number
from gradcli.train.atomic import write_file

FILES = {"csv": "metrics.csv", "tensorboard": "tensorboard"}  # in the run
FIRST = ("event", "step")
MOST_COLUMNS = 1000
EVENT_FILE = "events.out.tfevents."
MISSING = "--to tensorboard needs the package tensorboardX: pip install 'gradcli[tensorboard]'"


def export(run: RunFiles, form: str, target: Path | None) -> Path:
    """Write the log as `csv` or for `tensorboard`, into the run unless `target` is given.

    Raises:
        ConfigError: the target exists, or a package is missing.
        RunError: the run has no log, or it cannot be written.
    """
    file = run.path / FILES[form] if target is None else target
    if target is not None and os.path.lexists(file) and file != run.path / FILES[form]:
        raise ConfigError(
            f"-o {ascii(str(file))[1:-1]}: there is such a file already, and it is not replaced",
            notes=("name another, or remove it first",),
        )
    if next(iter(run.records()), None) is None:
        problems = [problem for problem in run.problems if problem.startswith("log.jsonl")]
        raise RunError(f"{run.path} has no records: {(problems or ['log.jsonl is empty'])[0]}")
    try:
        if form == "csv":
            write_file(file, table(run), flush=False)
        else:
            _write_events(run, file)
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror}", code="E703") from error
    return file


def table(run: RunFiles) -> Iterator[bytes]:
    """A row a record (RFC 4180), with all keys that any of them has; lists are JSON.

    What is not finite is `nan`, `inf` or `-inf`.
    """
    keys: dict[str, None] = dict.fromkeys(FIRST)
    for record in run.records():
        keys.update((key, None) for key in record if key != "nonfinite")
        if len(keys) > MOST_COLUMNS:
            raise RunError(
                f"{run.path / 'log.jsonl'} has records of more than {MOST_COLUMNS} keys, too many "
                "for a table"
            )
    yield _row(list(keys))
    for record in run.records():
        nonfinite = _mapping(record.get("nonfinite"))
        yield _row([_cell(nonfinite.get(key, record.get(key))) for key in keys])


def _row(cells: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _write_events(run: RunFiles, folder: Path) -> None:
    """A folder with one event file; one that an earlier export wrote goes."""
    try:
        from tensorboardX.event_file_writer import EventsWriter
    except ImportError as error:
        raise ConfigError(MISSING) from error
    if folder.is_symlink() or (folder.exists() and not _is_ours(folder)):
        raise ConfigError(
            f"{folder} holds more than event files of TensorBoard, and is not replaced",
            notes=("name another folder with -o",),
        )
    # An absolute path: tensorboardX sends others, such as s3:x, over the network.
    aside = folder.absolute().with_name(f".gradcli-{secrets.token_hex(8)}.tmp")
    aside.mkdir()
    try:
        writer = EventsWriter(str(aside / "events"))
        with contextlib.closing(writer):
            for event in _events(run):
                writer.write_event(event)
        if folder.exists():
            shutil.rmtree(folder)
        aside.rename(folder)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(aside)


def _is_ours(folder: Path) -> bool:
    return folder.is_dir() and all(entry.name.startswith(EVENT_FILE) for entry in folder.iterdir())


def _events(run: RunFiles) -> Iterator[Any]:
    """An event a record: its figures as scalars, texts as text."""
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.summary_pb2 import Summary
    from tensorboardX.summary import text

    began = _began(run)
    for record in run.records():
        step = record.get("step")
        if type(step) is not int or not 0 <= step < 2**63:
            continue
        values = [
            Summary.Value(tag=tag, simple_value=value) for tag, value in _scalars(record).items()
        ]
        summary = Summary(value=values)
        if isinstance(record.get("text"), str):
            summary.MergeFrom(text("sample", str(record.get("prompt", "")) + record["text"]))
        if summary.value:
            time = began + (number(record.get("seconds")) or 0.0)
            yield Event(wall_time=time, step=step, summary=summary)


def _scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """`train/loss`, `val/accuracy`: the figures of a record by their tags."""
    nonfinite = _mapping(record.get("nonfinite"))
    result = {}
    for key, value in record.items():
        if key in ("step", "seconds", "measured_step"):
            continue
        finite = number(value)
        odd = nonfinite.get(key)
        if finite is None and odd in ("nan", "inf", "-inf"):
            finite = float(odd)
        if finite is not None:
            tag = key.replace(".", "/", 1) if "." in key else f"train/{key}"
            result[tag.encode("utf-8", "backslashreplace").decode()] = finite
    return result


def _began(run: RunFiles) -> float:
    """When the run began, in seconds since 1970; 0 where it does not say."""
    try:
        return datetime.fromisoformat(str(run.manifest.get("created"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
