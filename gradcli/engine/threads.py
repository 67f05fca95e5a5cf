"""How many threads the kernels use, by torch's names."""

from __future__ import annotations

from gradcli.engine.argument import check_arguments
from gradcli.engine.device import cpu
from gradcli.engine.kind import Count


@check_arguments
def set_num_threads(threads: Count) -> None:
    """Use so many threads, or as many of them as the machine grants; the results are the same."""
    cpu.set_threads(threads)


def get_num_threads() -> int:
    """How many threads the kernels use: at first one for each core that this process may use."""
    return cpu.threads()
