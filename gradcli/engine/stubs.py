"""Stubs: the ops as editors and mypy see them, in table.pyi as functions, in tensor.pyi as methods.

A way of calling is a Signature whose annotations are texts, as they stand in the declaration.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from sys import modules
from textwrap import indent
from typing import Any, cast, get_overloads

from gradcli.engine import table
from gradcli.engine.composite import FUNCTIONS, Composite
from gradcli.engine.kind import Operand
from gradcli.engine.op import Op
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor

FOLDER = Path(__file__).parent
_TABLE_HEAD = '''\
"""The declared ops as functions, with their types: made by `gradcli ops --stub table`."""
'''
_TENSOR_HEAD = '''\
"""Tensor as editors and mypy see it: made by `gradcli ops --stub tensor`, with one method an op."""
'''
# What __slots__ names, with their types.
_ATTRIBUTES = (
    "alias: bool",
    "array: Array",
    "leaf: Leaf | None",
    "node: Node | None",
    "output: int",
)
# What is named here and not by every declaration.
_ALSO = {
    "Literal": "from typing import Literal",
    "Operand": "from gradcli.engine.kind import Operand",
    "Sequence": "from collections.abc import Sequence",
    "Sizes": "from gradcli.engine.kind import Sizes",
    "Tensor": "from gradcli.engine.tensor import Tensor",
    "builtins": "import builtins",
    "overload": "from typing import overload",
}
_EMPTY = Parameter.empty


# -- the ways of calling an op ---------------------------------------------------------------------


def calls(name: str) -> list[Signature]:
    """The ways of calling an op or a function composed of ops, from the most usual one."""
    row = OPS[name]
    op = inspect.unwrap(row)
    if not isinstance(op, Op):
        return list(_of_function(FUNCTIONS[name]))
    signatures = _of_op(op)
    if row is op:
        return [*signatures, *_with_alias(op, signatures[0])]
    return [
        _with(signature, 0, name="input") for signature in signatures
    ]  # an operator, a form in place


def _of_op(op: Op[Any]) -> list[Signature]:
    overloads = get_overloads(type(op).__call__)
    if overloads:
        signatures = [inspect.signature(overload) for overload in overloads]
        return [
            signature.replace(parameters=_parameters(signature)[1:]) for signature in signatures
        ]
    result = inspect.signature(type(op).__call__).return_annotation
    if result in ("Any", "Result"):
        names = ", ".join(["Tensor"] * op.visible) or "Tensor, ..."
        result = "Tensor" if op.visible == 1 else f"tuple[{names}]"
    orders = dict.fromkeys((tuple(op.__signature__.parameters), (*op.inputs, *op.options)))
    plain = [_signature([_argument(op, name) for name in order], result) for order in orders]
    return [variant for signature in plain for variant in _of_numbers(op, _spread(op, signature))]


def _argument(op: Op[Any], name: str) -> Parameter:
    p = inspect.signature(op.forward).parameters[name]
    if name in op.inputs:
        hint = "Operand" if op.hints[name] is Operand else "Tensor"
        p = p.replace(annotation=f"{hint} | None" if name in op.optional else hint)
    return p.replace(kind=p.POSITIONAL_OR_KEYWORD)


def _spread(op: Op[Any], signature: Signature) -> list[Signature]:
    """The first option of a variadic op may be given number by number."""
    if not op.variadic:
        return [signature]
    i = len(op.inputs)
    one_by_one = _with(
        signature, i, kind=Parameter.VAR_POSITIONAL, annotation="Sizes", default=_EMPTY
    )
    return [one_by_one, signature]


def _of_numbers(op: Op[Any], signatures: list[Signature]) -> Iterator[Signature]:
    """Where each of two inputs may be a number, the other is a Tensor."""
    for signature in signatures:
        both = [i for i, p in enumerate(_parameters(signature)) if p.annotation == "Operand"]
        if len(both) == len(op.inputs):
            yield from (_with(signature, i, annotation="Tensor") for i in both)
        else:
            yield signature


def _with_alias(op: Op[Any], signature: Signature) -> list[Signature]:
    """The first tensor by torch's name."""
    if "input" in signature.parameters:
        return []
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in _parameters(signature)]
    if op.variadic:
        parameters[len(op.inputs)] = _argument(op, next(iter(op.options))).replace(
            kind=parameters[0].kind
        )
    return [_with(_signature(parameters, signature.return_annotation), 0, name="input")]


def _of_function(row: Composite) -> Iterator[Signature]:
    """That of the plain function; one more for each option by which the result is a tuple."""
    whole = inspect.signature(row.plain)
    options = [i for i, p in enumerate(_parameters(whole)) if p.name in row.tuple_if]
    if not options:
        yield whole
        return
    single, _, several = whole.return_annotation.partition(" | ")
    plain = whole.replace(return_annotation=single)
    for i in options:
        plain = _with(plain, i, annotation=_literal(_parameters(whole)[i].default))
    yield plain
    for i in options:
        annotation = "int" if _parameters(whole)[i].default is None else "Literal[True]"
        variant = _with(whole, i, annotation=annotation, default=_EMPTY)
        yield variant.replace(return_annotation=several)
    yield whole


