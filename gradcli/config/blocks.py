"""`blocks:`: named lists of layers with parameters, put in place of each use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from gradcli.config.fields import Layers
from gradcli.config.merge import without
from gradcli.config.node import MAX_VALUES, ErrorReport, YamlNode, describe
from gradcli.config.references import is_reference
from gradcli.config.schema import check, schema_of, suggestion
from gradcli.dataclass import dataclass
from gradcli.errors import ConfigError

REQUIRED = "required"


def form(
    layers: Layers,
    params: dict[str, Any] = {},  # noqa: B006
    recompute: bool = False,
) -> None:
    """Layers under a name; `$p` in them is the value that a use gives to the parameter `p`.

    With `recompute`, each use is computed again on the way back, unless it says otherwise.
    """


@dataclass(frozen=True)
class _BlockSpec:
    layers: YamlNode
    params: Mapping[str, YamlNode]
    recompute: YamlNode | None
    size: int  # values in its layers


def expand(root: YamlNode, layers: Collection[str], report: ErrorReport) -> YamlNode:
    """Remove `blocks:` from `root` and replace each use in `model:` by the block's layers."""
    node = root.map().get("blocks")
    if node is None:
        return root
    blocks = _read_blocks(node, layers, report)
    root = without(root, "blocks")
    if "model" not in root.map():
        return root
    model = _Expansion(blocks, report).inside(root.map()["model"], ())
    return replace(root, value={**root.map(), "model": model})


def _read_blocks(
    node: YamlNode, layers: Collection[str], report: ErrorReport
) -> dict[str, _BlockSpec]:
    """Read the valid blocks; report the others."""
    if not isinstance(node.value, dict) and not node.broken:
        report.error(
            "E104",
            f"blocks must be a map from names to blocks, got {describe(node)}",
            node.location,
        )
    blocks = {}
    for name, body in node.map().items():
        if name in layers:
            report.error("E106", f"block '{name}' has the name of a layer", node.keys[name])
        elif not body.broken and check(body, schema_of(form), f"blocks.{name}.", report):
            keys = body.map()
            params = keys["params"].map() if "params" in keys else {}
            size = sum(1 for _ in keys["layers"].walk())
            blocks[name] = _BlockSpec(keys["layers"], params, keys.get("recompute"), size)
    return blocks


@dataclass
class _Expansion:
    """Counts what it puts in, so that blocks of blocks of blocks come to an end."""

    blocks: Mapping[str, _BlockSpec]
    report: ErrorReport
    values: int = 0

    def inside(self, node: YamlNode, trail: tuple[str, ...]) -> YamlNode:
        """`node` with every use of a block in one of its lists replaced."""
        of_list = isinstance(node.value, list)
        return node.with_items(lambda item: (self._item if of_list else self.inside)(item, trail))

    def _item(self, item: YamlNode, trail: tuple[str, ...]) -> YamlNode:
        use = _use(item)
        if use is None or use[0] not in self.blocks:
            return self.inside(item, trail)
        name, arguments = use
        if name in trail:
            chain = " -> ".join((*trail[trail.index(name) :], name))
            raise ConfigError(
                f"blocks go in a circle: {chain}", code="E109", location=item.location
            )
        block = self.blocks[name]
        self.values += block.size
        if self.values > MAX_VALUES:
            message = f"the uses of blocks put in more than {MAX_VALUES} values"
            raise ConfigError(message, location=item.location)
        if not isinstance(arguments.value, dict) and block.params:
            first = next(iter(block.params))  # name: value, as for a layer
            arguments = YamlNode(
                {first: arguments}, arguments.location, {first: arguments.location}
            )
        values = self._values(name, block, arguments)
        layers = self.inside(_fill(block.layers, values), (*trail, name))
        fields = {"of": YamlNode(name, item.location), "layers": layers}
        if block.recompute:
            fields["recompute"] = block.recompute
        fields |= {key: arguments.map()[key] for key in _shared(block) if key in arguments.map()}
        location = item.keys.get(name, item.location)
        return YamlNode({"block": YamlNode(fields, location)}, location, {"block": location})

    def _values(self, name: str, block: _BlockSpec, arguments: YamlNode) -> dict[str, YamlNode]:
        """The value of each parameter: from the use, or the default."""
        shared = _shared(block)
        explicit = {key: item for key, item in arguments.map().items() if key not in shared}
        for key in explicit.keys() - block.params.keys():
            self.report.error(
                "E103",
                f"block '{name}' has no parameter '{key}'",
                arguments.keys.get(key, arguments.location),
                caret=suggestion(key, block.params),
                notes=(f"parameters: {', '.join(block.params) or 'none'}",),
            )
        values = {**block.params, **explicit}
        for key, value in values.items():
            if value.value == REQUIRED and not value.quoted and key not in explicit:
                message = f"block '{name}' needs a value for its parameter '{key}'"
                self.report.error("E104", message, arguments.location)
                values[key] = replace(value, value=None, broken=True)
        return values


def _shared(block: _BlockSpec) -> list[str]:
    """The keys of a use that are not its block's parameters."""
    return ["name", *(["recompute"] if "recompute" not in block.params else [])]


def _use(item: YamlNode) -> tuple[str, YamlNode] | None:
    """Name and values of `name`, `name: value` or `name: {parameters}`."""
    if isinstance(item.value, str):
        return item.value, YamlNode({}, item.location)
    if len(item.map()) != 1:
        return None
    [(name, value)] = item.map().items()
    return name, value


def _fill(node: YamlNode, values: Mapping[str, YamlNode]) -> YamlNode:
    """`node` with `$p` replaced by the value of the parameter p."""
    if is_reference(node):
        return values.get(str(node.value)[1:], node)
    return node.with_items(lambda item: _fill(item, values))
