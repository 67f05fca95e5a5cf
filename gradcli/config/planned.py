"""A layer of `model:` with its shapes, before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from gradcli.config.layer_names import spellings
from gradcli.config.schema import Schema
from gradcli.config.tensor_spec import TensorSpec
from gradcli.dataclass import dataclass
from gradcli.engine import nn
from gradcli.engine.nn.hooks import recompute
from gradcli.errors import Location


@dataclass(frozen=True)
class PlannedLayer:
    """A layer with its shapes, ready to be made.

    Attributes:
        index: where it stands, `3` or `3.1` inside a container.
        spelling: the kind as the config has it, which may be an old name of it.
        given_name: its `name:`, or empty.
        fields: every key with its value, defaults included.
        make: makes the module; `build` is what calls it.
        schema: of the keys.
        recompute: into how many parts it is cut that are computed again on the way back; 0 for a
            layer that keeps its intermediates.
    """

    index: str
    kind: str
    spelling: str
    given_name: str
    fields: dict[str, Any]
    input: TensorSpec
    output: TensorSpec
    parameters: int
    make: Callable[[], nn.Module]
    location: Location
    schema: Schema
    children: tuple[PlannedLayer, ...] = ()
    recompute: int = 0

    @property
    def title(self) -> str:
        """The layer's name in messages and tables: `linear 'head'`, `linear 128` or `gelu`."""
        kind = self.fields["of"] or self.spelling if self.kind == "block" else self.spelling
        if self.given_name:
            return f"{kind} '{self.given_name}'"
        schema = self.schema
        if schema.first is None or self.kind in ("residual", "block"):
            return kind
        value = self.fields.get(schema.first)
        explicit = value != schema.parameters[schema.first].default
        plain = isinstance(value, int | float | str)
        return f"{kind} {value}" if plain and explicit else kind

    def flat(self) -> list[PlannedLayer]:
        """This layer and all inside it."""
        return [self, *(deep for child in self.children for deep in child.flat())]

    def leaf(self, side: Literal[0, -1]) -> PlannedLayer:
        """The first layer that the input meets, or the last; a sum or join is itself."""
        return self.children[side].leaf(side) if self.kind in ("block", "repeat") else self


def chains(layers: Sequence[PlannedLayer]) -> Iterator[Sequence[PlannedLayer]]:
    """The layers that run one behind the other, here and inside each of them."""
    yield layers
    for layer in layers:
        shortcut = f"{layer.index}.shortcut"
        ways = layer.children if layer.kind == "parallel" else ()
        own = () if ways else [child for child in layer.children if child.index != shortcut]
        around = [child for child in layer.children if child.index == shortcut]
        for way in (own, *([child] for child in (*ways, *around))):
            if way:
                yield from chains(way)


def build(layer: PlannedLayer) -> nn.Module:
    """The module, labelled with what patterns call it: its kind, its name, its block's.

    `layer_title` is what `check` calls it, for messages.
    """
    module = layer.make()
    module.labels = (*spellings(layer.kind), layer.given_name, layer.fields.get("of"))
    module.layer_title = f"{layer.index} {layer.title}"
    if layer.recompute:
        recompute(module, layer.recompute)
    return module


def build_all(layers: Sequence[PlannedLayer]) -> nn.Sequential:
    """The modules of the layers, made in their order, one behind the other."""
    return nn.Sequential(*map(build, layers))


def written_layers(layers: Sequence[PlannedLayer]) -> list[Any]:
    """The layers as YAML would have them, with every field."""
    entries: list[Any] = []
    for layer in layers:
        fields = {key: _to_list(value) for key, value in layer.fields.items() if value is not None}
        if layer.given_name:
            fields["name"] = layer.given_name
        if layer.recompute:
            fields["recompute"] = True
        entries.append({layer.spelling: fields} if fields else layer.spelling)
    return entries


def _to_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
