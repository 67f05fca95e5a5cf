"""Launchers of several processes: what they set, which commands train together, how ranks end."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradcli.cli import output
from gradcli.errors import GradcliError, RankError, say_once
from gradcli.train.launcher import LauncherInfo, find_launch, is_first, join_ranks

if TYPE_CHECKING:
    from gradcli.engine.distributed import Group

COMMANDS = ("train", "resume", "eval", "doctor")  # those that ranks carry out together
# Seconds for rank 0 to speak first: what all ranks find wrong is then said once.
TURN = 0.5


def begin(command: str | None, environment: Mapping[str, str] = os.environ) -> None:
    """Join the ranks of the launcher, if there is one, or refuse a command that knows none.

    Raises:
        RankError: E801, MPI does not see them; E807, the command is to be started once.
    """
    launch = find_launch(environment)
    if launch is None or command is None:
        return
    if command not in COMMANDS:
        raise say_once(
            RankError(
                f"{launch}, and each would do the same again: `gradcli {command}` knows no ranks",
                code="E807",
                notes=(
                    "start it once; train, resume, eval and doctor divide their work among ranks",
                ),
            )
        )
    _join(launch, environment)


def _join(launch: LauncherInfo, environment: Mapping[str, str]) -> None:
    """The ranks of the launcher are the group from here on; of what goes well rank 0 speaks."""
    group = join_ranks(launch, environment)
    if group.rank > 0:
        output.only_errors()
    from gradcli.train.agreement import meet

    for note in meet(group):
        output.say_aside(note)


def may_speak(on_all_ranks: bool) -> bool:
    """Whether this process speaks of an error, in its turn.

    What all ranks raise at one place rank 0 says alone. Other errors each rank says itself, those
    behind rank 0 a moment later: if it has the same, it has ended all by then. Of processes that
    have not met as ranks one speaks on each host.
    """
    group = ranks()
    if group is None:
        first = is_first(here=not on_all_ranks)
        if not first:
            time.sleep(TURN)  # Open MPI kills all others as soon as one has failed
        return first
    if group.rank == 0:
        return True
    if not on_all_ranks:
        time.sleep(TURN)
    return not on_all_ranks


def name_rank(problem: GradcliError) -> None:
    """Begin a problem's sentence with this rank and its host, where there are others."""
    group = ranks()
    if group is not None:
        problem.message = f"{group.names[group.rank]}: {problem.message}"


def leave(code: int) -> int:
    """The exit code of this process; the other ranks, which may wait for this one, end with it."""
    group = ranks()
    if group is not None:
        if sys.stdout:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
        group.abort(code)
    return code


def ranks() -> Group | None:
    """The ranks that were joined, if any; whoever joined none has not imported them."""
    distributed = sys.modules.get("gradcli.engine.distributed")
    group: Group | None = distributed.group() if distributed else None
    return group if group is not None and group.size > 1 else None
