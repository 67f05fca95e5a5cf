"""Devices: allocate memory, run calls. This version has one, the CPU."""
