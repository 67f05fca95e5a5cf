"""The declared ops, by family. Importing this package fills the table of ops."""

from gradcli.engine.ops import creation, display, elementwise, movement

__all__ = ["creation", "display", "elementwise", "movement"]
