"""Where each value of a config comes from, told by the places of what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.config.node import YamlNode
from gradcli.train.value_origins import Kind, ValueOrigin

if TYPE_CHECKING:
    from gradcli.config.load import Config

COMMAND = "-s "  # in front of an override's place


def origins_of(config: Config) -> dict[str, ValueOrigin]:
    """The origin of each single value of the resolved config, by its path: `model.1.linear.out`.

    A value that stands for another (`$vars.width`) comes from where it stands.
    """
    file = str(config.sources[0][0])
    return {
        ".".join(path): _origin(value, node, file)
        for path, value, node in _leaves(config.resolved, config.tree, ())
    }


def _origin(value: Any, node: YamlNode | None, file: str) -> ValueOrigin:
    if node is None:
        return ValueOrigin(value)
    location = node.location
    if location.file.startswith(COMMAND):
        return ValueOrigin(value, "override", location.file)
    kind: Kind = "file" if location.file == file else "extends"
    return ValueOrigin(value, kind, f"{location.file}:{location.line}")


Leaf = tuple[tuple[str, ...], Any, YamlNode | None]


def _leaves(value: Any, node: YamlNode | None, path: tuple[str, ...]) -> Iterator[Leaf]:
    """Each single value, with its path and the node that gave it; None where nobody wrote it."""
    inner: list[tuple[str, Any, YamlNode | None]] = []
    if isinstance(value, dict):
        below = _entries(value, node)
        inner = [(key, item, below.get(key)) for key, item in value.items()]
    elif isinstance(value, list):
        items = node.list() if node is not None else []
        alike = len(items) == len(value)  # else one value stands for all of them
        inner = [(str(i), item, items[i] if alike else node) for i, item in enumerate(value)]
    if not inner:
        yield path, value, node
    for key, item, part in inner:
        yield from _leaves(item, part, (*path, key))


def _entries(value: Mapping[str, Any], node: YamlNode | None) -> Mapping[str, YamlNode]:
    """The nodes of a map's entries; one that stands alone gives the entry that it is short for."""
    if node is None or isinstance(node.value, dict):
        return node.map() if node is not None else {}
    plain = node.plain()
    if list(value) == [plain]:  # a layer by its bare name
        return {}
    same = [key for key, item in value.items() if item == plain]
    lists = [key for key, item in value.items() if isinstance(item, list)]
    whole = lists if isinstance(node.value, list) else list(value)
    return dict.fromkeys([*same, *whole][:1], node)
