"""Kernelcheck: single calls of kernels on a device, against the CPU in float64."""
