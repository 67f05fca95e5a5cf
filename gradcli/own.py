"""Marks for what a user's own Python file adds to configs; see docs/own-code.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

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


class Stream:
    """A split whose samples are made one after another: `splits()` gives it in place of tensors.

    `samples()` is called where they are needed, which is once: they are kept in prepared data. It
    gives `length` pairs (input, target) of one shape and type each.
    """

    def __init__(self, length: int, samples: Callable[[], Iterable[Any]]) -> None:
        self._length, self._samples = length, samples

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return iter(self._samples())
