"""One figure against its limit, and how many times faster one time is than another."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """One figure against what it should be; `passed` is None where it could not be measured.

    `doubtful`: it rests on moments in which the machine was not undisturbed.
    """

    what: str
    figure: float | None
    limit: float
    passed: bool | None
    doubtful: bool = False

    def as_json(self) -> dict[str, Any]:
        """As it stands in a result file."""
        entry = asdict(self)
        return {"wanted" if key == "limit" else key: value for key, value in entry.items()}

    def sentence(self) -> str:
        """In one line."""
        if self.figure is None:
            return f"  ----   {self.what}: not measured (limit {self.limit:g})"
        word = "pass" if self.passed else "FAIL"
        word += "?" if self.doubtful else " "
        doubt = "; doubtful: too few undisturbed moments" if self.doubtful else ""
        return f"  {word} {self.what}: {self.figure:.3g} (limit {self.limit:g}){doubt}"


def at_least(what: str, figure: float | None, limit: float, doubtful: bool = False) -> Verdict:
    """More is better."""
    return Verdict(what, figure, limit, None if figure is None else figure >= limit, doubtful)


def at_most(what: str, figure: float | None, limit: float, doubtful: bool = False) -> Verdict:
    """Less is better."""
    return Verdict(what, figure, limit, None if figure is None else figure <= limit, doubtful)


def ratio(peer: float | None, ours: float | None) -> float | None:
    """How many times faster we are."""
    return None if peer is None or ours is None else peer / ours
