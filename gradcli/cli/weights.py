"""Which weights of a run a command uses, in words."""

from __future__ import annotations

from gradcli.config.trained import TrainedRun
from gradcli.train.directory import best_and_last


def weights(run: TrainedRun) -> str:
    """`step 3440 (best)`, `step 4300 (best and last)`, or `step 12`."""
    step = run.meta.step
    pointers = dict(zip(("best", "last"), best_and_last(run.path), strict=True))
    names = " and ".join(name for name, of in pointers.items() if of == step)
    return f"step {step} ({names})" if names else f"step {step}"
