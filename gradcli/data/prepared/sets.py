"""Prepared sets: arrays and facts in a folder that is named by what they were made from.

    <cache>/<reader>-<16 hex>/facts.json, <array>.npy, ...

A set is written aside, flushed and renamed, under a lock. facts.json holds a hash over its own
content and one of each array, so that nothing that was damaged is believed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.data.files import as_text, path_text
from gradcli.data.prepared import identity, progress
from gradcli.data.prepared.identity import Advance, Book, FileIdentity
from gradcli.data.prepared.lock import PreparationLock
from gradcli.data.prepared.writer import StoredArray, Writer, as_json, header, write_error
from gradcli.dataclass import dataclass
from gradcli.errors import DataError, RunError

if TYPE_CHECKING:
    from gradcli.engine import Tensor

FORMAT = 1
FACTS = "facts.json"
_FACTS_LIMIT = 256 << 20
# Those that this process opened or made, by the hash of their sources and keys.
in_use: dict[str, PreparedSet] = {}
Write = Callable[[Writer], Mapping[str, Any]]


@dataclass(frozen=True)
class Recipe:
    """What a set is made from; two of the same content and keys are the same set.

    Attributes:
        version: of the reader: a higher one where it gives other numbers than before.
        keys: of `data:`, those that shape what is written; JSON values.
        sources: the file of each role with its sha256.
    """

    reader: str
    version: int
    keys: Mapping[str, Any]
    sources: Mapping[str, tuple[Path, str]]

    def content(self) -> dict[str, Any]:
        """What the name is a hash of; where files lie does not matter."""
        return {
            "format": FORMAT,
            "reader": self.reader,
            "version": self.version,
            "keys": dict(self.keys),
            "sources": {role: sha256 for role, (_, sha256) in self.sources.items()},
        }

    @property
    def name(self) -> str:
        """Of the folder."""
        return f"{self.reader}-{_hash(self.content())[:16]}"

    @property
    def title(self) -> str:
        """For people: the first file, and how many more there are."""
        names = [path_text(path.name) for path, _ in self.sources.values()]
        first = names[0] if names else self.reader
        return first if len(set(names)) < 2 else f"{first} and {len(set(names)) - 1} more"


class PreparedSet:
    """A set that was opened.

    Attributes:
        facts: what the reader's `write` gave.
        sha256: hash of each source file by its role.
    """

    def __init__(self, folder: Path, facts: dict[str, Any], arrays: dict[str, StoredArray]) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = facts["facts"]
        self.sha256: dict[str, str] = facts["sources"]
        self.arrays = arrays

    def tensor(self, name: str) -> Tensor:
        """An array, mapped read-only."""
        from gradcli.data.prepared.mapped import map_file
        from gradcli.engine.dtype import DTYPES

        array = self.arrays[name]
        path = self.folder / f"{name}.npy"
        dtype = DTYPES[array.dtype]
        return map_file(path, dtype, array.shape, array.offset, array.identity, replaceable=True)


class Damage(Exception):  # noqa: N818 -- a reason, which the command line never sees
    """A set that is not to be believed, and why."""


class OtherFormat(Damage):
    """A set that another version of gradcli wrote, for itself."""


def prepared(recipe: Recipe, write: Write, cache: Path) -> PreparedSet:
    """The set of a recipe, written by `write` unless it is there.

    `write` adds arrays to the Writer and returns the facts, JSON values. Of two processes the
    second waits for the first.

    Raises:
        RunError: the cache cannot be written.
        DataError: a source was edited meanwhile.
    """
    prepared_set = _there(recipe, cache) or _prepared_alone(recipe, write, cache)
    in_use[recipe.name] = prepared_set
    with contextlib.suppress(OSError):  # the time of last use, for `data list` and `data clean`
        os.utime(prepared_set.folder / FACTS)
    return prepared_set


def _there(recipe: Recipe, cache: Path) -> PreparedSet | None:
    with contextlib.suppress(Damage):
        return open_set(cache / recipe.name, recipe)
    return None


def _prepared_alone(recipe: Recipe, write: Write, cache: Path) -> PreparedSet:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = PreparationLock(cache / f"{recipe.name}.lock", recipe.title)
    except OSError as error:
        raise write_error(error, cache / recipe.name) from None
    with lock:
        return _recheck(recipe, cache) or _fresh(recipe, write, cache, lock)


def _recheck(recipe: Recipe, cache: Path) -> PreparedSet | None:
    """The set as another process may have left it meanwhile; why a damaged one is not used."""
    try:
        return open_set(cache / recipe.name, recipe)
    except Damage as damage:
        progress.teller(f"prepared data {recipe.name} is made anew: {damage}")
        return None


def _fresh(recipe: Recipe, write: Write, cache: Path, lock: PreparationLock) -> PreparedSet:
    if lock.is_safe:
        remove_asides(cache, recipe.name)
    _make(recipe, write, cache)
    with contextlib.suppress(Damage):
        if (prepared_set := open_set(cache / recipe.name, recipe)) is not None:
            return prepared_set
    raise RunError(
        f"prepared data {recipe.name} in {path_text(cache)} was removed or changed by somebody as "
        "soon as it was there; start again",
        code="E708",
    )


def _make(recipe: Recipe, write: Write, cache: Path) -> None:
    aside = cache / f".{recipe.name}.{os.getpid()}-{secrets.token_hex(4)}"
    writer = Writer(aside, recipe.title)
    try:
        with writer.writing():
            aside.mkdir()
        facts = write(writer)
        arrays = writer.close()
        _refuse_edited(recipe)
        with writer.writing():
            _write_facts(aside / FACTS, {**recipe.content(), **_origin(recipe)}, facts, arrays)
            _sync(aside)
            _put_in_place(aside, cache / recipe.name)
            _sync(cache)
        writer.end()
    finally:
        writer.abandon()
        shutil.rmtree(aside, ignore_errors=True)


def _refuse_edited(recipe: Recipe) -> None:
    for path, sha256 in recipe.sources.values():
        if not path.is_dir() and identity.edited_since(path, sha256):
            raise DataError(
                f"data file '{path_text(path)}' was edited while it was being prepared; start again"
            )


def _origin(recipe: Recipe) -> dict[str, Any]:
    return {"files": {role: as_text(path) for role, (path, _) in recipe.sources.items()}}


def _write_facts(
    path: Path, content: dict[str, Any], facts: Mapping[str, Any], arrays: Mapping[str, StoredArray]
) -> None:
    whole = {**content, "facts": dict(facts), "arrays": as_json(arrays)}
    with path.open("x", encoding="ascii") as file:
        json.dump({**whole, "sha256": _hash(whole)}, file, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o444)


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _put_in_place(aside: Path, folder: Path) -> None:
    """Rename the set; a damaged one that lies there goes."""
    old = aside.with_name(f"{aside.name}-old")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(old)
    try:
        aside.rename(folder)
    except OSError as error:
        # Where the disk knows no locks another process may have been first, with the same content.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Make the names in a folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_asides(cache: Path, name: str) -> None:
    """Remove what a killed process left of a set; the caller holds its lock."""
    for aside in cache.glob(f".{name}.*"):
        shutil.rmtree(aside, ignore_errors=True)


def open_set(
    folder: Path,
    recipe: Recipe | None = None,
    *,
    verify: bool = False,
    advance: Advance | None = None,
) -> PreparedSet | None:
    """Open the set in a folder and check it; None where there is none.

    With `verify` every array is hashed, and its bytes are reported to `advance`.

    Raises:
        Damage: the set is damaged, or not that of the recipe.
    """
    facts = read_facts(folder)
    if facts is None:
        return None
    if recipe is not None and any(facts.get(k) != v for k, v in _plain(recipe.content()).items()):
        raise Damage(f"its {FACTS} is that of another set")
    arrays = arrays_of(facts)
    book = Book(folder, folder.parent, verify=verify)
    verified = {
        name: _check_array(folder / f"{name}.npy", array, book, advance)
        for name, array in arrays.items()
    }
    book.save()
    return PreparedSet(folder, facts, verified)


def arrays_of(facts: Mapping[str, Any]) -> dict[str, StoredArray]:
    """The arrays of a set, from facts.json."""
    try:
        arrays = {str(name): _array_of(fields) for name, fields in facts["arrays"].items()}
        if not isinstance(facts["facts"], dict) or not isinstance(facts["sources"], dict):
            raise ValueError("no facts")
        if any(os.sep in name or "\0" in name for name in arrays):
            raise ValueError("an array elsewhere")
        return arrays
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Damage(f"its {FACTS} lacks what this version needs") from error


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What facts.json says, unless it was changed; None where there is no such folder."""
    path = folder / FACTS
    try:
        if path.stat().st_size > _FACTS_LIMIT:
            raise Damage(f"its {FACTS} is too long")
        facts = json.loads(path.read_bytes())
    except FileNotFoundError:
        if folder.is_dir():
            raise Damage(f"it has no {FACTS}") from None
        return None
    except (OSError, ValueError, RecursionError):
        raise Damage(f"its {FACTS} cannot be read") from None
    if not isinstance(facts, dict):
        raise Damage(f"its {FACTS} holds no facts")
    if facts.get("format") != FORMAT:
        raise OtherFormat(f"its format is {facts.get('format')!r}, this version reads {FORMAT}")
    if facts.pop("sha256", None) != _own_hash(facts):
        raise Damage(f"its {FACTS} was changed")
    return facts


def _own_hash(facts: dict[str, Any]) -> str | None:
    with contextlib.suppress(ValueError):  # NaN
        return _hash(facts)
    return ""


def _array_of(fields: dict[str, Any]) -> StoredArray:
    dtype, shape = str(fields["dtype"]), tuple(map(int, fields["shape"]))
    if min(shape, default=0) < 0 or int(fields["offset"]) != len(header(dtype, shape)):
        raise ValueError("no array that was written here")
    identity = FileIdentity(*map(int, fields["identity"]))
    return StoredArray(dtype, shape, int(fields["offset"]), str(fields["sha256"]), identity)


def _check_array(
    path: Path, array: StoredArray, book: Book, advance: Advance | None
) -> StoredArray:
    """The array with its identity now; raises where its content has changed."""
    try:
        now = FileIdentity.of(path)
        if not book.verify and now.untouched(array.identity):
            return array
        if now.size != array.identity.size:
            raise Damage(f"{path.name} has another length")
        if book.sha256(path, advance) != array.sha256:
            raise Damage(f"{path.name} was changed")
    except DataError as error:
        raise Damage(error.message) from None
    return replace(array, identity=identity.when_hashed.get(path, now))
