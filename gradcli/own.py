"""Marks for what a user's own Python file adds to configs; see docs/own-code.md."""

from __future__ import annotations

from typing import TypeVar

C = TypeVar("C", bound=type)
MARK = "__gradcli_kind__"
MODULE = "gradcli_own_"  # what the names of modules with own code begin with


def layer(cls: C) -> C:
    """This nn.Module is a layer: `GatedLinear` is called `gated_linear` in YAML.

    The first parameter of its constructor is the shape of one sample, without the batch; the
    others are its keys, with their types and defaults.
    """
    setattr(cls, MARK, "layer")
    return cls


def dataset(cls: C) -> C:
    """This class is a dataset: its annotated fields are the keys of `data:`.

    Its method `splits()` gives (inputs, targets) by the name of the split: "train", "val", "test".
    """
    setattr(cls, MARK, "dataset")
    return cls


def loss(cls: C) -> C:
    """This nn.Module is a loss: `FocalLoss` is called `focal_loss` in YAML.

    The parameters of its constructor are its keys; `forward(outputs, targets)` gives the mean loss
    of a batch. Its attribute `targets` says what it is for: "labels", as where it has none, or
    "values".
    """
    setattr(cls, MARK, "loss")
    return cls


def metric(cls: C) -> C:
    """This class is a metric: `OffByOne` is called `off_by_one` in YAML; annotated fields are keys.

    Its methods are `state(outputs, targets)` of a batch, `merge(states)` of several in order, and
    `finish(state)`, the figure; its attribute `direction` is "higher", "lower" or "neither".
    `targets` says what it is for: "labels", as where it has none, or "values".
    """
    setattr(cls, MARK, "metric")
    return cls
