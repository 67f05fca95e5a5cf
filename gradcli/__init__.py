"""gradcli: train neural networks from YAML, over a small deep-learning engine of its own."""

__version__ = "0.1.0"
