"""Watch the data during a training: hashes computed in the background, files that change."""

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


_BETWEEN = 50  # the time between two close looks, as a multiple of the time that one takes


class DataWatch:
    """Watches the data of a run, so that nothing computed from other data is logged or saved."""

    def __init__(self, sha256: Mapping[str, str], directory: RunDirectory, group: Group) -> None:
        self._sha256 = sha256
        self._directory = directory
        self._group = group
        self._settled = not isinstance(sha256, Hashes)
        self._next = 0.0  # when files are looked at closely again

    def look(self) -> None:
        """Raise the faults known by now, without waiting.

        Reads the times of files too, as long as that takes a small share of the time.
        """
        start = time.perf_counter()
        closely = start >= self._next
        look_out(closely)
        if closely:
            end = time.perf_counter()
            self._next = end + _BETWEEN * (end - start)
        if isinstance(self._sha256, Hashes):
            self._sha256.look()

    def settle(self, *, first: bool) -> dict[str, str | None]:
        """The hashes for a checkpoint; raises if the data has changed.

        In the `first` checkpoint, before any sample is read, hashes not yet computed are None.
        Later checkpoints wait for all of them, and enter them in the manifest too.
        """
        look_out(closely=True)
        if first:
            return so_far(self._sha256)
        with distributed.at_work():
            hashes: dict[str, str | None] = {**self._sha256}
        if not self._settled:
            self._settled = True
            self._agree(hashes)
            self._enter(hashes)
        return hashes

    def _agree(self, hashes: Mapping[str, str | None]) -> None:
        if self._group.size > 1:
            from gradcli.train.agreement import agree_on_data  # only of use with several ranks

            agree_on_data(self._group, hashes)

    def _enter(self, hashes: Mapping[str, str | None]) -> None:
        """Add the hashes that the manifest lacked at the start."""
        manifest = read_manifest(self._directory.path) if self._group.rank == 0 else {}
        data = manifest.get("data")
        if isinstance(data, dict) and None in data.values():
            data = {role: hashes.get(role) if sha is None else sha for role, sha in data.items()}
            self._directory.write_json("manifest.json", {**manifest, "data": data})


def look_at(split: Split, indices: Tensor) -> None:
    """Raise an error that names the file and place of a bad sample, if the split can tell.

    A kernel that reads it knows only that a number is out of range.
    """
    look = getattr(split, "look", None)
    if look is not None:
        look(indices)
