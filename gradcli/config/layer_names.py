"""Old names of layers in configs and runs of earlier versions: `maxpool` for `max_pool`."""

from __future__ import annotations

from collections.abc import Iterable

OLD_NAMES = {
    "conv1d_transpose": "conv_transpose1d",
    "maxpool": "max_pool",
    "avgpool": "avg_pool",
    "maxpool1d": "max_pool1d",
    "avgpool1d": "avg_pool1d",
    "adaptiveavgpool": "adaptive_avg_pool",
    "adaptivemaxpool": "adaptive_max_pool",
    "adaptiveavgpool1d": "adaptive_avg_pool1d",
    "adaptivemaxpool1d": "adaptive_max_pool1d",
    "pixelshuffle": "pixel_shuffle",
    "pixelunshuffle": "pixel_unshuffle",
    "batchnorm": "batch_norm",
    "layernorm": "layer_norm",
    "groupnorm": "group_norm",
    "instancenorm": "instance_norm",
    "rmsnorm": "rms_norm",
    "leakyrelu": "leaky_relu",
    "logsoftmax": "log_softmax",
}
_OLD = {new: old for old, new in OLD_NAMES.items()}


def reserved(layers: Iterable[str]) -> set[str]:
    """The names that blocks and own layers may not take.

    Earlier versions let them have the names that are new here, so they may keep these.
    """
    return {_OLD.get(name, name) for name in layers}


def spellings(kind: str) -> tuple[str, ...]:
    """A layer's name and its old name, where it has one."""
    return (kind, _OLD[kind]) if kind in _OLD else (kind,)
