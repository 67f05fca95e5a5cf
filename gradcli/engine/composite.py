"""Composite: a function composed of ops, entered in their table with the calls it is tried with.

It is written with Tensors and has no gradient of its own: gradients go back through the ops that it
calls. What is declared beside it serves the checks and the docs; a call is the plain function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from typing import Any, Literal, TypeVar, cast, get_args

from gradcli.dataclass import dataclass
from gradcli.engine import table
from gradcli.engine.argument import Arguments, beyond, too_large
from gradcli.engine.array import Array
from gradcli.engine.autocast import autocasted
from gradcli.engine.device import scope
from gradcli.engine.kind import members
from gradcli.engine.op import bare
from gradcli.engine.sample import Sample, Shares, Wrong, with_empty
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor, install
from gradcli.errors import (
    DTypeError,
    GradcliError,
    NumericsError,
    OptionError,
    RangeError,
    ShapeError,
)
from gradcli.registry import Registry
from gradcli.wording import quantity

F = TypeVar("F", bound=Callable[..., Any])
IN_PLACE = "it writes over its input, and refuses where a gradient would be lost"


@dataclass(frozen=True)
class Slot:
    """A parameter, and which of a sample's inputs it takes.

    Attributes:
        accepts: "one" of them, "several", or none.
        needed: whether it is always a tensor.
        starred: whether what it takes stands in a call one by one.
    """

    name: str
    default: Any
    accepts: Literal["", "one", "several"]
    required: bool
    starred: bool

    @classmethod
    def of(cls, parameter: inspect.Parameter, hint: object) -> Slot:
        """What the type of a parameter says."""
        allowed = members(hint)
        items = [get_args(kind)[:1] for kind in allowed]
        starred = parameter.kind is parameter.VAR_POSITIONAL
        accepts: Literal["", "one", "several"] = ""
        if starred or any(item and Tensor in members(*item) for item in items):
            accepts = "several"
        elif Tensor in allowed or Any in allowed:
            accepts = "one"
        return cls(parameter.name, parameter.default, accepts, hint is Tensor, starred)


class Composite:
    """What the checks and the docs know of a function composed of ops.

    Attributes:
        plain: the function itself.
        samples: calls it is tried with; a parameter named in the options takes its value from
            there, one that is `Sequence[Tensor]` takes several inputs, any other of tensors one.
        wrong: calls that it refuses.
        why: why no gradient goes through it, where none does.
        shares: whose memory the results lie in; nothing said: their own.
        tuple_if: options by which the result is a tuple, where it may be one.
    """

    def __init__(
        self,
        plain: Callable[..., object],
        *,
        name: str = "",
        samples: Sequence[Sample] = (),
        wrong: Sequence[Wrong] = (),
        why: str = "",
        shares: Shares = "",
        tuple_if: Sequence[str] = (),
    ) -> None:
        self.name = name or plain.__name__
        self.plain = plain
        self.__doc__ = inspect.getdoc(plain) or ""
        self.samples = with_empty(samples)
        self.wrong = tuple(wrong)
        self.why = why
        self.shares: Shares = "input" if why == IN_PLACE else shares
        self.tuple_if = tuple_if

    @property
    def differentiable(self) -> bool:
        """True when gradients go through it."""
        return not self.why

    @cached_property
    def arguments(self) -> Arguments:
        """What each argument may be."""
        return Arguments(self.name, self.plain)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The parameters of the plain function."""
        parameters = inspect.signature(self.plain).parameters.values()
        return tuple(Slot.of(p, self.arguments.hints.get(p.name)) for p in parameters)

    def signature(self) -> str:
        """How it is called."""
        return bare(inspect.signature(self.plain))

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """The plain function on a sample's inputs and options; what it wrote into, if no result."""
        args, keywords = self.arrange(inputs, options)
        result = self.plain(*args, **keywords)
        return inputs[0] if result is None and inputs else result

    def arrange(
        self, inputs: Sequence[object], options: dict[str, object]
    ) -> tuple[list[Any], dict[str, Any]]:
        """A sample as arguments: inputs where they stand, the options behind them by name."""
        rest = list(inputs)
        values: list[Any] = []
        last = 0  # parameters up to the last one that takes an input
        for i, slot in enumerate(self.slots, 1):
            if slot.name in options:
                values.append(options[slot.name])
                last = i if slot.starred else last
            elif slot.accepts == "several":
                mine = len(rest) - sum(later.required for later in self.slots[i:])
                values.append(rest[:mine])
                del rest[:mine]
                last = i
            elif rest and slot.accepts:
                values.append(rest.pop(0))
                last = i
            else:
                values.append(slot.default)
        assert not rest, f"{self.name}: {quantity(len(rest), 'input')} more than it takes"
        args: list[Any] = []
        for slot, value in zip(self.slots[:last], values, strict=False):
            args += value if slot.starred else [value]
        names = (slot.name for slot in self.slots[last:])
        return args, {name: options[name] for name in names if name in options}


