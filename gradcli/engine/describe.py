"""Describe: the declared ops as facts, as docs/ops.md and as tensor.pyi."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

from gradcli.devices import DEVICES
from gradcli.engine.accepted import accepted, shown
from gradcli.engine.composite import Composite
from gradcli.engine.dtype import float32
from gradcli.engine.gradcheck import Row, behind, every_op
from gradcli.engine.op import Op
from gradcli.engine.tensor import OPS, Tensor

STUB = Path(__file__).with_name("tensor.pyi")

_HEAD = """\
# The ops

Made from the declarations by `gradcli ops --markdown > docs/ops.md`; CI fails when it is stale.
Names, arguments, defaults and results are torch's; docs/differences.md lists the exceptions.
The gradient column is the slope of an elementwise op, written in the value that is kept for it;
"own" is a gradient function below the op; "through" names the ops of which a function is composed,
whose gradients are its own; "unchanged" is that of the tensor itself; a dash says why there is
none. "Twice" says how gradients of that gradient are computed: by the op itself where it is linear,
by the composed form, by a rule of its own, or through the ops it is composed of; a dash means under
`engine.composed()` only. `gradcli gradcheck` and `gradcli gradcheck --twice` prove all of them. The
types are those of the inputs that leave a choice, found by trying: floats (float32, float64 and
bfloat16), numbers (these and int32, int64 and uint8), all (these and bool), or their names.
"""
_MEMORY = """
## Memory

A result lies in memory of its own, in which each of its elements has a place to itself, but for
these; what writes in place gives its first input.

| result | ops |
|---|---|
"""
_SHARING = {
    "view": "a view of an input",
    "repeats": "a view of an input in which an element may stand in several places",
    "either": "an input's memory where shape, strides and type allow it, otherwise a copy",
}
_STUB_HEAD = '''\
"""Tensor as editors and mypy see it: made by `gradcli ops --stub`, with one method an op."""
'''


@dataclass(frozen=True)
class Facts:
    """What is known of one op."""

    name: str
    family: str
    signature: str
    meaning: str
    formula: str
    gradient: str
    saves: tuple[str, ...]
    samples: int
    composed: str | None
    twice: str
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    shares: str

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "saves": list(self.saves), "dtypes": list(self.dtypes)}


def facts() -> list[Facts]:
    """Every op and every function composed of ops, by family and name."""
    return sorted((_facts(op) for op in every_op()), key=lambda f: (f.family, f.name))


def _facts(op: Row) -> Facts:
    meaning = (op.__doc__ or "").split("\n\n", 1)[0].replace("\n", " ")
    written = _of_op(op) if isinstance(op, Op) else _of_function(op)
    return Facts(
        name=op.name,
        signature=op.name + op.signature(),
        meaning=meaning,
        samples=len(op.samples),
        dtypes=accepted(op),
        devices=DEVICES,  # every op runs on each: tests/gpu/test_every_op.py
        shares=op.shares,
        **written,
    )


def _of_op(op: Op) -> dict[str, Any]:
    gradient = op.slope or ("own" if op.differentiable else f"- ({op.why})")
    return {
        "family": _family(op.forward),
        "formula": op.formula if op.formula not in (op.__doc__ or "") else "",
        "gradient": gradient if op.differentiable else f"- ({op.why})",
        "saves": op.saves,
        "composed": op.composed.__name__ if op.composed else None,
        "twice": op.again,
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
        "composed": None,
        "twice": way[1] if op.differentiable and all(step.again for step in through) else "",
    }


def _through(op: Composite) -> list[Op]:
    """The ops behind its first sample; what does nothing to float64 may do it to float32."""
    first = op.samples[0]
    return behind(op, first) or behind(op, first, dtype=float32)


def _family(function: Callable[..., Any]) -> str:
    """The folder of gradcli.engine.ops that it is declared in, or the module beside them."""
    return str(function.__module__).removeprefix("gradcli.engine.ops.").partition(".")[0]


def _star(p: inspect.Parameter) -> str:
    if p.kind is p.VAR_POSITIONAL:
        return "*"
    return "**" if p.kind is p.VAR_KEYWORD else ""


# -- docs/ops.md -----------------------------------------------------------------------------------


def markdown() -> str:
    """docs/ops.md: a table for each family."""
    rows = facts()
    parts = [_HEAD]
    for family in sorted({row.family for row in rows}):
        parts.append(
            f"\n## {family}\n\n| op | meaning | gradient | twice | keeps | types | devices |\n"
            "|---|---|---|---|---|---|---|\n"
        )
        parts += [_row(row) for row in rows if row.family == family]
    return "".join([*parts, _MEMORY, *(_sharing(rows, *kind) for kind in _SHARING.items())])


def _row(row: Facts) -> str:
    meaning = _cell(row.meaning)
    if row.formula:
        meaning += f" {_code(row.formula)}"
    if row.composed:
        meaning += f" Composed reference: {_code(row.composed)}."
    own = row.gradient.startswith(("own", "- ", "through ", "unchanged"))
    gradient = _cell(row.gradient) if own else _code(row.gradient)
    twice = row.twice or ("" if row.gradient.startswith("- ") else "-")
    kept = ", ".join(row.saves)
    types = f"{shown(row.dtypes)} | {', '.join(row.devices)}"
    return f"| {_code(row.signature)} | {meaning} | {gradient} | {twice} | {kept} | {types} |\n"


def _sharing(rows: list[Facts], shares: str, meaning: str) -> str:
    """The ops whose results lie in such memory."""
    names = ", ".join(_code(row.name) for row in rows if row.shares == shares)
    return f"| {meaning} | {names} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(' '.join(text.split()))}`"


# -- tensor.pyi ------------------------------------------------------------------------------------

_NAMES = {
    "Any": "from typing import Any",
    "Callable": "from collections.abc import Callable",
    "Iterator": "from collections.abc import Iterator",
    "Sequence": "from collections.abc import Sequence",
    "Array": "from gradcli.engine.array import Array",
    "Edge": "from gradcli.engine.graph import Edge",
    "Decimals": "from gradcli.engine.ops.elementwise.functions import Decimals",
    "Dim": "from gradcli.engine.ops.reduce.reduce import Dim",
    "DType": "from gradcli.engine.dtype import DType",
    "Generator": "from gradcli.engine.random import Generator",
    "Leaf": "from gradcli.engine.graph import Leaf",
    "RemovableHandle": "from gradcli.engine.hooks import RemovableHandle",
    "Node": "from gradcli.engine.graph import Node",
    **{
        name: f"from gradcli.engine.kind import {name}"
        for name in ("NotNegative", "Number", "OneDim", "Operand", "Sizes", "Whole")
    },
    "Registry": "from gradcli.registry import Registry",
    "Shape": "from gradcli.engine.shape import Shape",
    "builtins": "import builtins",
}
# What __slots__ names, with their types.
_ATTRIBUTES = (
    "alias: bool",
    "array: Array",
    "leaf: Leaf | None",
    "node: Node | None",
    "output: int",
)


def stub() -> str:
    """tensor.pyi: what tensor.py writes by hand, and a method for each op."""
    source = STUB.with_suffix(".py").read_text(encoding="utf-8")
    body = "\n".join(text for node in ast.parse(source).body if (text := _stub_of(node)))
    used = sorted(line for name, line in _NAMES.items() if re.search(rf"\b{name}\b", body))
    return "\n".join([_STUB_HEAD, *used, "", body, ""])


def _stub_of(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef):
        return "" if node.name.startswith("_") else _signature_of(node)
    if isinstance(node, ast.AnnAssign):
        return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"
    if not isinstance(node, ast.ClassDef):
        return ""
    by_hand = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    named = {n.name for n in by_hand}
    from_table = [n for n in sorted(OPS) if n not in named and n in vars(Tensor)]
    methods = [_signature_of(n) for n in by_hand] + [_method(n) for n in from_table]
    whole = ast.parse(f"class {node.name}:\n" + indent("\n".join([*_ATTRIBUTES, *methods]), "    "))
    text = ast.unparse(_Builtins(named | set(from_table)).visit(whole))
    text = re.sub(r":\n +\.\.\.\n*", ": ...\n", text + "\n").rstrip()
    return re.sub(r"(def __(?:eq|ne)__.*)", r"\1  # type: ignore[override]", text)


class _Builtins(ast.NodeTransformer):
    """Inside the class a method hides the type of its name: there `int` would mean x.int()."""

    def __init__(self, methods: set[str]) -> None:
        self.hidden = methods & set(vars(builtins))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Only annotations, defaults and decorators hold names; arguments are no names."""
        return ast.Name(f"builtins.{node.id}") if node.id in self.hidden else node