def _literal(default: object) -> str:
    return "None" if default is None else f"Literal[{default!r}]"


def _parameters(signature: Signature) -> list[Parameter]:
    return list(signature.parameters.values())


def _signature(parameters: Sequence[Parameter], result: object) -> Signature:
    """What must be given behind what may be left out is given by name."""
    by_name = False
    optional = False
    ordered: list[Parameter] = []
    for p in parameters:
        must = p.default is _EMPTY and p.kind is p.POSITIONAL_OR_KEYWORD
        by_name = by_name or (must and optional) or p.kind is p.VAR_POSITIONAL
        optional = optional or p.default is not _EMPTY
        late = by_name and p.kind is p.POSITIONAL_OR_KEYWORD
        ordered.append(p.replace(kind=p.KEYWORD_ONLY) if late else p)
    return Signature(ordered, return_annotation=result)


def _with(signature: Signature, i: int, **changes: Any) -> Signature:
    """The same with one parameter changed."""
    parameters = _parameters(signature)
    parameters[i] = parameters[i].replace(**changes)
    return _signature(parameters, signature.return_annotation)


# -- as text ---------------------------------------------------------------------------------------


def table_stub() -> str:
    """table.pyi: what table.py writes by hand, and each op as a function."""
    names = [name for name in sorted(OPS) if not name.startswith("_")]
    by_hand = {"table": _by_hand("table", "__all__")}
    functions = {name: _function(name) for name in names}
    exported = f"__all__ = {sorted(table.__all__)}"
    body = _qualified("\n".join([*by_hand.values(), *functions.values(), exported]), set(OPS))
    return _file(_TABLE_HEAD, body, by_hand | functions)


