"""Tensors in other shapes and orders, repeated, joined, cut and padded."""
