"""Writes a first config and the schema beside it; overwrites nothing, keeps nothing wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

from gradcli.config import Config, load
from gradcli.config.json_schema import json_schema
from gradcli.errors import ConfigError, DataError, ErrorGroup
from gradcli.starter.draft import ConfigDraft
from gradcli.starter.images import draft_of_folder
from gradcli.starter.prose import draft_of_text
from gradcli.starter.published import draft_of_model
from gradcli.starter.tables import draft_of_table
from gradcli.train.published.folder import is_published

SCHEMA = "gradcli.schema.json"
FIRST_LINE = f"# yaml-language-server: $schema={SCHEMA}\n"
TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl", ".ndjson")
_PACKED = (".gz", ".zst")
TEXTS = (".txt", ".md", ".text")


def draft(source: Path, folder: Path, target: str | None, text: Path | None = None) -> ConfigDraft:
    """The config for a user's own data, to be written in `folder`; `text` is for a published model.

    Raises:
        GradcliError: the data is not there, of no kind that is known, or nothing to learn from.
    """
    config_path = _relative(source, folder)
    name = run_name(source)
    if is_published(source):
        _no_target(target, "a published model: each next token is predicted")
        own = None if text is None else (text, _relative(text, folder))
        return draft_of_model(source, config_path, f"{name[:90]}-tuned", own)
    if text is not None:
        raise ConfigError(f"--data is the text for a published model, and '{source}' is none")
    if source.is_dir():
        _no_target(target, "a folder of pictures: the name of a folder is the class")
        return draft_of_folder(source, config_path, name)
    suffixes = [suffix.lower() for suffix in source.suffixes if suffix.lower() not in _PACKED]
    if suffixes[-1:] and suffixes[-1] in TABLES:
        return draft_of_table(source, config_path, name, target)
    if suffixes[-1:] and suffixes[-1] in TEXTS:
        _no_target(target, "a text: each next character is predicted")
        return draft_of_text(source, config_path, name)
    raise ConfigError(
        f"'{source}' has no ending that says what it is: tables end in {', '.join(TABLES)}, texts "
        f"in {', '.join(TEXTS)}; pictures lie in a folder for each class"
    )


def write(text: str, out: Path) -> str:
    """The config, unless a file of this name is there; its name.

    Raises:
        ConfigError: there is one.
    """
    refuse_existing(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("x", encoding="utf-8") as file:
        file.write(FIRST_LINE + text)
    return str(out)


def write_schema(folder: Path) -> list[str]:
    """What editors read, beside a config; a file that is there stays."""
    schema = folder / SCHEMA
    if os.path.lexists(schema):
        return []
    with schema.open("x", encoding="utf-8") as file:
        file.write(json.dumps(json_schema(), ensure_ascii=False) + "\n")
    return [str(schema)]


def refuse_existing(out: Path) -> None:
    """An error where a file is in the way."""
    if os.path.lexists(out):
        raise ConfigError(
            f"{out} is there, and nothing is overwritten; write elsewhere with --out FILE.yaml, or "
            "move it away"
        )


def load_draft(out: Path, source: Path) -> Config:
    """Load a config that was just written, as `check` does; remove it if it is wrong."""
    try:
        return load(out)
    except ErrorGroup as error:
        out.unlink()
        first = error.errors[0]
        raise DataError(
            f"{source}: no config for it can be written: {first.message}",
            code="E305",
            notes=first.notes,
        ) from None


def _relative(source: Path, folder: Path) -> str:
    path = Path(os.path.relpath(source, folder)).as_posix()
    return f"./{path}" if path.startswith("~") else path


def run_name(source: Path) -> str:
    """A name for runs and the config: the stem, of the letters that names of runs have."""
    stem = source.resolve().name if source.is_dir() else source.name.partition(".")[0]
    letters = [c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in stem]
    return "".join(letters).strip("-_")[:100] or "own"


def _no_target(target: str | None, kind: str) -> None:
    if target is not None:
        raise ConfigError(f"--target names a column of a table, and this is {kind}")
