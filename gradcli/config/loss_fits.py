"""The loss beside the data and the model's end: kinds of targets, numbers of outputs, weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradcli.config import number_labels
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.config.planned import PlannedLayer
from gradcli.config.sections import NamedSection
from gradcli.config.tensor_spec import TensorSpec
from gradcli.errors import ShapeError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data import DataSpec

_OWN_ACTIVATION = {"cross_entropy": "softmax", "bce_with_logits": "sigmoid"}
_PROBABILITIES = ("softmax", "sigmoid")


def target_kind(facts: DataSpec) -> str:
    """Whether the targets are "labels" or "values"."""
    return "labels" if classes_of(facts) is not None else "values"


def classes_of(facts: DataSpec) -> int | None:
    """How many there are, a token of a text being one; None where targets are values."""
    if facts.classes is None and facts.target and facts.input_kind == "index":
        return facts.vocab  # the next token of a text
    return facts.classes


def output_fits(
    root: YamlNode,
    loss: NamedSection,
    facts: DataSpec,
    layers: Sequence[PlannedLayer],
    output: TensorSpec,
    report: ErrorReport,
) -> None:
    """The model must end in one number a class and label, a binary label, or a value."""
    last = layers[-1]
    problem, cure = _wrong_kind(loss, facts) or _wrong_weights(loss, facts) or ("", "")
    if problem:
        if number_labels.may_be_values(root, facts):
            cure += f"; {number_labels.CURE}"
        report.error("E109", problem, root.map()["loss"].location, caret=cure)
        return
    kind, binary = target_kind(facts), loss.instance.binary
    if kind == "values":
        shape, fits = facts.target, math.prod(output.shape) == math.prod(facts.target)
    else:
        shape = (*facts.target, 1 if binary else classes_of(facts) or 0)
        fits = output.shape == shape
    if fits:
        _attempt(root, loss, facts, output, report)
        return
    what = "target values" if kind == "values" else "classes"
    count = shape[-1] if shape else 1
    has = f"the data has {count} {what}, so it must give {TensorSpec(shape)}"
    notes: tuple[str, ...] = ()
    if kind == "labels" and binary:
        has = f"'{loss.name}' takes one for the second of two classes, {TensorSpec(shape)}"
    elif kind == "labels" and len(output.shape) == len(shape):
        notes = ("write $data.classes instead of a number",)
    if len(output.shape) > len(shape):
        notes = (f"put flatten before the linear layers{_or_last_step(layers)}",)
    report.errors.append(
        ShapeError(
            f"layer {last.index}, {last.title}, the last one, gives "
            f"{quantity(str(output), 'value')} a sample; {has}",
            location=last.location,
            notes=notes,
        )
    )


def _or_last_step(layers: Sequence[PlannedLayer]) -> str:
    """The other way out behind a layer that gives each step and can give its last one alone."""
    leaves = (leaf for layer in layers for leaf in layer.flat())
    steps = [leaf for leaf in leaves if leaf.fields.get("last") is False]
    return f", or write last: true in layer {steps[-1].index}, {steps[-1].title}" if steps else ""


def _attempt(
    root: YamlNode, loss: NamedSection, facts: DataSpec, output: TensorSpec, report: ErrorReport
) -> None:
    """Try a loss of the user's own on such outputs."""
    if loss.instance.attempt is None:
        return
    try:
        warning = loss.instance.attempt(output.shape, facts)
        if warning:
            location = root.map()["loss"].location
            report.warn(
                "W108", f"loss '{loss.name}': {warning}", location, caret="end it in mean()"
            )
    except ShapeError as error:
        error.location = error.location or root.map()["loss"].location
        report.errors.append(error)


def _wrong_kind(loss: NamedSection, facts: DataSpec) -> tuple[str, str] | None:
    """A loss for other targets than the data has, and the cure."""
    kind, classes = target_kind(facts), classes_of(facts)
    if kind not in loss.instance.targets:
        has = f" ({quantity(classes or 0, 'class')})" if kind == "labels" else ""
        cure = "use cross_entropy" if kind == "labels" else "use mse"
        if loss.instance.attempt is not None:
            cure = f'if it takes them, write targets = "{kind}" in its class'
        return (
            f"loss '{loss.name}' is for {loss.instance.targets[0]}, this data has {kind} as targets"
            + has,
            cure,
        )
    if kind == "labels" and loss.instance.binary and classes != 2:
        return (
            f"loss '{loss.name}' is for two classes, this data has {classes}",
            "use cross_entropy",
        )
    if facts.mixed and not loss.instance.mixed:
        return (
            f"loss '{loss.name}' takes one class a sample, and mixup gives probabilities of two",
            "use cross_entropy",
        )
    return None


def _wrong_weights(loss: NamedSection, facts: DataSpec) -> tuple[str, str] | None:
    """Other weights than one for each class or value, and the cure."""
    kind, count = target_kind(facts), loss.instance.weights
    if kind == "values":
        expected, what = (facts.target[-1] if facts.target else 1), "target values"
    elif loss.instance.binary:
        expected, what = 1, "output"
    else:
        expected, what = classes_of(facts) or 0, "classes"
    if count is None or count == expected:
        return None
    return (
        f"loss '{loss.name}' has {quantity(count, 'weight')} for {expected} {what}",
        f"give {expected}",
    )


def end_lint(root: YamlNode, loss: NamedSection, last: PlannedLayer, report: ErrorReport) -> None:
    """A last layer that is allowed before this loss, and probably not meant."""
    twice = _OWN_ACTIVATION.get(loss.name)
    if twice and last.kind in _PROBABILITIES:
        report.warn(
            "W101",
            f"{loss.name} takes the {twice} itself; layer {last.index}, "
            f"{last.spelling}, makes it a {twice} of a {last.spelling}",
            last.location,
            caret="leave it out",
        )
    if loss.name == "bce" and last.kind == "linear":
        report.warn(
            "W101",
            f"bce takes probabilities; layer {last.index}, {last.title}, gives any number",
            root.map()["loss"].location,
            caret="use bce_with_logits",
        )
    if loss.name in ("nll", "kl") and last.kind in _PROBABILITIES:
        report.warn(
            "W101",
            f"{loss.name} takes logarithms of probabilities; layer {last.index}, "
            f"{last.spelling}, gives probabilities",
            last.location,
        )
