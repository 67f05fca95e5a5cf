"""Kind: which values an annotation allows, and how it is said.

`Kind.of(annotation)` knows int, float, bool, str, Literal, None, Sequence, tuple, Callable, classes
such as Tensor and DType, unions of them, and Annotated with a Bound. A value whose type says enough
costs one look at that type. Whole numbers and truths of other libraries become Python's.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import isfinite
from numbers import Real
from typing import Annotated, Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from gradcli.dataclass import dataclass
from gradcli.engine.dtype import DType
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, GradcliError, OptionError, OptionTypeError
from gradcli.wording import quantity


class Unfit(Exception):  # noqa: N818 -- becomes a GradcliError where the argument's name is known
    """A value that a kind does not take; `path` leads to it inside of a list, as in [2]."""

    def __init__(
        self, description: str, value: object, error: type[GradcliError] = OptionTypeError
    ) -> None:
        super().__init__(description)
        self.description = description
        self.value = value
        self.error = error
        self.path = ""

    def refusal(self, function: str, name: str) -> GradcliError:
        """The sentence for the user."""
        text = format_value(self.value)
        return self.error(f"{function}: {name}{self.path} must be {self.description}, got {text}")


def format_value(value: object) -> str:
    """A value in a few words: numbers and text as they are, tensors and lists by what they are."""
    if isinstance(value, Tensor):
        return f"a {value.dtype} Tensor of shape {value.shape}"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return f"a number of {quantity(value.bit_length(), 'bit')}"
    if value is None or isinstance(value, (bool, int, float, str, DType)):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    if isinstance(value, (list, tuple)) and len(value) <= 4 and _plain(value):
        return repr(value)
    if isinstance(value, (list, tuple, dict, set)):
        return f"a {type(value).__name__} of {len(value)}" if value else repr(value)
    return type(value).__name__


def _plain(values: Sequence[object]) -> bool:
    """Whether these are numbers of few digits, or None."""
    return all(
        value is None or (isinstance(value, (int, float)) and abs(value) < 1e9) for value in values
    )


@dataclass(frozen=True)
class Kind:
    """What an argument may be.

    Attributes:
        description: in words, as in "dim must be a whole number".
        taken: the value as it is used; raises Unfit.
        quick: values of exactly these types are taken as they are.
        types: values of exactly these types are checked, but fit no other kind any better.
        elements: lists of exactly these types are taken as they are.
        classes: values of these classes and those below are taken as they are.
        error: what is raised where nothing fits.
    """

    description: str
    convert: Callable[[Any], Any]
    quick: frozenset[type] = frozenset()
    types: frozenset[type] = frozenset()
    error: type[GradcliError] = OptionTypeError
    classes: tuple[type, ...] = ()
    elements: frozenset[type] = frozenset()

    def decides(self, type_: type) -> bool:
        """Whether values of this type are taken as they are, whatever they are."""
        return type_ in self.quick or issubclass(type_, self.classes)

    def convert_argument(self, function: str, name: str, value: object) -> Any:
        """An argument of a function as it is used; the refusal names both."""
        try:
            return value if type(value) in self.quick else self.convert(value)
        except Unfit as unfit:
            raise unfit.refusal(function, name) from None

    @staticmethod
    def of(annotation: object) -> Kind:
        """What an annotation allows."""
        return _kind_of(annotation)


@cache
def _kind_of(annotation: Any) -> Kind:
    origin, inner = get_origin(annotation), get_args(annotation)
    if (origin or annotation) in _PLAIN:
        return _PLAIN[origin or annotation]
    if origin is Annotated:
        return _bounded(Kind.of(inner[0]), inner[1:])
    if origin is Literal:
        return _one_of(inner)
    if len(members(annotation)) > 1:
        return _either([Kind.of(part) for part in inner])
    if origin is tuple and inner[-1] is not Ellipsis:
        return _tuple_of([Kind.of(part) for part in inner])
    if origin in _LISTS:
        return _list(Kind.of(inner[0]))
    if isinstance(origin or annotation, type):
        return _instance(origin or annotation)
    raise AssertionError(f"no argument can be declared as {annotation!r}")


def members(annotation: object) -> tuple[Any, ...]:
    """What a union consists of; of anything else, that itself."""
    union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if union else (annotation,)


@dataclass(frozen=True)
class Bound:
    """What a value must fulfil besides its type, or how that is said, as a note of Annotated.

    Attributes:
        limits: the ends of a range as ("ge" | "gt" | "le" | "lt", number), for schemas of values
            that come from files; `holds` decides here.
    """

    description: str
    holds: Callable[[Any], bool] | None = None
    limits: tuple[tuple[str, float], ...] = ()


def within(
    description: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
) -> Bound:
    """The bound of numbers from `ge`, or above `gt`, up to `le`, or below `lt`."""
    ends = {"ge": ge, "gt": gt, "le": le, "lt": lt}
    limits = tuple((name, end) for name, end in ends.items() if end is not None)
    tests = [partial(_COMPARE[name], end) for name, end in limits]
    if len(tests) == 1:
        return Bound(description, tests[0], limits)
    return Bound(description, lambda x: tests[0](x) and tests[1](x), limits)


_COMPARE = {
    "ge": operator.le,
    "gt": operator.lt,
    "le": operator.ge,
    "lt": operator.gt,
}  # end on the left


def _whole(value: Any) -> int:
    """A whole number that a kernel can be told; also NumPy's, and a tensor of one."""
    if type(value) is int and -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return value
    try:
        if isinstance(value, Tensor):
            fits = value.numel() == 1 and value.dtype.kind == "int"
        else:
            fits = not isinstance(value, bool)
        number = operator.index(value) if fits else None
    except TypeError:
        number = None
    if number is None:
        raise Unfit("a whole number", value)
    if number.bit_length() > 63 and number != _LEAST:
        raise Unfit("a whole number within 64 bits", value, OptionError)
    return value if isinstance(value, int) else number


