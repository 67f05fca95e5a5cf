"""Passes: each rewrites the list of calls of a step into one that does the same, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gradcli.engine.program.passes.chains import chains
from gradcli.engine.program.passes.constants import constants
from gradcli.engine.program.passes.dead import dead_calls
from gradcli.engine.program.passes.ends import ends
from gradcli.engine.program.passes.epilogues import epilogues
from gradcli.engine.program.passes.first_write import first_write
from gradcli.engine.program.passes.repeats import repeats
from gradcli.engine.program.passes.roundings import roundings
from gradcli.engine.program.passes.views import views
from gradcli.engine.program.record import Call

Pass = Callable[[list[Call]], list[Call]]

# In the order in which they run; a pass may rely on what those before it have done.
PASSES: dict[str, Pass] = {
    "dead_calls": dead_calls,
    "roundings": roundings,
    "repeats": repeats,
    "constants": constants,
    "views": views,
    "first_write": first_write,
    "epilogues": epilogues,
    "chains": chains,
    "ends": ends,
}


def optimized(calls: Sequence[Call], names: Iterable[str]) -> list[Call]:
    """The list after the passes of these names."""
    enabled = set(names)
    result = list(calls)
    for name, rewrite in PASSES.items():
        if name in enabled:
            result = rewrite(result)
    return result
