"""How much memory a training holds."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, Any

from gradcli.engine.device import cpu

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gradcli.engine import Tensor
    from gradcli.engine.device.gpu.device import GPU
    from gradcli.train.job import Job


def measure(job: Job, gpu: GPU | None = None) -> dict[str, Any]:
    """Bytes of the parameters, the optimizer's state, all arrays, and the process at its peak."""
    return {
        **({} if gpu is None else {"on_gpu": gpu.allocated()}),
        "parameters": _bytes(job.model.parameters()),
        "buffers": _bytes(job.model.buffers()),
        "optimizer": _bytes(job.optimizer.state_tensors().values()),
        "arrays": cpu.allocated(),
        "peak_resident": _peak_resident(),
    }


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.dtype.size for tensor in tensors)


def _peak_resident() -> int:
    """Of the whole process, Python and data set included; the unit differs by system."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