def _real(value: object) -> float:
    """A number of 64 bits; also NumPy's, and a tensor of one that asks for no gradient."""
    if isinstance(value, Tensor):
        if value.numel() == 1 and value.dtype.kind != "bool" and not value.requires_grad:
            return cast(float, value.item())
    elif isinstance(value, float):
        return float(value)  # NumPy's are floats too, and take over what they are multiplied by
    elif isinstance(value, Real) and not isinstance(value, bool):
        return _whole(value) if hasattr(value, "__index__") else float(value)
    raise Unfit("a number", value)


def _truth(value: object) -> bool:
    """True or False; also NumPy's, which are no bool."""
    if isinstance(value, bool):
        return value
    if getattr(value, "shape", None) == () and getattr(value, "dtype", None) == "bool":
        return bool(value)
    raise Unfit("True or False", value)


def _instance(kind: type) -> Kind:
    description = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    error: type[GradcliError] = DTypeError if kind is Tensor else OptionTypeError

    def convert(value: object) -> Any:
        if isinstance(value, kind):
            return value
        raise Unfit(description, value, error)

    return Kind(description, convert, frozenset((kind,)), error=error, classes=(kind,))


def _one_of(choices: tuple[object, ...]) -> Kind:
    few = len(choices) <= 2
    description = (" or " if few else ", ").join(map(repr, choices))
    description = description if few else f"one of {description}"
    kinds = {type(choice) for choice in choices}

    def convert(value: object) -> Any:
        if type(value) in kinds and value in choices:
            return value
        raise Unfit(description, value, OptionError if type(value) in kinds else OptionTypeError)

    return Kind(description, convert, types=frozenset(kinds))


def _bounded(kind: Kind, notes: tuple[object, ...]) -> Kind:
    bounds = [note for note in notes if isinstance(note, Bound)]

    def convert(value: object) -> Any:
        try:
            number = value if type(value) in kind.quick else kind.convert(value)
        except Unfit as unfit:
            raise unfit if unfit.path else Unfit(description, value, unfit.error) from None
        try:
            fits = all(bound.holds is None or bound.holds(number) for bound in bounds)
        except OverflowError:  # a whole number that no float holds
            fits = False
        if not fits:
            raise Unfit(description, value, OptionError)
        return number

    if not bounds:
        return kind
    description = bounds[0].description
    by_type = all(bound.holds is None for bound in bounds)  # as without the note
    if by_type:
        return replace(kind, description=description, convert=convert)
    return Kind(description, convert, types=kind.quick | kind.types, error=kind.error)


