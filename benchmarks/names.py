"""What a tree offers by name, and what of it another tree lacks.

A tree lists itself: `python -m benchmarks.names`, run by its interpreter, prints its names as JSON.
Listed are the functions and classes of MODULES with their methods and parameters; the ops as
`gradcli ops` has them; the keys and values of configs as `gradcli check --schema` has them, at
every depth; the commands with their options. Not seen are constants of classes, and attributes of
instances that no annotation names.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import click

from benchmarks.tree import Tree

MODULES = (
    "gradcli",
    "gradcli.data.loader",
    "gradcli.engine",
    "gradcli.engine.autograd",
    "gradcli.engine.nn",
    "gradcli.engine.nn.functional",
    "gradcli.engine.nn.init",
    "gradcli.engine.optim",
    "gradcli.engine.optim.lr_scheduler",
    "gradcli.errors",
)
MOST = 10  # arguments that a function may need
_REST = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
_ADDRESS = re.compile(" at 0x[0-9a-f]+")

# A name, and what is true of it: "takes dim=None in place 1", "takes 'relu'".
Names = dict[str, list[str]]


def collect() -> Names:
    """The names of the tree that is running."""
    from gradcli.cli.main import cli

    names: Names = {}
    for module in MODULES:
        names |= _of_module(module)
    names |= _of_ops(_answer(cli, ["ops", "--json"]))
    names |= _of_commands("gradcli", cli)
    schema = _answer(cli, ["check", "--schema"])
    _add_keys(names, "config", schema, schema.get("$defs", {}))
    return {name: sorted(set(facts)) for name, facts in sorted(names.items())}


def of_tree(tree: Tree) -> Names:
    """The names of a tree; raises ChildProcessError where it is not what its name says."""
    tree.check()
    names: Names = json.loads(tree.measure(["-m", "benchmarks.names"]))
    return names


def missing(old: Names, new: Names) -> list[str]:
    """A sentence for each name that `new` lacks, and for what is no longer true of the others."""
    sentences = []
    for name, facts in old.items():
        owner = name.rpartition(".")[0]
        if name not in new:
            if owner in new or owner not in old:  # else the owner's sentence says it
                sentences.append(f"{name} is gone")
        elif facts and not new[name]:
            sentences.append(f"{name} does not say how it is called")
        else:
            absent = [fact for fact in facts if fact not in new[name]]
            sentences += [f"{name} no longer {fact}" for fact in absent]
    return sentences


# -- modules ---------------------------------------------------------------------------------------


def _of_module(name: str) -> Names:
    """Its public names but for modules, and the parts of its classes; none of a missing module."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:  # an older tree; in a newer one `missing` reports it
        return {}
    names: Names = {name: []}
    for key in dir(module):
        value = getattr(module, key)
        if key.startswith("_") or isinstance(value, ModuleType) or not _ours(value):
            continue
        names[f"{name}.{key}"] = _parameters(value)
        if isinstance(value, type):
            names |= _of_class(f"{name}.{key}", value)
    return names


def _ours(value: object) -> bool:
    """Whether a value is gradcli's own, not one that it imports from another library."""
    return str(getattr(value, "__module__", None) or "gradcli").startswith("gradcli")


def _of_class(name: str, kind: type) -> Names:
    """The methods, operators, properties and fields beyond those that every object has."""
    names: Names = {}
    for base in kind.__mro__:
        for key, annotation in inspect.get_annotations(base).items():
            if key[0] != "_" and not str(annotation).startswith("ClassVar"):
                names[f"{name}.{key}"] = []
    for key in set(dir(kind)) - set(dir(object)):
        value = getattr(kind, key)
        private = key[0] == "_" and (key[:2] != "__" or isinstance(value, type))
        if not private and (callable(value) or inspect.isdatadescriptor(value)):
            # Python hands operators their arguments: what these are called is seen by nobody.
            operator = key[:2] == "__" and key != "__call__"
            names[f"{name}.{key}"] = [] if operator else _parameters(value)
    return names


def _parameters(value: object) -> list[str]:
    """What is true of a call; nothing of a constant, or of what hands all arguments on."""
    if hasattr(value, "signature"):  # an op; `gradcli ops` says how it is called
        return []
    try:
        parameters = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    if {p.kind for p in parameters} >= _REST:
        return []
    words: list[str] = []
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not any(word[0] == "*" for word in words):
            words.append("*")
        words.append(_ADDRESS.sub("", str(p.replace(annotation=p.empty))))
    return _call_facts(words[1:] if words[:1] == ["self"] else words)


