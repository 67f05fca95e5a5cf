"""Describe: the declared ops as facts and as docs/ops.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.devices import DEVICES
from gradcli.engine.accepted import accepted, format_types
from gradcli.engine.composite import Composite
from gradcli.engine.dtype import float32
from gradcli.engine.gradcheck import Row, behind, every_op
from gradcli.engine.op import Op

_HEAD = """\
# The ops

Made from the declarations by `gradcli ops --markdown > docs/ops.md`; CI fails when it is stale.
Names, arguments, defaults and results are torch's; docs/differences.md lists the exceptions.
The gradient column is the slope of an elementwise op, written in the value that is kept for it;
"own" is a gradient function below the op; "through" names the ops of which a function is composed,
whose gradients are its own; "unchanged" is that of the tensor itself; a dash says why there is
none. "Double backward" says how the gradient is differentiated: by the op itself if it is linear,
by the decomposition, by a rule of its own, or through the ops it is composed of; a dash means under
`engine.decomposed()` only. `gradcli gradcheck` and `gradcli gradcheck --second-order` prove all of
them. The types are those of the inputs that leave a choice, found by trying: floats (float32,
float64 and bfloat16), numbers (these and int32, int64 and uint8), all (these and bool), or their
names.
"""
_MEMORY = """
## Memory

A result has memory of its own, with an offset for each element, except for these; an op that writes
in place returns its first input.

| result | ops |
|---|---|
"""
_KEYS = {"decomposition": "composed", "double_backward": "twice"}  # in JSON, whose keys stay
_SHARING = {
    "view": "a view of an input",
    "repeats": "a view of an input in which elements may share an offset",
    "either": "an input's memory where shape, strides and type allow it, otherwise a copy",
}


@dataclass(frozen=True)
class OpFacts:
    """What is known of one op."""

    name: str
    family: str
    signature: str
    meaning: str
    formula: str
    gradient: str
    saves: tuple[str, ...]
    samples: int
    decomposition: str | None
    double_backward: str
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    shares: str

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
        row = {_KEYS.get(key, key): value for key, value in vars(self).items()}
        return {**row, "saves": list(self.saves), "dtypes": list(self.dtypes)}


def facts() -> list[OpFacts]:
    """Every op and every function composed of ops, by family and name."""
    return sorted((_facts(op) for op in every_op()), key=lambda f: (f.family, f.name))


def _facts(op: Row) -> OpFacts:
    meaning = (op.__doc__ or "").split("\n\n", 1)[0].replace("\n", " ")
    facts = _of_op(op) if isinstance(op, Op) else _of_function(op)
    return OpFacts(
        name=op.name,
        signature=op.name + op.signature(),
        meaning=meaning,
        samples=len(op.samples),
        dtypes=accepted(op),
        devices=DEVICES,  # every op runs on each: tests/gpu/test_every_op.py
        shares=op.shares,
        **facts,
    )


def _of_op(op: Op[Any]) -> dict[str, Any]:
    gradient = op.slope or ("own" if op.differentiable else f"- ({op.why})")
    return {
        "family": _family(op.forward),
        "formula": op.formula if op.formula not in (op.__doc__ or "") else "",
        "gradient": gradient if op.differentiable else f"- ({op.why})",
        "saves": op.saves,
        "decomposition": op.decomposition.__name__ if op.decomposition else None,
        "double_backward": op.double_backward_rule,
    }


def _of_function(op: Composite) -> dict[str, Any]:
    through = _through(op) if op.differentiable else []
    names = ", ".join(step.name for step in through)
    way = (f"through {names}", "through these") if names else ("unchanged", "linear")
    return {
        "family": _family(op.plain),
        "formula": "",
        "gradient": way[0] if op.differentiable else f"- ({op.why})",
        "saves": (),
        "decomposition": None,
        "double_backward": way[1]
        if op.differentiable and all(step.double_backward_rule for step in through)
        else "",
    }


def _through(op: Composite) -> list[Op[Any]]:
    """The ops behind its first sample; what does nothing to float64 may do it to float32."""
    first = op.samples[0]
    return behind(op, first) or behind(op, first, dtype=float32)


def _family(function: Callable[..., object]) -> str:
    """The folder of gradcli.engine.ops that it is declared in, or the module beside them."""
    return str(function.__module__).removeprefix("gradcli.engine.ops.").partition(".")[0]


# -- docs/ops.md -----------------------------------------------------------------------------------


def markdown() -> str:
    """docs/ops.md: a table for each family."""
    rows = facts()
    parts = [_HEAD]
    for family in sorted({row.family for row in rows}):
        parts.append(
            f"\n## {family}\n\n"
            "| op | meaning | gradient | double backward | keeps | types | devices |\n"
            "|---|---|---|---|---|---|---|\n"
        )
        parts += [_row(row) for row in rows if row.family == family]
    return "".join([*parts, _MEMORY, *(_sharing(rows, *kind) for kind in _SHARING.items())])


def _row(row: OpFacts) -> str:
    meaning = _cell(row.meaning)
    if row.formula:
        meaning += f" {_code(row.formula)}"
    if row.decomposition:
        meaning += f" Decomposition: {_code(row.decomposition)}."
    own = row.gradient.startswith(("own", "- ", "through ", "unchanged"))
    gradient = _cell(row.gradient) if own else _code(row.gradient)
    double_backward = row.double_backward or ("" if row.gradient.startswith("- ") else "-")
    saves = ", ".join(row.saves)
    types = f"{format_types(row.dtypes)} | {', '.join(row.devices)}"
    cells = _code(row.signature), meaning, gradient, double_backward, saves, types
    return f"| {' | '.join(cells)} |\n"


def _sharing(rows: list[OpFacts], shares: str, meaning: str) -> str:
    """The ops whose results lie in such memory."""
    names = ", ".join(_code(row.name) for row in rows if row.shares == shares)
    return f"| {meaning} | {names} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(' '.join(text.split()))}`"
