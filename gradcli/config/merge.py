"""Laying configs over each other: `extends:` files below, `-s` overrides above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradcli.config.node import ErrorReport, YamlNode, describe
from gradcli.config.reader import MAX_DEPTH, read_file, read_value, read_yaml, way_on
from gradcli.errors import ConfigError, Location
from gradcli.registry import did_you_mean

NAMED_SECTIONS = ("data", "loss", "optim", "schedule")
MAX_FILES = 64
MAX_OVERRIDES = 1000


class Reading:
    """The files that one config is made of, in the order of reading."""

    def __init__(self, report: ErrorReport) -> None:
        self.report = report
        self.sources: list[tuple[Path, str]] = []

    def file(
        self, path: Path, trail: tuple[Path, ...] = (), location: Location | None = None
    ) -> YamlNode:
        """The config in `path` with everything it extends merged under it."""
        try:
            text = read_file(path)
        except ConfigError as error:
            error.location = error.location or location
            raise
        identity = path.resolve()
        if identity in trail:
            chain = " -> ".join(step.name for step in (*trail[trail.index(identity) :], identity))
            raise ConfigError(f"extends goes in a circle: {chain}", code="E109", location=location)
        if len(self.sources) >= MAX_FILES:
            raise ConfigError(f"a config extends at most {MAX_FILES} files", location=location)
        self.sources.append((path, text))
        root = read_yaml(text, str(path), self.report)
        if root.value is None:
            raise ConfigError(
                f"{path} is empty; a config is a map of sections",
                notes=("begin with a copy of configs/mnist.yaml",),
            )
        if not isinstance(root.value, dict):
            raise ConfigError(
                f"a config is a map of sections, this is {describe(root)}",
                code="E104",
                location=root.location,
                notes=way_on(path),
            )
        return self._under(root, path, (*trail, identity))

    def _under(self, root: YamlNode, path: Path, trail: tuple[Path, ...]) -> YamlNode:
        """`root` laid over the files that its `extends` names."""
        extends = root.map().get("extends")
        own = without(root, "extends")
        if extends is None:
            return own
        names = extends.list() if isinstance(extends.value, list) else [extends]
        below: YamlNode | None = None
        for name in names:
            if not isinstance(name.value, str) or not name.value:
                self.report.error(
                    "E104",
                    f"extends must be a file name or a list of them, got {describe(name)}",
                    name.location,
                )
                continue
            layer = self.file(path.parent / name.value, trail, name.location)
            below = layer if below is None else merge(below, layer, self.report)
        return own if below is None else merge(below, own, self.report)


def without(node: YamlNode, key: str) -> YamlNode:
    """The map without one key."""
    return replace(node, value={name: item for name, item in node.map().items() if name != key})


def full(node: YamlNode) -> YamlNode:
    """A section that is a bare name, as a map: adamw -> {name: adamw}."""
    if not isinstance(node.value, str):
        return node
    return replace(node, value={"name": replace(node)}, keys={"name": node.location})


def merge(
    below: YamlNode, above: YamlNode, report: ErrorReport, path: tuple[str, ...] = ()
) -> YamlNode:
    """`above` over `below`: maps merge, lists and scalars replace, null takes the entry away."""
    if len(path) == 1 and path[0] in NAMED_SECTIONS:
        below, above = full(below), full(above)
        if _renamed(below, above):
            return above
    if path == ("model",) and isinstance(below.value, list) and isinstance(above.value, dict):
        return _edit_layers(below, above, report)
    if not (isinstance(below.value, dict) and isinstance(above.value, dict)):
        return above
    items, keys = dict(below.value), {**below.keys, **above.keys}
    for key, item in above.value.items():
        if item.value is None and not item.broken and key in items:
            del items[key]
        elif key in items:
            items[key] = merge(items[key], item, report, (*path, key))
        else:
            items[key] = item
    return YamlNode(items, above.location, keys, broken=below.broken or above.broken)


def _renamed(below: YamlNode, above: YamlNode) -> bool:
    old, new = below.map().get("name"), above.map().get("name")
    return new is not None and (old is None or old.value != new.value)


def _edit_layers(model: YamlNode, changes: YamlNode, report: ErrorReport) -> YamlNode:
    """Change the fields of the layers that `changes` names."""
    pending = dict(changes.map())

    def edit(layer: YamlNode) -> YamlNode:
        layer = layer.with_items(edit)
        name = layer.map().get("name")
        if name is not None and isinstance(name.value, str) and name.value in pending:
            return _merge_fields(layer, pending.pop(name.value), report)
        return layer

    edited = edit(model)
    names = layer_names(model)
    for name in pending:
        report.error(
            "E103",
            f"no layer of the model is named '{name}'",
            changes.keys[name],
            caret=did_you_mean(name, names),
            notes=(f"named layers: {', '.join(names) or 'none; give a layer name: to reach it'}",),
        )
    return edited


def _merge_fields(fields: YamlNode, change: YamlNode, report: ErrorReport) -> YamlNode:
    if not isinstance(change.value, dict):
        report.error("E104", f"a layer's fields are a map, got {describe(change)}", change.location)
        return fields
    return merge(fields, change, report)


def layer_names(model: YamlNode) -> list[str]:
    """The names given to layers with `name:`."""
    names = [
        item.value
        for path, item in model.walk()
        if path and path[-1] == "name" and isinstance(item.value, str)
    ]
    return sorted(set(names))


def override(root: YamlNode, texts: Sequence[str], report: ErrorReport) -> YamlNode:
    """Apply the `-s KEY=VALUE` of the command line to `root`."""
    if len(texts) > MAX_OVERRIDES:
        count = f"{MAX_OVERRIDES} overrides, got {len(texts)}"
        raise ConfigError(f"a command has at most {count}; write them into a file")
    earlier: dict[str, str] = {}
    for text in texts:
        short = text if len(text) <= 200 else text[:197] + "..."
        location = Location(f"-s {short}")
        key, equals, value = text.partition("=")
        # The figures in `expect:` have a dot in their names.
        depth = 1 if key.strip().startswith("expect.") else -1
        steps = [step.strip() for step in key.split(".", depth)]
        if not equals or not all(steps):
            report.error("E108", f"an override is KEY=VALUE, got {short!r}", location)
            continue
        if len(steps) > MAX_DEPTH:
            report.error("E108", f"an override reaches at most {MAX_DEPTH} levels down", location)
            continue
        if steps[0] == "extends":
            report.error("E108", "extends stands in a file, it cannot be overridden", location)
            continue
        if not value.strip():
            notes = (f"null takes a value away: -s {key}=null",)
            report.error("E108", f"'{key}' is given no value", location, notes=notes)
            continue
        if key in earlier:
            report.error(
                "E108", f"'{key}' is overridden twice: {earlier[key]!r} and {text!r}", location
            )
            continue
        earlier[key] = text
        root = _laid(root, steps, read_value(value, location, report), location, report)
    return root


def _laid(
    root: YamlNode, steps: list[str], value: YamlNode, location: Location, report: ErrorReport
) -> YamlNode:
    for depth, step in reversed(list(enumerate(steps))):
        if depth == 0 and step in NAMED_SECTIONS:
            value = full(value)
        value = YamlNode({step: value}, location, {step: location})
    return merge(root, value, report)
