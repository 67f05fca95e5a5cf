"""What was compared with torch: docs/parity.md is made of it.

`python -m pytest tests/parity --parity-table=docs/parity.md` writes the table anew, and with
`--parity-check=docs/parity.md` fails when a name or a number of cases in it is no longer true.
"""

from __future__ import annotations

from dataclasses import dataclass, field

HEAD = """# Parity with PyTorch

Made by the tests: `python -m pytest tests/parity --parity-table=docs/parity.md`. Each case gives
the same numbers to both and compares results, gradients, and for layers and optimizers many steps
of training; the rows of `metrics` compare with scikit-learn. The error is the largest
difference, divided by the largest result or 1; float32 has 1.2e-07 between neighbours, float64
2.2e-16.

| name | cases | worst error, float64 | worst error, float32 |
|---|---|---|---|
"""


@dataclass
class Line:
    """All cases of one name: how many tests, and the worst error of each element type."""

    tests: set[str] = field(default_factory=set)
    worst: dict[str, float] = field(default_factory=dict)


class Ledger:
    """Names and what was found, from one process or several."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}

    def enter(self, name: str, test: str, dtype: str, error: float) -> None:
        """One comparison of a test."""
        line = self.lines.setdefault(name, Line())
        line.tests.add(test)
        line.worst[dtype] = max(error, line.worst.get(dtype, 0.0))

    def add(self, packed: dict[str, tuple[list[str], dict[str, float]]]) -> None:
        """What another process found."""
        for name, (tests, worst) in packed.items():
            for test in tests:
                for dtype, error in worst.items():
                    self.enter(name, test, dtype, error)

    def packed(self) -> dict[str, tuple[list[str], dict[str, float]]]:
        """All of it as plain values."""
        return {name: (sorted(line.tests), line.worst) for name, line in self.lines.items()}

    def table(self) -> str:
        """As docs/parity.md has it."""
        rows = []
        for name in sorted(self.lines, key=lambda name: (name.rpartition(".")[0], name)):
            line = self.lines[name]
            errors = (_written(line.worst.get(dtype)) for dtype in ("float64", "float32"))
            rows.append(f"| `{name}` | {len(line.tests)} | {' | '.join(errors)} |\n")
        return HEAD + "".join(rows)


def _written(error: float | None) -> str:
    return "-" if error is None else f"{error:.1e}" if error else "0"


def names(table: str) -> list[list[str]]:
    """The names and numbers of cases in a table: what does not depend on the machine."""
    return [line.split(" | ")[:2] for line in table.splitlines() if line.startswith("| `")]