def _either(kinds: Sequence[Kind]) -> Kind:
    *rest, last = (kind.description for kind in kinds)
    description = f"{', '.join(rest)} or {last}"
    quick = frozenset[type]().union(*(kind.quick for kind in kinds))
    claims = [cls for kind in kinds for cls in kind.types]
    only = {cls: kind for kind in kinds for cls in kind.types if claims.count(cls) == 1}
    errors = {kind.error for kind in kinds if kind.description != "None"}
    error = DTypeError if DTypeError in errors else OptionTypeError

    def convert(value: object) -> Any:
        if type(value) in only:
            return only[type(value)].convert(value)
        nearest = Unfit(description, value, error)
        for kind in kinds:
            try:
                return kind.convert(value)
            except Unfit as unfit:
                if unfit.path:  # it is a list, of which one element does not fit
                    nearest = unfit
                elif unfit.error is OptionError:
                    nearest.error = OptionError
        raise nearest

    classes = tuple(cls for kind in kinds for cls in kind.classes)
    elements = frozenset[type]().union(*(kind.elements for kind in kinds))
    return Kind(description, convert, quick, frozenset(claims), error, classes, elements)


def _list(kind: Kind) -> Kind:
    description, quick = f"a tuple or list (each {kind.description})", kind.quick

    def convert(value: object) -> Any:
        if isinstance(value, (tuple, list)) and quick.issuperset(map(type, value)):
            return value
        if not isinstance(value, (tuple, list, range)):
            raise Unfit(description, value, kind.error)
        return _each(value, [kind] * len(value))

    lists = frozenset((tuple, list))
    return Kind(description, convert, types=lists, error=kind.error, elements=kind.quick)


def _tuple_of(kinds: Sequence[Kind]) -> Kind:
    description = f"a tuple of {len(kinds)} (" + ", ".join(kind.description for kind in kinds) + ")"

    def convert(value: object) -> Any:
        if not isinstance(value, (tuple, list)):
            raise Unfit(description, value)
        if len(value) != len(kinds):
            raise Unfit(description, value, OptionError)
        return _each(value, kinds)

    return Kind(description, convert, types=frozenset((tuple, list)))


def _each(values: Sequence[object], kinds: Sequence[Kind]) -> Sequence[Any]:
    """The list itself, or a tuple where an element became another."""
    converted = {}
    for i, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        if type(value) in kind.quick:
            continue
        try:
            number = kind.convert(value)
        except Unfit as unfit:
            unfit.path = f"[{i}]{unfit.path}"
            raise
        if number is not value:
            converted[i] = number
    if not converted:
        return values
    return tuple(converted.get(i, value) for i, value in enumerate(values))


def _function(value: object) -> Any:
    if callable(value):
        return value
    raise Unfit("a function", value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise Unfit("a text", value)


def _nothing(value: object) -> None:
    if value is not None:
        raise Unfit("None", value)


def _element_type(value: object) -> DType:
    if isinstance(value, DType):
        return value
    raise Unfit(_DTYPE, value, DTypeError)


_DTYPE = "an element type such as engine.float32"
_LEAST = -(2**63)
_LISTS = (list, tuple, Sequence)
_NONE = Kind("None", _nothing, frozenset((type(None),)))
_ANY = Kind("anything", lambda value: value, classes=(object,))
_PLAIN: dict[Any, Kind] = {
    int: Kind("a whole number", _whole, frozenset((int,))),
    float: Kind("a number", _real, frozenset((float, int))),
    bool: Kind("True or False", _truth, frozenset((bool,))),
    str: Kind("a text", _text, frozenset((str,))),
    None: _NONE,
    type(None): _NONE,
    DType: Kind(_DTYPE, _element_type, frozenset((DType,)), error=DTypeError),
    Callable: Kind("a function", _function),
    Any: _ANY,
    object: _ANY,
}

# What is said in many declarations.
Count = Annotated[int, within("a whole number >= 1", ge=1)]
Whole = Annotated[int, within("a whole number >= 0", ge=0)]
NotNegative = Annotated[float, within("a number >= 0", ge=0)]
Positive = Annotated[float, within("a number > 0", gt=0)]
Portion = Annotated[float, within("a number from 0 to 1", ge=0, le=1)]
Share = Annotated[float, within("a number in [0, 1)", ge=0, lt=1)]
Finite = Annotated[float, Bound("a finite number", isfinite)]
Reduction = Literal["none", "mean", "sum"]  # what becomes of the terms of a loss
Number = Annotated[float | bool, Bound("a number")]  # True and False are 1 and 0 here
Operand: TypeAlias = Tensor | Number
OneDim = Annotated[int, Bound("a whole number (amax and amin take several)")]
Sizes = int | Sequence[int]  # one by one, or all of them at once
