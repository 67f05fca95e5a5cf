"""What is found out about data while steps are made: hashes that come later, files that change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradcli.data.hashes import Hashes, look_out, so_far
from gradcli.engine import distributed
from gradcli.train.directory import read_manifest

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor
    from gradcli.engine.distributed.group import Group
    from gradcli.train.directory import RunDirectory


_BETWEEN = 50  # times as long as a close look takes, steps are made before the next one


class DataWatch:
    """Looks after the data of a run: nothing that came of other data may be entered or saved."""

    def __init__(self, sha256: Mapping[str, str], directory: RunDirectory, group: Group) -> None:
        self._sha256 = sha256
        self._directory = directory
        self._group = group
        self._settled = not isinstance(sha256, Hashes)
        self._next = 0.0  # when files are looked at closely again

    def look(self) -> None:
        """Raise what is known by now to be wrong; cheap, and waits for nothing.

        Times of files are asked for as well, as far as that takes a small share of all time.
        """
        began = time.perf_counter()
        closely = began >= self._next
        look_out(closely)
        if closely:
            ended = time.perf_counter()
            self._next = ended + _BETWEEN * (ended - began)
        if isinstance(self._sha256, Hashes):
            self._sha256.look()

    def settle(self, *, first: bool) -> dict[str, str | None]:
        """The hashes for what is saved now, of data that is what it was.

        Of the `first` checkpoint, before a sample was seen, those still to come are None. Later all
        are there, and stand in the manifest too.
        """
        look_out(closely=True)
        if first:
            return so_far(self._sha256)
        with distributed.at_work():
            there: dict[str, str | None] = {**self._sha256}
        if not self._settled:
            self._settled = True
            self._agree(there)
            self._enter(there)
        return there

    def _agree(self, there: Mapping[str, str | None]) -> None:
        if self._group.size > 1:
            from gradcli.train.agreement import agree_on_data  # whoever is alone has no others

            agree_on_data(self._group, there)

    def _enter(self, there: Mapping[str, str | None]) -> None:
        """Fill in what the manifest did not know at the start."""
        manifest = read_manifest(self._directory.path) if self._group.rank == 0 else {}
        data = manifest.get("data")
        if isinstance(data, dict) and None in data.values():
            filled = {role: there.get(role) if one is None else one for role, one in data.items()}
            self._directory.write_json("manifest.json", {**manifest, "data": filled})


def look_at(split: Split, indices: Tensor) -> None:
    """Raise what is wrong with these samples, where their split can tell: file and place.

    A kernel that met it knows no more than a number out of its range.
    """
    look = getattr(split, "look", None)
    if look is not None:
        look(indices)
