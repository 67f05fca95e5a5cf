"""gradcli: train neural networks from YAML, over a small deep-learning engine of its own."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradcli.own import Stream, dataset, layer, loss, metric

if TYPE_CHECKING:
    from gradcli.config.trained_model import TrainedModel, load
    from gradcli.train.tensor_files import load_tensors, save_tensors

__version__ = "0.1.0"
__all__ = [
    "Stream",
    "TrainedModel",
    "dataset",
    "layer",
    "load",
    "load_tensors",
    "loss",
    "metric",
    "save_tensors",
]
# What needs the engine, which the command line loads late, and where it lies.
_LATE = {
    "TrainedModel": "gradcli.config.trained_model",
    "load": "gradcli.config.trained_model",
    "load_tensors": "gradcli.train.tensor_files",
    "save_tensors": "gradcli.train.tensor_files",
}


def __getattr__(name: str) -> Any:
    """A name that is looked up when it is first asked for."""
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'gradcli' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
