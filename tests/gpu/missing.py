"""Kernels of the CPU that no GPU has yet, by the file of csrc/cpu that has them.

A launcher that is added takes its names from here, and an empty row goes.
"""

from __future__ import annotations

MISSING: dict[str, set[str]] = {}
# They measure what a CPU can reach at most, or prepare tables.
CPU_ONLY = {"fma_rate", "copy_rate"} | {"exact_sum", "digest_numbers", "read_numerals"}
