"""A config to be: its sections as plain values, and the text that says them with comments."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.starter.comments import WIDTH, commented
from gradcli.train.yaml_text import WORDS, inline

_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
SHORT = 60  # characters of a name in a comment


@dataclass(frozen=True)
class ConfigDraft:
    """What a config says.

    Attributes:
        remarks: sentences above it.
        data: the section; the model is a list of layers, each as it stands in YAML.
        pretrained: where the first weights come from; "" for random ones.
    """

    name: str
    remarks: tuple[str, ...]
    data: Mapping[str, Any]
    model: tuple[str, ...]
    loss: str
    metrics: tuple[str, ...]
    optim: str
    train: Mapping[str, Any]
    pretrained: str = ""

    def text(self) -> str:
        """The whole file."""
        config = "\n".join(self._lines()) + "\n"
        remarks = [line for remark in self.remarks for line in remark_lines(remark)]
        return "\n".join([*remarks, commented(config)])

    def _lines(self) -> Iterator[str]:
        yield "gradcli: 1"
        yield f"name: {inline(self.name)}"
        yield "data:"
        yield from (line for key, value in self.data.items() for line in _pair(key, value))
        yield "model:"
        yield from (f"  - {layer}" for layer in self.model)
        if self.pretrained:
            yield f"pretrained: {{from: {inline(self.pretrained)}}}"
        yield f"loss: {self.loss}"
        yield f"metrics: {inline(list(self.metrics))}"
        yield f"optim: {self.optim}"
        yield "schedule: {name: cosine, warmup: 5%}"
        yield "train:"
        yield from (line for key, value in self.train.items() for line in _pair(key, value))


def _pair(key: str, value: Any) -> Iterator[str]:
    """A key with its value; a long list goes over several lines."""
    line = f"  {key}: {_value(value)}"
    if not isinstance(value, list) or len(line) <= WIDTH:
        yield line
        return
    line = f"  {key}: ["
    for number, item in enumerate(map(inline, value)):
        if number and len(line) + len(item) + 2 > WIDTH:
            yield line.rstrip()
            line = "    "
        line += item + ("]" if number == len(value) - 1 else ", ")
    yield line


def _value(value: Any) -> str:
    """As people write it: percents, figures and rates need no quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(inside)}" for key, inside in value.items()) + "}"
    if isinstance(value, str) and _PATH.fullmatch(value) and value.lower() not in WORDS:
        return value
    return value.text if isinstance(value, Bare) else inline(value)


@dataclass(frozen=True)
class Bare:
    """A value that stands in the text as it is, such as 70%."""

    text: str


def remark_lines(remark: str) -> list[str]:
    """A sentence as lines of comment."""
    return textwrap.wrap(remark, WIDTH, initial_indent="# ", subsequent_indent="#   ")


def brief(name: str) -> str:
    """A name out of data, fit for a comment: one line, no control characters, not too long."""
    visible = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    return f"'{visible if len(visible) <= SHORT else visible[:SHORT] + '...'}'"


def split_of(samples: int, classes: bool = False) -> dict[str, Bare | bool]:
    """What is trained on, what chooses the best step, what is measured at the end."""
    how: dict[str, bool] = {"stratify": True} if classes else {}
    if samples < 40:
        return {"train": Bare("80%"), "val": Bare("20%"), **how}
    return {"train": Bare("70%"), "val": Bare("15%"), "test": Bare("15%"), **how}
