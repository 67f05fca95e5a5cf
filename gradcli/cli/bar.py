"""The bar of a training, whole in a terminal of any width."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from tqdm import tqdm


def bar_format(columns: int | None, postfix: str = "") -> str | None:
    """What stands beside the bar; a narrow terminal goes without speed, counts, and then time.

    The last that it has of `postfix`, figures with commas between them, is the first. Where there
    are none the speed stands there, and the time left is the last.
    """
    if columns is None or columns >= 110:
        return None
    if columns >= 76:
        counts = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}"
        return f"{{desc}}: {counts} [{{remaining}}, {postfix or '{rate_fmt}'}]"
    if columns >= 54:
        return f"{{desc}} |{{bar}}| {{remaining}}, {postfix or '{rate_fmt}'}"
    return f"{{desc}} |{{bar}}| {postfix.partition(',')[0] or '{remaining}'}"


class Bar(tqdm):  # type: ignore[type-arg]  # it takes no parameters when it runs
    """A bar that asks how wide the terminal is whenever it is drawn."""

    @property
    def format_dict(self) -> MutableMapping[str, Any]:
        """What tqdm draws; it puts marks of its own behind the description."""
        facts = super().format_dict
        facts["prefix"] = facts["prefix"].removesuffix(": ")
        facts["bar_format"] = bar_format(facts["ncols"], facts["postfix"] or "")
        return facts
