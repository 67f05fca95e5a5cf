"""How and where a run started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradcli.dataclass import dataclass


@dataclass(frozen=True)
class RunContext:
    """The entries of the manifest that do not come from the job: how and where the run started.

    Attributes:
        config_sha256: the hash of the config file's values, by which `train --continue` finds its
            runs; values filled in at the start and later forks do not change it.
        sets: how many sets of checkpoints the disk must hold: 2 if the resume is verified.
        sheet: computes the work and memory for plan.json once the run has ended.
    """

    argv: Sequence[str]
    device: str
    threads: int
    config_sha256: str
    sets: int = 1
    sheet: Callable[[], Mapping[str, object]] | None = None