def _call_facts(words: Sequence[str]) -> list[str]:
    """What is true of a call of `x, dim=None, *, dtype=None`."""
    facts, by_name = [], False
    for place, word in enumerate(words):
        by_name |= word[0] == "*"
        facts += [f"takes {word}"] if word[0] != "*" else ["takes *"] * (len(word) > 1)
        facts += [f"takes {word} in place {place}"] * (not by_name)
    least = sum("=" not in word and word[0] != "*" for word in words)
    return facts + [f"needs at most {count} arguments" for count in range(least, MOST)]


# -- what commands say -----------------------------------------------------------------------------


def _answer(cli: click.Group, arguments: list[str]) -> dict[str, Any]:
    """The JSON that a command prints."""
    from click.testing import CliRunner

    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def _of_ops(answer: Mapping[str, Any]) -> Names:
    """The ops: how they are called, with which types, on which devices, with what gradients."""
    names: Names = {}
    for op in answer["ops"]:
        words = op["signature"].partition("(")[2].removesuffix(")")
        facts = _call_facts(words.split(", ") if words else [])
        facts += [f"takes {dtype}" for dtype in op["dtypes"]]
        facts += [f"runs on {device}" for device in op["devices"]]
        facts += ["has a gradient"] * (not op["gradient"].startswith("- "))
        facts += ["has a second gradient"] * bool(op["twice"])
        names[f"op {op['name']}"] = facts
    return names


def _of_commands(name: str, command: click.Command) -> Names:
    """A command, what it takes, and the commands below it."""
    facts = []
    for parameter in command.params:
        title = "its argument"
        if isinstance(parameter, click.Option):
            title = parameter.opts[0]
            facts += [f"takes {word}" for word in (*parameter.opts, *parameter.secondary_opts)]
        facts += [f"does without {title}"] * (not parameter.required)
        facts += [f"takes {title} {choice}" for choice in _choices(parameter)]
    names: Names = {name: facts}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            part = command.get_command(context, below)
            assert part is not None
            names |= _of_commands(f"{name}.{below}", part)
    return names


def _choices(parameter: click.Parameter) -> Sequence[str]:
    """The words that it may be, where it says so."""
    if isinstance(parameter.type, click.Choice):
        return [str(choice) for choice in parameter.type.choices]
    metavar = parameter.metavar or ""
    return metavar.split("|") if "|" in metavar else []


# -- configs ---------------------------------------------------------------------------------------


def _add_keys(
    names: Names,
    name: str,
    schema: Any,
    definitions: Mapping[str, Any],
    inside: tuple[str, ...] = (),
) -> None:
    """Add a part of the schema, and what is below it; a definition inside itself ends there."""
    if not isinstance(schema, dict):  # true or false: anything or nothing
        return
    reference = schema.get("$ref")
    if reference in inside:
        return
    if reference is not None:
        inside = (*inside, reference)
        schema = definitions[reference.rpartition("/")[2]]
    properties = schema.get("properties", {})
    title = properties.get("name", {}).get("const")  # one of several forms of the same key
    name = f"{name}[{title}]" if title else name
    names.setdefault(name, []).extend(_values(schema))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for part in schema.get(key, ()):
            _add_keys(names, name, part, definitions, inside)
    for key in ("items", "additionalProperties"):
        _add_keys(names, name, schema.get(key), definitions, inside)
    for key, part in properties.items():
        _add_keys(names, f"{name}.{key}", part, definitions, inside)
        names.setdefault(f"{name}.{key}", []).extend(
            ["can be left out"] * (key not in schema.get("required", ()))
        )


def _values(schema: Mapping[str, Any]) -> list[str]:
    """What a value may be, and what it is where it is left out."""
    kinds = schema.get("type", [])
    facts = [f"takes {kind}" for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    facts += ["takes integer"] * ("takes number" in facts)
    facts += [f"takes {value!r}" for value in schema.get("enum", ())]
    facts += [f"takes {schema[key]!r}" for key in ("const",) if key in schema]
    return facts + [f"is {schema[key]!r} where left out" for key in ("default",) if key in schema]


if __name__ == "__main__":
    print(json.dumps(collect()))