FUNCTIONS: Registry[Composite] = Registry("function")
# Errors of what a user passed.
_OF_ARGUMENTS = (ShapeError, DTypeError, RangeError, OptionError, NumericsError)


def beside_inputs(name: str, plain: F, label: str) -> F:
    """The function, with what it makes on the device of the first tensor that it is given.

    It refuses, as `label` or under its name, arguments that do not fit their annotations, and
    what the ops that it calls refuse.
    """
    arguments = Arguments(label or name, plain)
    decided = arguments.decided

    @wraps(plain)
    def wrapper(*args: object, **keywords: object) -> Any:
        if keywords or tuple(map(type, args)) not in decided:
            args, keywords = arguments.convert(args, keywords)
        try:
            if not scope.devices:
                return plain(*args, **keywords)
            with scope.for_inputs(_arrays((*args, *keywords.values()))):
                return plain(*args, **keywords)
        except OverflowError:
            raise too_large(arguments.name, arguments.by_name(args, keywords)) from None
        except (GradcliError, ValueError) as error:  # Python writes no number of 4,300 digits
            unfit = beyond(arguments.name, arguments.by_name(args, keywords))
            if unfit is not None:
                raise unfit from None
            if isinstance(error, _OF_ARGUMENTS):
                rename(error, arguments.name)
            raise

    wrapper.__name__ = name
    return cast(F, wrapper)


def rename(error: GradcliError, name: str) -> None:
    """Put the name of the function that the user called before an op's refusal."""
    op, colon, sentence = error.message.partition(": ")
    if colon and op != name and op in OPS and not error.of_earlier_op:
        error.message = f"{name}: {sentence}"
        error.args = (error.message,)


def _arrays(values: Sequence[object]) -> Iterator[Array]:
    """Those of the tensors among the arguments of a call."""
    for value in values:
        if isinstance(value, Tensor):
            yield value.array
        elif isinstance(value, (list, tuple)):
            yield from _arrays(value)


def function(
    name: str | None = None,
    *,
    method: bool = True,
    samples: Sequence[Sample] = (),
    wrong: Sequence[Wrong] = (),
    why: str = "",
    shares: Shares = "",
    tuple_if: Sequence[str] = (),
    label: str = "",
) -> Callable[[F], F]:
    """Enter a plain function composed of ops, under its name; it becomes a method as well.

    `label` is its name in refusals, where the user writes an operator.
    """

    def enter(plain: F) -> F:
        own = name or plain.__name__
        wrapper = autocasted(own, beside_inputs(own, plain, label))
        row = Composite(
            wrapper,
            name=own,
            samples=samples,
            wrong=wrong,
            why=why,
            shares=shares,
            tuple_if=tuple_if,
        )
        FUNCTIONS.add(row.name, row)
        table.enter(row.name, wrapper)
        if method:
            install(row.name, wrapper)
        return wrapper

    return enter


def declared_functions() -> list[Composite]:
    """All functions that have a name of their own and take or give tensors, by name."""
    functions = sorted(FUNCTIONS.items())
    return [row for name, row in functions if not name.startswith("_") and row.samples]
