"""Measuring: this machine's ceilings, kernels, and the training step of a config."""
