"""Write plain values as YAML that every reader reads alike: doubtful strings are quoted."""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_/-]*")
WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})


class _Dumper(yaml.SafeDumper):
    """Quotes strings that some YAML version reads as a number, a bool or null; no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    plain = PLAIN.fullmatch(value) is not None and value.lower() not in WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


def _list(dumper: _Dumper, value: tuple[object, ...]) -> yaml.SequenceNode:
    return dumper.represent_list(list(value))


_Dumper.add_representer(str, _text)
_Dumper.add_representer(tuple, _list)


def to_yaml(values: Mapping[str, object]) -> str:
    """`values` as YAML in their own order."""
    return yaml.dump(
        dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000
    )


def inline(value: object) -> str:
    """A value as YAML on one line, to follow `key: `."""
    text: str = yaml.dump(
        [value],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=float("inf"),
        default_flow_style=True,
    )
    return text.rstrip("\n").removeprefix("[").removesuffix("]")
