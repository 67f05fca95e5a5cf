"""`$a.b`: a whole value that stands for another value of the config, or for a fact of the data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.config.node import ErrorReport, YamlNode
from gradcli.registry import did_you_mean

if TYPE_CHECKING:
    from gradcli.data import DataSpec

FACTS = ("classes", "vocab", "features")
MAX_STEPS = 16


def _kind(node: YamlNode) -> str:
    return "list" if isinstance(node.value, list) else "map"


def is_reference(node: YamlNode) -> bool:
    """Whether this value is written `$something`, unquoted."""
    return isinstance(node.value, str) and node.value.startswith("$") and not node.quoted


class References:
    """Replaces references in a tree; facts stay as they are until `facts` is known.

    Attributes:
        used: the paths that some reference named, so that unused `vars:` can be told.
    """

    def __init__(self, root: YamlNode, report: ErrorReport) -> None:
        self.root = root
        self.report = report
        self.names: set[str] = set()

    def resolve(self, node: YamlNode, trail: tuple[str, ...] = ()) -> YamlNode:
        """`node` with every reference below it replaced by what it names."""
        if is_reference(node):
            return self._target(node, trail)
        return node.with_items(lambda item: self.resolve(item, trail))

    def _target(self, node: YamlNode, trail: tuple[str, ...]) -> YamlNode:
        name = str(node.value)[1:]
        self.names.add(name)
        if name in trail:
            chain = " -> ".join(f"${step}" for step in (*trail, name))
            return self._wrong(node, f"references go in a circle: {chain}")
        if len(trail) >= MAX_STEPS:
            return self._wrong(node, f"'${trail[0]}' leads over more than {MAX_STEPS} references")
        target, rest = self._find(name)
        if rest is not None:
            if name.partition(".")[0] == "data" and rest in FACTS:
                return node
            names = [*target.map(), *(FACTS if name.startswith("data.") else ())]
            return self._wrong(
                node,
                f"reference '${name}' names nothing in the config",
                did_you_mean(rest, names),
            )
        if isinstance(target.value, list | dict):
            # A list of references to lists of references would grow without bound.
            return self._wrong(
                node, f"reference '${name}' names a {_kind(target)}; only single values are shared"
            )
        value = self.resolve(target, (*trail, name))
        return replace(value, location=node.location)

    def _find(self, name: str) -> tuple[YamlNode, str | None]:
        """The deepest value on the way to `name`, and the first step that does not exist."""
        node = self.root
        for step in name.split("."):
            if step not in node.map():
                return node, step
            node = node.map()[step]
        return node, None

    def _wrong(self, node: YamlNode, message: str, caret: str = "") -> YamlNode:
        self.report.error("E107", message, node.location, caret=caret)
        return replace(node, value=None, broken=True)


def fill_facts(node: YamlNode, facts: DataSpec | None, report: ErrorReport) -> YamlNode:
    """`node` with `$data.classes`, `$data.vocab` and `$data.features` replaced by numbers.

    Where the data could not be read (`facts` is None) they become broken: that was reported.
    """
    if not is_reference(node):
        return node.with_items(lambda item: fill_facts(item, facts, report))
    if facts is None:
        return replace(node, value=None, broken=True)
    name = str(node.value).removeprefix("$data.")
    value = {
        "classes": facts.classes,
        "vocab": facts.vocab,
        "features": math.prod(facts.input),
    }[name]
    if value is None:
        caret = "its targets are values; classes are whole numbers or names" * (name == "classes")
        message = f"this data has no '{name}', so {node.value} has no value"
        report.error("E107", message, node.location, caret=caret)
        return replace(node, value=None, broken=True)
    return replace(node, value=value)
