"""Tensors from numbers and shapes; in another type, on another device, as text."""
