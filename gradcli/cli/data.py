"""`gradcli data`: the prepared data in the cache, made, listed, verified and removed."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.cli.runs import age
from gradcli.errors import ConfigError, DataError, ErrorGroup, GradcliError
from gradcli.table import Column, lines
from gradcli.wording import byte_size, join_words, quantity

if TYPE_CHECKING:
    from gradcli.data.prepared.shelf import Shelved

_cache = click.option(
    "--cache",
    type=options.path,
    metavar="DIR",
    help="Folder of prepared data.  [default: your cache folder]",
)


@click.group("data", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, prepare, verify and remove data that gradcli caches for faster starts."""
    if ctx.invoked_subcommand is None:
        raise click.UsageError("say what to do: data list, prepare, verify or clean", ctx)


@command.command("list", short_help="List prepared data.")
@_cache
@options.json
@options.basic
def list_command(cache: Path | None, as_json: bool) -> None:
    """List prepared data with its size and its last use."""
    folder, sets = _sets(cache)
    if as_json:
        output.say_json({"cache": str(folder), "sets": [_as_object(entry) for entry in sets]})
    elif sets:
        _show(sets)
        output.say(f"{_total(sets)} in {folder}")
    else:
        output.say(f"no prepared data in {folder}")


@command.command("prepare", short_help="Prepare the data of a config.")
@click.argument("path", metavar="CONFIG", type=options.path, shell_complete=completion.configs)
@options.overrides
@options.trust_code
@options.verify_data
@options.json
@options.basic
def prepare(path: Path, overrides: tuple[str, ...], trust_code: bool, as_json: bool) -> None:
    """Prepare the data of CONFIG now, so that training starts at once."""
    from gradcli.config import load
    from gradcli.data.prepared.sets import in_use

    in_use.clear()
    load(path, overrides, room=None, trust=options.trust(trust_code))
    folders = [entry.folder for entry in in_use.values()]
    if as_json:
        output.say_json({"config": str(path), "sets": [str(folder) for folder in folders]})
    elif not folders:
        output.say(f"{path}: its data is read at each start; there is nothing to prepare")
    for folder in () if as_json else folders:
        output.say(f"prepared: {folder}", "good")


@command.command("verify", short_help="Check the hashes of prepared data.")
@_cache
@options.json
@options.basic
def verify(cache: Path | None, as_json: bool) -> None:
    """Read all prepared data and compare its hashes; exit 3 if any differs."""
    from gradcli.data.prepared.progress import Progress
    from gradcli.data.prepared.shelf import DAMAGED, READY, verified

    folder, sets = _sets(cache)
    candidates = [entry for entry in sets if entry.state in (READY, DAMAGED)]
    with Progress("verifying", sum(entry.size for entry in candidates), "byte") as watched:
        damage = {
            entry.path: entry.reason or verified(entry, watched.advance) for entry in candidates
        }
    if as_json:
        rows = [
            {"set": str(path), "ok": not reason, "why": reason} for path, reason in damage.items()
        ]
        output.say_json({"cache": str(folder), "sets": rows})
    else:
        for path, reason in damage.items():
            output.say(f"damaged: {path}: {reason}" if reason else f"whole: {path}")
        if not damage:
            output.say(f"no prepared data in {folder}")
    problems: list[GradcliError] = [
        _damaged(path, reason) for path, reason in damage.items() if reason
    ]
    if problems:
        raise ErrorGroup(problems)


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(
        f"prepared data {path} is damaged: {reason}",
        code="E302",
        notes=("the next training makes it anew; `gradcli data clean --yes` removes it",),
    )


@command.command("clean", short_help="Remove prepared data; without --yes, only list it.")
@options.count(
    "--older-than", "DAYS", "Only data that no training has used for so many days.", least=0
)
@click.option("--yes", is_flag=True, help="Remove the data instead of listing it.")
@_cache
@options.json
@options.basic
def clean(older_than: int | None, yes: bool, cache: Path | None, as_json: bool) -> None:
    """Remove prepared data, except what is being prepared now.

    gradcli prepares data again when it needs it.
    """
    from gradcli.data.prepared.shelf import BUSY, remove, remove_loose

    folder, sets = _sets(cache)
    limit = datetime.now(UTC) - timedelta(days=min(older_than or 0, 100_000))
    candidates = [entry for entry in sets if older_than is None or entry.last_use <= limit]
    go = [entry for entry in candidates if entry.state != BUSY]
    removals: list[Shelved] = []
    problems: list[GradcliError] = []
    for entry in go if yes else ():
        try:
            if remove(entry):
                removals.append(entry)
        except GradcliError as error:
            problems.append(error)
    if yes:
        remove_loose(folder)
    if as_json:
        rows = [{**_as_object(entry), "removed": entry in removals} for entry in go]
        output.say_json({"cache": str(folder), "sets": rows})
    elif removals or not problems:
        _show_cleaning(folder, removals if yes else go, yes, busy=len(candidates) - len(go))
    if problems:
        raise ErrorGroup(problems)


def _show_cleaning(folder: Path, sets: list[Shelved], yes: bool, busy: int) -> None:
    for entry in sets:
        word = "removed" if yes else "would remove"
        output.say(f"{word} {entry.path}, {entry.state}, {byte_size(entry.size)}")
    if busy:
        output.say(f"kept {quantity(busy, 'set')} that another process makes now")
    if not sets:
        output.say(f"nothing to remove in {folder}")
    elif yes:
        output.say(f"removed {_total(sets)}")
    else:
        output.say(f"{_total(sets)}; with --yes they are removed")


@command.command("fetch", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("names", nargs=-1)
@options.basic
def fetch(names: tuple[str, ...]) -> None:
    """Reserved."""
    del names
    raise ConfigError(
        "`gradcli data fetch` is reserved: gradcli downloads nothing yet",
        code="E100",
        notes=("put the files where `data:` of the config says",),
    )


def _sets(cache: Path | None) -> tuple[Path, list[Shelved]]:
    from gradcli.data.prepared.cache import cache_folder
    from gradcli.data.prepared.shelf import sets_in

    folder = cache_folder(None) if cache is None else cache.absolute()
    return folder, sets_in(folder)


def _total(sets: list[Shelved]) -> str:
    return f"{quantity(len(sets), 'set')}, {byte_size(sum(entry.size for entry in sets))}"


def _as_object(entry: Shelved) -> dict[str, Any]:
    return {
        "set": str(entry.path),
        "state": entry.state,
        "why": entry.reason,
        "bytes": entry.size,
        "used": entry.last_use.isoformat(timespec="seconds"),
        "files": list(entry.files),
    }


def _show(sets: list[Shelved]) -> None:
    now = datetime.now(UTC)
    rows = [("set", "state", "size", "used", "made from")]
    rows += [
        (
            entry.path.name,
            entry.state,
            byte_size(entry.size),
            f"{age((now - entry.last_use).total_seconds())} ago",
            join_words((Path(file).name for file in entry.files), 3) or entry.reason or "-",
        )
        for entry in sets
    ]
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    columns = (
        Column(widths[0], "name", gap=0),
        Column(widths[1], "label", gap=2),
        Column(widths[2], gap=2, rank=1),
        Column(widths[3], gap=2, rank=2),
        Column(widths[4], "label", gap=2, rank=3),
    )
    first, *body = lines(columns, rows, output.width(sys.stdout))
    output.say(first, "heading")
    for line in body:
        output.say(line)