def _signature_of(node: ast.FunctionDef) -> str:
    decorators = "".join(f"@{ast.unparse(d)}\n" for d in node.decorator_list)
    result = ast.unparse(node.returns) if node.returns else "None"
    return f"{decorators}def {node.name}({ast.unparse(node.args)}) -> {result}: ..."


def _method(name: str) -> str:
    row = inspect.unwrap(OPS[name])
    arguments, result = _op_arguments(row) if isinstance(row, Op) else _plain_arguments(row)
    return f"def {name}({', '.join(['self', *arguments])}) -> {result}: ..."


def _op_arguments(op: Op) -> tuple[list[str], str]:
    """An op's options may follow its inputs by position; the first of a variadic one is spread."""
    parameters = inspect.signature(op.forward).parameters
    arguments: list[str] = []
    for name in list(op.__signature__.parameters)[1:]:
        if name in op.inputs:
            number = " | float" if name == "other" else ""
            default = " | None = None" * (name in op.optional)
            arguments.append(f"{name}: Tensor{number}{default}")
            continue
        spread = op.variadic and name == next(iter(op.options))
        must = parameters[name].default is inspect.Parameter.empty and not spread
        if must and arguments and arguments[-1].endswith("None"):
            arguments.append("*")  # Python wants what must be given before what may be left out
        arguments.append(f"*{name}: int | Sequence[int]" if spread else _argument(parameters[name]))
    visible = ", ".join(["Tensor"] * op.visible) or "Tensor, ..."
    return arguments, visible if op.visible == 1 else f"tuple[{visible}]"


def _plain_arguments(row: Callable[..., Any]) -> tuple[list[str], str]:
    signature = inspect.signature(row)
    arguments: list[str] = []
    for p in list(signature.parameters.values())[1:]:
        if p.kind is p.KEYWORD_ONLY and not any(a.startswith("*") for a in arguments):
            arguments.append("*")
        arguments.append(_star(p) + _argument(p))
    return arguments, str(signature.return_annotation)


def _argument(p: inspect.Parameter) -> str:
    simple = isinstance(p.default, (bool, int, float, str, tuple, type(None)))
    default = "" if p.default is p.empty else f" = {p.default!r}" if simple else " = ..."
    return f"{p.name}: {p.annotation}{default}"
