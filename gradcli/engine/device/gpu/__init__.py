"""GPUs: calls as launches (launch.py, launches/), kernels as text (source.py), and the drivers."""
