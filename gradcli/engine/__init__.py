"""The engine: tensors, autograd, layers and optimizers. Reads like torch; knows no files, no YAML.

Every op in the table is an attribute here: `engine.matmul(a, b)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradcli import deprecated
from gradcli.engine import autograd, nn, ops, optim, table
from gradcli.engine.autocast import autocast
from gradcli.engine.autograd import (
    detect_anomaly,
    enable_grad,
    grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from gradcli.engine.device.context import device
from gradcli.engine.draw import draw
from gradcli.engine.dtype import DType, bfloat16, bool_, float32, float64, int32, int64, uint8
from gradcli.engine.fused import decomposed
from gradcli.engine.interop import from_dlpack, from_numpy
from gradcli.engine.ops.creation.creation import empty, frombuffer, full, ones, tensor, zeros
from gradcli.engine.ops.creation.ranges import linspace
from gradcli.engine.precision import get_float32_matmul_precision, set_float32_matmul_precision
from gradcli.engine.program import Captured, capture
from gradcli.engine.random import Generator, default_generator, manual_seed
from gradcli.engine.recompute import checkpoint, checkpoint_sequential
from gradcli.engine.table import *  # noqa: F403 -- the ops, as its __all__ has them
from gradcli.engine.tensor import Tensor
from gradcli.engine.threads import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from gradcli.engine import distributed as distributed
else:

    def __getattr__(name: str) -> Any:
        """Old names, and ranks, which are imported on first use: most processes are alone."""
        if name != "distributed":
            return deprecated.lookup(__name__, {"composed": "decomposed"}, name)
        return import_module(f"{__name__}.{name}")


# torch's short names
float, double, int, long, bool = float32, float64, int32, int64, bool_

__all__ = [
    "Captured",
    "DType",
    "Generator",
    "Tensor",
    "autocast",
    "autograd",
    "bfloat16",
    "bool",
    "bool_",
    "capture",
    "checkpoint",
    "checkpoint_sequential",
    "decomposed",
    "default_generator",
    "detect_anomaly",
    "device",
    "distributed",
    "double",
    "draw",
    "empty",
    "enable_grad",
    "float",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "get_float32_matmul_precision",
    "get_num_threads",
    "grad",
    "inference_mode",
    "int",
    "int32",
    "int64",
    "is_grad_enabled",
    "linspace",
    "long",
    "manual_seed",
    "nn",
    "no_grad",
    "ones",
    "ops",
    "optim",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_num_threads",
    "tensor",
    "uint8",
    "zeros",
]
__all__ += table.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
