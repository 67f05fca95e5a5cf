"""Find the run that `train --continue` resumes: unfinished, with the same config."""

from __future__ import annotations

from pathlib import Path

from gradcli.errors import ConfigError
from gradcli.train.directory import read_manifest, read_status
from gradcli.train.run_name import runs_of


def unfinished_run(runs: Path, name: str, config_sha256: str) -> Path | None:
    """The newest run of this name that began with this config and is not finished, if any.

    Raises:
        ConfigError: E131, there is none, but the newest run of the name is unfinished and has
            another config: a new run must not abandon it silently.
    """
    newest_first = runs_of(runs, name)
    for run in newest_first:
        if not _is_finished(run) and read_manifest(run).get("config_sha256") == config_sha256:
            return run
    if newest_first and not _is_finished(newest_first[0]):
        raise ConfigError(
            f"--continue: {newest_first[0]} is not finished and began with another config",
            code="E131",
            notes=(
                f"go on with it as it began: gradcli resume {newest_first[0]}",
                "or begin a run of this config: without --continue, or with --name OTHER",
            ),
        )
    return None


def _is_finished(run: Path) -> bool:
    return read_status(run).get("status") == "finished"
