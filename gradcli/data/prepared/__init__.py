"""Data prepared once: plain `.npy` arrays in a cache folder, mapped from then on.

Nothing is imported here: a start whose data is small and quick to read needs none of it.
"""
