"""Training: loop, metrics, checkpoints, run directories, signals; knows no YAML, never prints."""
