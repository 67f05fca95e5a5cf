"""A right call with one argument spoilt, and what came of it. Each has a number, which makes it."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from module_targets import module_targets
from other_targets import other_targets
from targets import Arguments, Target, op_targets
from values import changed_tensors, has, plain_values, tensor_values

from gradcli.engine.precision import set_float32_matmul_precision
from gradcli.engine.random import default_generator
from gradcli.engine.tensor import Tensor
from gradcli.errors import GradcliError

# refused: a sentence that names what is called and the argument. vague: one that does not name
# both. allowed: the declared type has the value. silent: it has not, and nobody said so. raw: an
# error of Python's own.
Outcome = Literal["refused", "vague", "allowed", "silent", "raw"]
LONGEST = 500  # characters of a message: it never prints a whole tensor
# What is accepted although the declared type has it not: (target, argument), and the row of
# docs/differences.md that says so.
DOCUMENTED: dict[tuple[str, str], str] = {}
_BINDING = re.compile(r"(missing|unexpected keyword|takes|multiple values|positional-only)")


@dataclass(frozen=True)
class Result:
    """One spoilt call."""

    number: int
    target: str
    argument: str
    value: str
    outcome: Outcome
    message: str = ""

    def __str__(self) -> str:
        call = f"{self.target}: {self.argument} = {self.value}"
        return f"#{self.number} {self.outcome}: {call}: {self.message}"


@dataclass(frozen=True)
class Mutation:
    """A call of which one argument is wrong; `legal` where its declared type has the value."""

    argument: str
    value: Any
    args: Sequence[Any]
    named: dict[str, Any]
    legal: bool


@cache
def _families() -> list[tuple[list[list[Target]], int]]:
    """The targets of ops, modules and the rest, with their shares."""
    families = (op_targets(), 55), (module_targets(), 30), (other_targets(), 15)
    return [(list(targets.values()), share) for targets, share in families]


def mutate(number: int) -> tuple[Target, Mutation]:
    """The spoilt call of this number."""
    rng = random.Random(number)
    families = _families()
    [targets] = rng.choices([f for f, _ in families], [share for _, share in families])
    target = rng.choice(rng.choice(targets))
    return target, _spoil(rng, target, target.arguments())


def _spoil(rng: random.Random, target: Target, arguments: Arguments) -> Mutation:
    args, named = arguments
    way = rng.random()
    if way < 0.02:
        return Mutation("extra argument", "2", [*args, *[2] * 12], named, True)
    if way < 0.04 or not target.parameters:
        return Mutation("unknown", "1", args, {**named, "unknown": 1}, target.open)
    if way < 0.06 and args:
        return Mutation("missing argument", "", args[:-1], named, True)
    name = rng.choice(list(target.parameters))
    return _replace(rng, target, name, args, named)


def _replace(
    rng: random.Random, target: Target, name: str, args: list[Any], named: dict[str, Any]
) -> Mutation:
    hint = target.parameters[name]
    at = _position(target, name, args)
    before = named.get(name, args[at] if at is not None and at < len(args) else None)
    value = _value(rng, before)
    legal = has(hint, value)
    if at is None:
        return Mutation(name, value, args, {**named, name: value}, legal)
    if name == target.variadic:
        at = rng.randrange(at, max(len(args), at + 1))
        legal = True  # what such an argument may be, each function says in its own words
    return Mutation(name, value, [*args[:at], value, *args[at + 1 :]], named, legal)


def _position(target: Target, name: str, args: Sequence[Any]) -> int | None:
    """Where an argument stands that is given by position."""
    names = list(target.parameters)
    at = names.index(name) + (1 if target.method else 0)
    if name == target.variadic:
        return at
    by_name = target.variadic and at > names.index(target.variadic)
    return at if at < len(args) and not by_name else None


def _value(rng: random.Random, before: Any) -> Any:
    if isinstance(before, Tensor) and rng.random() < 0.5:
        return rng.choice(changed_tensors(before))
    if rng.random() < 0.15:
        return rng.choice(tensor_values())
    return rng.choice(plain_values())


def run(number: int) -> Result:
    """Call it, and judge."""
    target, one = mutate(number)
    state = default_generator.get_state()
    outcome: Outcome
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.after(target.call(*one.args, **one.named))
        known = one.legal or (target.name, one.argument) in DOCUMENTED
        outcome, message = ("allowed" if known else "silent"), ""
    except GradcliError as error:
        message = error.message
        outcome = "refused" if _names(message, target, one) else "vague"
    except TypeError as error:
        message = f"TypeError: {error}"
        outcome = "refused" if _BINDING.search(message) else _raised(one)
    except Exception as error:  # whatever it is, it is counted
        message, outcome = f"{type(error).__name__}: {error}", _raised(one)
    finally:
        default_generator.set_state(*state)
        set_float32_matmul_precision("highest")
    return Result(number, target.name, one.argument, _shown(one.value), outcome, message)


def _raised(one: Mutation) -> Outcome:
    """An error of Python's own is ours, unless a user's function that was passed has raised it."""
    return "allowed" if one.legal and callable(one.value) else "raw"


def _names(message: str, target: Target, one: Mutation) -> bool:
    """A message for people: short, and where a type is wrong it names function and argument."""
    owners = (target.name.rpartition(".")[2], *target.names, "requires_grad_")
    named = any(name in message for name in owners) and one.argument in message
    return len(message) <= LONGEST and (named or one.legal)


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, Tensor) else f"Tensor {value.dtype} {value.shape}"
    return text if len(text) <= 60 else f"{text[:57]}..."
