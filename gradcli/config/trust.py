"""Which own code may be run: what this user's trainings ran before, or what is allowed by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gradcli.config import trust_list
from gradcli.data.files import path_text
from gradcli.errors import ConfigError

DIGITS = 16  # of a hash, in a line; errors and manifest.json have all of them
UNKNOWN_CODE = "E128"


def _ignore(line: str) -> None:
    del line


class Trust:
    """Decides on each file of own code before it is run, and names it.

    Attributes:
        everything: unknown files are run too.
        say: gets a line for each file that is run, and why the list cannot be used.
    """

    def __init__(
        self,
        *,
        everything: bool = False,
        remember: bool = False,
        say: Callable[[str], None] = _ignore,
    ) -> None:
        """With `remember` files are put into the list of what is trusted, as `train` does."""
        self.everything = everything
        self.say = say
        self._remember = remember
        self._hashes: frozenset[str] | None = None
        self._files: set[tuple[Path, str]] = set()

    def admit(self, path: Path, sha256: str) -> None:
        """Name a file that is about to run, or refuse it; the hash is that of the bytes to run.

        Raises:
            ConfigError: it is unknown, and `everything` is not allowed.
        """
        if (path, sha256) in self._files:
            return
        if not self.everything and sha256 not in self._trusted_hashes():
            raise _refusal(path, sha256)
        self._files.add((path, sha256))
        self.say(f"runs own code {path_text(path)}, sha256 {sha256[:DIGITS]}")
        if self._remember:
            self._add(path, sha256)

    def _trusted_hashes(self) -> frozenset[str]:
        """The hashes in the list, read once."""
        if self._hashes is None:
            self._hashes = frozenset()
            file = trust_list.list_path()
            try:
                self._hashes = frozenset() if file is None else trust_list.hashes(file)
            except OSError as error:
                self.say(f"warning: nothing is trusted: {_reason(file, error)}")
        return self._hashes

    def _add(self, path: Path, sha256: str) -> None:
        """Into the list; where that cannot be, the training goes on without it."""
        file = trust_list.list_path()
        try:
            if file is None:
                raise OSError("no home folder is known; XDG_STATE_HOME names one")
            if trust_list.add(file, sha256, path.name):
                self.say(f"it is trusted from now on: {path_text(file)}")
        except OSError as error:
            reason = _reason(file, error)
            self.say(f"warning: own code is not remembered as trusted: {reason}")


def _reason(file: Path | None, error: OSError) -> str:
    reason = error.strerror or str(error)
    return reason if file is None else f"{path_text(file)}: {reason}"


def _refusal(path: Path, sha256: str) -> ConfigError:
    return ConfigError(
        f"own code {path_text(path)} was not run: none of your trainings ran it before",
        code=UNKNOWN_CODE,
        caret="may do whatever you may do",
        notes=(
            f"sha256 {sha256}",
            "read it; where you trust it, add --trust-code (in Python: trust_code=True)",
        ),
    )
