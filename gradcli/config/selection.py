"""Patterns that name parameters: of which layer, called what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

from gradcli.config.fields import NOT_EMPTY
from gradcli.engine.kind import Bound
from gradcli.engine.nn.lora import LoRALinear
from gradcli.errors import ConfigError
from gradcli.registry import did_you_mean

if TYPE_CHECKING:
    from gradcli.engine import nn

Patterns = Annotated[list[str], Bound("a list of patterns such as bias, head or conv.weight")]
Some = Annotated[list[str], NOT_EMPTY, Bound("a list of patterns such as bias or head")]
Path = tuple[frozenset[str], ...]
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def paths(model: nn.Module, names: Iterable[str]) -> dict[str, Path]:
    """For each parameter or buffer in names: what each step on the way to it is called.

    A step into a layer has the layer's kind and its `name:` beside its number; whatever is called
    something with "norm" is also called norm.
    """
    return {name: _path(model, name) for name in names}


def _path(model: nn.Module, name: str) -> Path:
    *steps, last = name.split(".")
    path = []
    module = model
    for step in steps:
        module = getattr(module, step)
        labels = getattr(module, "labels", ())
        kind = "linear" if isinstance(module, LoRALinear) else type(module).__name__.lower()
        words = {step, kind, *(word for word in labels if word)}
        path.append(
            frozenset(words | ({"norm"} if any("norm" in word for word in words) else set()))
        )
    return (*path, frozenset({last}))


def matches(pattern: str, path: Path) -> bool:
    """Whether the pattern's pieces, between dots, name steps of the path that follow each other.

    A piece such as 0-8 names the steps with these numbers, both ends included.
    """
    pieces = pattern.split(".")
    return any(
        all(
            any(_names(piece, word) for word in words)
            for piece, words in zip(pieces, path[begin:], strict=False)
        )
        for begin in range(len(path) - len(pieces) + 1)
    )


def _names(piece: str, word: str) -> bool:
    ends = _RANGE.fullmatch(piece)
    if ends and word.isdecimal():
        return int(ends[1]) <= int(word) <= int(ends[2])
    return fnmatchcase(word, piece)


def select(model: nn.Module, patterns: Sequence[str], where: str) -> set[str]:
    """The names of the parameters that one of the patterns matches; each must match some."""
    return among(paths(model, dict(model.named_parameters())), patterns, where)


def select_state(model: nn.Module, patterns: Sequence[str], where: str) -> set[str]:
    """Select parameters and buffers; without patterns, all of them."""
    names = paths(model, model.state_dict())
    return among(names, patterns, where) if patterns else set(names)


def among(
    candidates: Mapping[str, Path], patterns: Sequence[str], where: str, what: str = "parameter"
) -> set[str]:
    """The names that match a pattern; each pattern must match at least one `what`."""
    names: set[str] = set()
    for pattern in patterns:
        matching = {name for name, path in candidates.items() if matches(pattern, path)}
        if not matching:
            _nothing(pattern, candidates.values(), where, what)
        names |= matching
    return names


def _nothing(pattern: str, candidates: Iterable[Path], where: str, what: str) -> None:
    words = {word for path in candidates for step in path for word in step}
    labels = sorted(word for word in words if not re.fullmatch(r"\d+", word))
    pieces = pattern.split(".")
    unknown = next(
        (piece for piece in pieces if not any(_names(piece, word) for word in words)), pattern
    )
    raise ConfigError(
        f"{where}: '{pattern}' matches no {what} of the model; "
        + did_you_mean(unknown, words, f"known: {', '.join(labels)}"),
        code="E103",
    )
