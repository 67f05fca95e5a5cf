"""gradcli against its peers: the same training steps, interleaved, as ratios.

A tool for developers, run from the project's folder: `python -m benchmarks --help`.
"""
