"""Ops of single elements: arithmetic, functions of a number, activations, comparisons."""
