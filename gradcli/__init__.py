"""gradcli: train neural networks from YAML, over a small deep-learning engine of its own."""

from typing import TYPE_CHECKING, Any

from gradcli.own import dataset, layer, loss

if TYPE_CHECKING:
    from gradcli.train.tensor_files import load_tensors, save_tensors

__version__ = "0.1.0"
__all__ = ["dataset", "layer", "load_tensors", "loss", "save_tensors"]


def __getattr__(name: str) -> Any:
    """What needs the engine, which the command line loads late."""
    if name in ("load_tensors", "save_tensors"):
        from gradcli.train import tensor_files

        return getattr(tensor_files, name)
    raise AttributeError(f"module 'gradcli' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