def tensor_stub() -> str:
    """tensor.pyi: what tensor.py writes by hand, and each op as a method."""
    tree = ast.parse((FOLDER / "tensor.py").read_text(encoding="utf-8"))
    (own,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    nodes = _without_implementations(
        [node for node in own.body if isinstance(node, ast.FunctionDef)]
    )
    names = {node.name for node in nodes}
    from_table = [n for n in sorted(OPS) if n not in names and n in vars(Tensor)]
    by_hand = {"tensor": "\n".join([*_ATTRIBUTES, *map(_of_node, nodes)])}
    methods = {name: _defined(name, _methods(name)) for name in from_table}
    members = indent("\n".join([*by_hand.values(), *methods.values()]), "    ")
    body = _qualified(f"class Tensor:\n{members}", names | set(from_table))
    body = re.sub(r"(def __(?:eq|ne)__.*)", r"\1  # type: ignore[override]", body)
    functions = {"": _by_hand("tensor")}
    return _file(_TENSOR_HEAD, f"{body}\n{functions['']}", by_hand | methods | functions)


def _without_implementations(nodes: Sequence[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The functions without the implementations behind their overloads."""
    typed = {node.name for node in nodes if _is_overload(node)}
    return [node for node in nodes if node.name not in typed or _is_overload(node)]


def _is_overload(node: ast.FunctionDef) -> bool:
    return "overload" in map(ast.unparse, node.decorator_list)


def _function(name: str) -> str:
    meaning = " ".join((OPS[name].__doc__ or "").split("\n\n", 1)[0].split())
    return _defined(name, calls(name), meaning)


def _methods(name: str) -> list[Signature]:
    """The ways of calling an op whose first argument, a Tensor, stands by position."""
    itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    return [
        signature.replace(parameters=[itself, *_parameters(signature)[1:]])
        for signature in calls(name)
        if _parameters(signature)[0].kind is itself.kind
        and "Tensor" in _parameters(signature)[0].annotation
    ]


def _by_hand(file: str, *without: str) -> str:
    """The public functions and values of a module of the engine."""
    tree = ast.parse((FOLDER / f"{file}.py").read_text(encoding="utf-8"))
    return "\n".join(_of_node(node) for node in tree.body if _is_public(node, without))


def _is_public(node: ast.stmt, without: Sequence[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        return not node.name.startswith("_") and node.name not in without
    return isinstance(node, ast.AnnAssign) and ast.unparse(node.target) not in without


def _of_node(node: ast.stmt) -> str:
    if isinstance(node, ast.AnnAssign):
        return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"
    assert isinstance(node, ast.FunctionDef)
    decorators = "".join(f"@{ast.unparse(d)}\n" for d in node.decorator_list)
    result = ast.unparse(node.returns) if node.returns else "None"
    return f"{decorators}def {node.name}({ast.unparse(node.args)}) -> {result}: ..."


def _defined(name: str, signatures: Sequence[Signature], meaning: str = "") -> str:
    """A function with these signatures; the first has the docstring."""
    overload = "@overload\n" if len(signatures) > 1 else ""
    lines = [
        f"{overload}def {name}({', '.join(_texts(signature))}) -> {signature.return_annotation}:"
        for signature in signatures
    ]
    bodies = [repr(meaning) if meaning else "..."] + ["..."] * (len(lines) - 1)
    tree = ast.parse("\n".join(f"{line} {body}" for line, body in zip(lines, bodies, strict=True)))
    return ast.unparse(_Aliases(_home(name)).visit(tree))


def _texts(signature: Signature) -> Iterator[str]:
    starred = False
    for p in _parameters(signature):
        if p.kind is p.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        stars = "*" * (p.kind is p.VAR_POSITIONAL) or "**" * (p.kind is p.VAR_KEYWORD)
        hint = "" if p.annotation is _EMPTY else f": {p.annotation}"
        yield f"{stars}{p.name}{hint}{_default(p)}"


def _default(p: Parameter) -> str:
    simple = isinstance(p.default, (bool, int, float, str, tuple, type(None)))
    return "" if p.default is _EMPTY else f" = {p.default!r}" if simple else " = ..."


class _Aliases(ast.NodeTransformer):
    """What modules of ops call types of their own stands there as it is: a stub imports no op."""

    def __init__(self, home: str) -> None:
        self.home = home

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The type behind a name."""
        return _alias(node.id, self.home) or node


def _alias(name: str, home: str) -> ast.expr | None:
    """What a name stands for in a module of ops; None for what is no alias of such a module."""
    if not home.startswith("gradcli.engine.ops."):
        return None
    for node in _tree(home).body:
        if isinstance(node, ast.ImportFrom):
            if name in (alias.name for alias in node.names):
                return _alias(name, node.module or "")
        elif isinstance(node, ast.Assign) and name in _names(node):
            value = node.value
            if isinstance(value, ast.Subscript) and ast.unparse(value.value) == "Annotated":
                value = value.slice.elts[0] if isinstance(value.slice, ast.Tuple) else value
            return cast(ast.expr, _Aliases(home).visit(value))
    return None


class _Builtins(ast.NodeTransformer):
    """Beside functions of the same names types are builtins': there `int` would mean x.int()."""

    def __init__(self, names: set[str]) -> None:
        self.hidden = names & set(vars(builtins))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Only annotations, defaults and decorators hold names; arguments are no names."""
        return ast.Name(f"builtins.{node.id}") if node.id in self.hidden else node


def _qualified(text: str, names: set[str]) -> str:
    """The text with each body on the line of its function, and with types that `names` hide."""
    lines = ast.unparse(_Builtins(names).visit(ast.parse(text))).splitlines()
    joined = "\n".join(line for line in lines if line).replace(":\n        ...", ": ...")
    return joined.replace(":\n    ...", ": ...")


def _file(head: str, body: str, parts: Mapping[str, str]) -> str:
    """A stub with the imports of what its parts name, which stand under the names of ops."""
    tree = ast.parse(body)
    own = {n.name for n in ast.walk(tree) if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    lines = {name: _ALSO[name] for name in _loaded_names(tree) & _ALSO.keys() - own}
    for op, text in parts.items():
        origins = _origins(_home(op))
        for name in _loaded_names(ast.parse(text)) & origins.keys() - own:
            line = lines.setdefault(name, origins[name])
            assert line == origins[name], f"{name}: {line}, {origins[name]}"
    missing = _loaded_names(tree) - lines.keys() - own - vars(builtins).keys()
    assert not missing, f"not imported: {missing}"
    return "\n".join([head, *sorted(lines.values()), "", body, ""])


def _loaded_names(tree: ast.Module) -> set[str]:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Load)}


def _home(op: str) -> str:
    """The module in which the annotations of an op are written."""
    if op not in OPS:
        return f"gradcli.engine.{op or 'tensor'}"
    target = inspect.unwrap(OPS[op])
    plain = target.forward if isinstance(target, Op) else target
    return str(plain.__globals__["__name__"])


@cache
def _tree(home: str) -> ast.Module:
    return ast.parse(Path(modules[home].__file__ or "").read_text(encoding="utf-8"))


@cache
def _origins(home: str) -> dict[str, str]:
    """The names of a module, with the lines that import them from where they are defined."""
    lines: dict[str, str] = {}
    for node in _tree(home).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported = f"from {node.module} import {ast.unparse(alias)}"
                lines[alias.asname or alias.name] = imported
        else:
            lines |= {name: f"from {home} import {name}" for name in _names(node)}
    return lines


def _names(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, ast.ClassDef):
        return [node.name]
    annotated = [node.target] if isinstance(node, ast.AnnAssign) else []
    targets = node.targets if isinstance(node, ast.Assign) else annotated
    return [target.id for target in targets if isinstance(target, ast.Name)]


STUBS = {"table": table_stub, "tensor": tensor_stub}
