"""The model of a run as boxes inside boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.report.fields import count, items, mapping, size, text, whole

DEEPEST = 20
MOST = 2000  # boxes


@dataclass(frozen=True)
class Box:
    """A layer: its title, shapes, size, and the layers inside it."""

    index: str
    title: str
    shapes: str
    parameters: str
    share: int  # of all parameters, in percent
    memory: str
    inside: Sequence[Box]


@dataclass(frozen=True)
class Model:
    """The layers as boxes, or as an older version wrote them: lines of text."""

    boxes: Sequence[Box]
    lines: Sequence[str]
    total: str


def model(plan: Mapping[str, Any]) -> Model | None:
    """What plan.json says of the model; None where it says nothing."""
    total = whole(plan.get("total"))
    budget = [MOST]
    boxes = _boxes(plan.get("model"), total or 0, 0, budget)
    lines = [] if boxes else [text(line) for line in items(plan.get("layers"))[:MOST]]
    return Model(boxes, lines, count(total)) if boxes or lines else None


def _boxes(value: object, total: int, depth: int, budget: list[int]) -> list[Box]:
    boxes = []
    for entry in map(mapping, items(value) if depth < DEEPEST else []):
        budget[0] -= 1
        if budget[0] < 0:
            break
        own = whole(entry.get("parameters")) or 0
        memory = whole(entry.get("kept"))
        boxes.append(
            Box(
                index=text(entry.get("index")),
                title=text(entry.get("title") or entry.get("kind")),
                shapes=_shapes(entry),
                parameters=f"{own:,}" if own else "",
                share=round(100 * own / total) if total and own <= total else 0,
                memory=size(memory) if memory else "",
                inside=_boxes(entry.get("children"), total, depth + 1, budget),
            )
        )
    return boxes


def _shapes(entry: Mapping[str, Any]) -> str:
    """`1x28x28 → 16x24x24`."""
    before, after = (_shape(entry.get(key)) for key in ("input", "output"))
    return f"{before} → {after}" if before and before != after else after


def _shape(value: object) -> str:
    return "x".join(text(size) for size in items(value)) if items(value) else ""
