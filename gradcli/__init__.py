"""gradcli: train neural networks from YAML, over a small deep-learning engine of its own."""

from gradcli.own import dataset, layer

__version__ = "0.1.0"
__all__ = ["dataset", "layer"]
