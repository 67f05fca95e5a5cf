"""Op: one declared operation. The declaration drives the API, the checks, the docs and the tests.

A forward function takes Arrays positionally (its inputs) and options as keywords, and returns one
Array or a tuple. Below it stands its gradient, which gets the incoming gradient, what `saves`
names, and the options it asks for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Generic, Literal, TypeVar, overload

from gradcli.engine import double_backward, graph, observing, table
from gradcli.engine.argument import beyond, hints_of, too_large
from gradcli.engine.array import Array
from gradcli.engine.autocast import autocast, rule_of
from gradcli.engine.device import scope
from gradcli.engine.fused import decomposing
from gradcli.engine.graph import Gradients, Node
from gradcli.engine.kind import Kind
from gradcli.engine.sample import Sample, Shares, Wrong, with_empty
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor, install, parents_of
from gradcli.errors import AutogradError, DTypeError, GradcliError, OptionError
from gradcli.wording import quantity

Forward = Callable[..., Any]
Result = TypeVar("Result", covariant=True)


def bare(signature: inspect.Signature) -> str:
    """A signature without types: the names and defaults."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(parameters, __validate_parameters__=False))


class Op(Generic[Result]):
    """A declared operation; call it with Tensors.

    Attributes:
        inputs: names of the tensor inputs, in order.
        options: names and defaults of everything else.
        outputs: names of what forward returns; the first `visible` go to the user, all of them
            where that is 0 (an op whose options say how many there are).
        saves: names of inputs and outputs that the gradient needs; only those are saved.
        why: why there is no gradient, where there is none.
        decomposition: the same computed by simpler ops, for fused ones. It may also ask for
            outputs that forward hides, such as what a random draw gave.
        double_backward_rule: how the gradient is differentiated: "linear" if the op is linear in
            its float inputs, "decomposition" through that, "own" by the declared rule.
        recomputed: gives inputs that are not saved but follow from what is, to the decomposition on
            its second backward pass; from what is saved, and the options.
        variadic: the first option may be given number by number, as in `x.reshape(2, 3)`.
        shares: whose memory the results lie in; nothing said: their own.
        cast: the inputs as autocast wants them; None where it leaves them alone.
        input_type: what stands for an input; some ops make Tensors of numbers.
    """

    input_type: Any = Tensor

    def __init__(
        self,
        forward: Forward,
        *,
        saves: str | Sequence[str] = (),
        outputs: Sequence[str] = ("y",),
        visible: int = 1,
        samples: Sequence[Sample] = (),
        wrong: Sequence[Wrong] = (),
        why: str = "",
        decomposition: Callable[..., Any] | None = None,
        double_backward: Literal["", "linear", "decomposition"] = "",
        recomputed: Callable[..., dict[str, Array | None]] | None = None,
        name: str | None = None,
        formula: str = "",
        variadic: bool = False,
        shares: Shares = "",
    ) -> None:
        self.name = name or forward.__name__
        self.forward = forward
        self.outputs = tuple(outputs)
        self.visible = visible
        self.saves = (saves,) if isinstance(saves, str) else tuple(saves)
        self.samples = with_empty(samples)
        self.wrong = tuple(wrong)
        self.why = why
        self.decomposition = decomposition
        self.recomputed = recomputed
        self.variadic = variadic
        self.shares = shares
        self.__doc__ = inspect.getdoc(forward) or ""
        self.formula = formula or self.__doc__.split("\n", 1)[0]
        self.slope = ""  # elementwise: the derivative, as written in scalar_ops.h
        parameters = inspect.signature(forward).parameters.values()
        self.inputs = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.optional = {p.name for p in parameters if p.default is None}
        self.options = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        empty = inspect.Parameter.empty
        self._names = (*self.inputs, *self.options)
        self._required = [name for name, default in self.options.items() if default is empty]
        self._gradient: Callable[..., Any] | None = None
        self._gradient_names: frozenset[str] = frozenset()
        # Where the values that `saves` names are found: among the outputs or the inputs.
        self._saved = [
            (n, n in self.outputs, (self.outputs if n in self.outputs else self.inputs).index(n))
            for n in self.saves
        ]
        self.cast = rule_of(self.name)
        self.double_backward_rule: str = double_backward
        self._double_backward: Callable[[Node, Sequence[Any]], Sequence[Any]] | None = None
        if double_backward:
            self._double_backward = partial(_RULES[double_backward], self)

    def gradient(self, function: Callable[..., object]) -> Callable[..., Any]:
        """Declare the gradient, as a decorator.

        Beside what `saves` names it may ask for options (`**` for all of them), for `needs` (which
        inputs want a gradient), and for the `shapes` and `dtypes` of the inputs.
        """
        parameters = list(inspect.signature(function).parameters.values())[1:]
        names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
        if len(names) < len(parameters):
            names += self.options
        available = {*self.inputs, *self.outputs, *self.options, "needs", "shapes", "dtypes"}
        unsaved = {n for n in names if n in {*self.inputs, *self.outputs}} - set(self.saves)
        assert set(names) <= available and not unsaved, f"{self.name}: gradient asks for {names}"
        self._gradient = function
        self._gradient_names = frozenset(names)
        return function

    def double_backward(
        self, rule: Callable[..., object], also: Sequence[str] = ()
    ) -> Callable[..., Any]:
        """Declare the gradient once more, from Tensors to Tensors, so that it has one itself.

        It may ask by name for what the gradient function asks for; `also` are further names.
        """
        self.double_backward_rule, self._double_backward = (
            "own",
            double_backward.bind_rule(self, rule, also),
        )
        return rule

    @cached_property
    def hints(self) -> dict[str, Any]:
        """What each argument may be, as an annotation."""
        kind = self.input_type
        inputs = {name: kind | None if name in self.optional else kind for name in self.inputs}
        return {**hints_of(self.forward), **inputs}

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """What each option may be."""
        return {name: Kind.of(self.hints[name]) for name in self.options}

    @property
    def differentiable(self) -> bool:
        """True when a gradient is declared."""
        return self._gradient is not None

    def backward(self, grads: Gradients, saved: dict[str, object]) -> Gradients:
        """Gradients of the inputs from those of the outputs and what the gradient asks for."""
        assert self._gradient is not None
        arriving = grads[0] if self.visible == 1 else tuple(grads)
        if scope.devices:
            with scope.on(scope.find(grads)):
                result = self._gradient(arriving, **saved)
        else:
            result = self._gradient(arriving, **saved)
        return result if isinstance(result, tuple) else (result,)

    def backward_create_graph(self, node: Node, grads: Sequence[object]) -> Sequence[Any]:
        """The same with Tensors, building a graph for double backward."""
        if self._double_backward is None:
            cure = (
                "compute the values under engine.decomposed()" if self.decomposition else self.why
            )
            raise AutogradError(
                f"{self.name}: its gradient cannot be differentiated; "
                f"{cure or 'write the values with simpler ops'}"
            )
        return self._double_backward(node, grads)

    def __repr__(self) -> str:
        return f"<op {self.name}{self.signature()}>"

    @property
    def __signature__(self) -> inspect.Signature:
        """How the op is called, for help() and for editors."""
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        defaults = {**dict.fromkeys(self.optional), **self.options}
        parameters = [
            inspect.Parameter(
                name,
                kind,
                default=defaults.get(name, empty),
                annotation="Tensor" if name in self.inputs else empty,
            )
            for name in (*self.inputs, *self.options)
        ]
        # What must be given may stand behind what may be left out.
        return inspect.Signature(parameters, __validate_parameters__=False)

    def signature(self) -> str:
        """The same as text."""
        return bare(self.__signature__)

    def __call__(self, *args: Any, **keywords: Any) -> Result:  # noqa: D102 -- each op's own doc
        return self.ran(*self._bind(args, keywords))

    def ran(self, inputs: list[Tensor | None], options: dict[str, Any]) -> Result:
        """The op on arguments that are sorted, its results on the device of its inputs."""
        if self.cast is not None:
            inputs = self.cast(inputs)
        if not scope.devices:
            return self._call(inputs, options)  # type: ignore[no-any-return]
        with scope.for_inputs(t.array for t in inputs if t is not None):
            return self._call(inputs, options)  # type: ignore[no-any-return]

    def _call(self, inputs: list[Tensor | None], options: dict[str, Any]) -> Any:
        arrays = [None if t is None else t.array for t in inputs]
        try:
            results = self.forward(*arrays, **options)
        except (GradcliError, OverflowError, ValueError) as error:
            self._refuse_numbers(error, options)
            raise
        outputs = results if isinstance(results, tuple) else (results,)
        if self.decomposition is not None and decomposing():
            return self._run_decomposition(inputs, options, outputs)
        node = None
        if self._gradient is not None and graph.grad_enabled() and _any_asks(inputs):
            node = self._node(parents_of(inputs), arrays, outputs, options)
        if self.visible == 1:
            y = Tensor(outputs[0]) if node is None else _tensor(outputs[0], node, 0)
            if self.shares:
                y.alias = arrays[0] is not None and outputs[0].storage is arrays[0].storage
            return y
        several = tuple(_tensor(a, node, i) for i, a in enumerate(outputs[: self.visible or None]))
        if self.shares:
            for y in several:
                y.alias = True
        return several

    def _refuse_numbers(self, error: Exception, options: dict[str, object]) -> None:
        """Raise an error that names the option, where a number beyond 64 bits caused this one."""
        if isinstance(error, OverflowError):
            raise too_large(self.name, options) from None
        unfit = beyond(self.name, options)  # Python writes no number of 4,300 digits: ValueError
        if unfit is not None:
            raise unfit from None

    def _run_decomposition(
        self, inputs: Sequence[Tensor | None], options: dict[str, object], outputs: Sequence[Array]
    ) -> Any:
        """Run the decomposition. The fused form ran before, to check the call and to draw."""
        assert self.decomposition is not None
        hidden = self.outputs[self.visible :] if self.visible else ()
        parameters = hidden and inspect.signature(self.decomposition).parameters
        for name, array in zip(hidden, outputs[self.visible :], strict=True):
            if name in parameters:
                options = {**options, name: None if array is None else Tensor(array)}
        with autocast(enabled=False):
            return self.decomposition(*inputs, **options)

    def _bind(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        """Sort arguments into inputs and options."""
        if keywords or self._required or len(args) > len(self.inputs):
            return self._bind_options(args, keywords)
        inputs = [*args, *[None] * (len(self.inputs) - len(args))]
        for name, value in zip(self.inputs, inputs, strict=True):
            if not isinstance(value, Tensor):
                self._input(name, value)
        return inputs, {}

    def _bind_options(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        """As `_bind`, for a call with options; by position they follow the inputs."""
        names, inputs_given = self._names, len(self.inputs)
        if self.variadic and len(args) > inputs_given:
            rest = args[inputs_given:]
            as_list = len(rest) == 1 and isinstance(rest[0], (tuple, list))
            args = (*args[:inputs_given], tuple(rest[0] if as_list else rest))
        if len(args) > len(names):
            raise OptionError(
                f"{self.name}: {quantity(len(args), 'argument')} for {self.signature()}"
            )
        values = dict(zip(names, args, strict=False))
        for name, value in keywords.items():
            # torch calls the first tensor `input`; formulas read better with x.
            slot = names[0] if name == "input" and name not in names else name
            if slot not in names:
                raise OptionError(f"{self.name}: no argument '{name}'; it is {self.signature()}")
            if slot in values:
                raise OptionError(f"{self.name}: argument '{name}' is given twice")
            values[slot] = value
        for name in self._required:
            if name not in values:
                raise OptionError(f"{self.name}: argument '{name}' is missing")
        return self._convert(values)

    def _convert(self, values: dict[str, Any]) -> tuple[list[Tensor | None], dict[str, Any]]:
        """The inputs, and the options converted to their kinds; refuses what does not fit."""
        inputs: list[Tensor | None] = []
        for name in self.inputs:
            value = values.pop(name, None)
            inputs.append(value if isinstance(value, Tensor) else self._input(name, value))
        kinds = self.kinds
        for name, value in values.items():
            kind = kinds[name]
            if type(value) in kind.quick:
                continue
            fits = type(value) is tuple and kind.elements and kind.elements.issuperset
            if not fits or not fits(map(type, value)):  # as of a shape: plain numbers only
                values[name] = kind.convert_argument(self.name, name, value)
        return inputs, values

    def _input(self, name: str, value: object) -> Tensor | None:
        if isinstance(value, Tensor) or (value is None and name in self.optional):
            return value
        type_name = "nothing" if value is None else type(value).__name__
        raise DTypeError(f"{self.name}: {name} must be a Tensor, got {type_name}")

    def _node(
        self,
        parents: list[Any],
        arrays: Sequence[Array | None],
        outputs: Sequence[Array],
        options: dict[str, Any],
    ) -> Node:
        values: dict[str, Any] = {
            name: (outputs if among_outputs else arrays)[i]
            for name, among_outputs, i in self._saved
        }
        saved = [a for a in values.values() if a is not None]
        for name, default in self.options.items():
            if name in self._gradient_names:
                values[name] = options.get(name, default)
        if "needs" in self._gradient_names:
            values["needs"] = tuple([parent is not None for parent in parents])
        if "shapes" in self._gradient_names:
            values["shapes"] = tuple([None if a is None else a.shape for a in arrays])
        if "dtypes" in self._gradient_names:
            values["dtypes"] = tuple([None if a is None else a.dtype for a in arrays])
        return Node(self, parents, values, self.visible or len(outputs), saved, options)


observing.tell_of(Op)

AnyOp = TypeVar("AnyOp", bound=Op[Any])


def _any_asks(tensors: Sequence[Tensor | None]) -> bool:
    """Whether one of them asks for a gradient."""
    for t in tensors:  # noqa: SIM110 -- a generator takes a tenth of a small call
        if t is not None and (t.node is not None or t.leaf is not None):
            return True
    return False


def _tensor(array: Array, node: Node | None, output: int) -> Tensor:
    return Tensor(array, node=node if array.dtype.is_floating_point else None, output=output)


_RULES = double_backward.RULES


@overload
def op(
    *, visible: Literal[1] = 1, method: bool = True, **declaration: Any
) -> Callable[[Forward], Op[Tensor]]: ...
@overload
def op(
    *, visible: int, method: bool = True, **declaration: Any
) -> Callable[[Forward], Op[tuple[Tensor, ...]]]: ...
def op(*, method: bool = True, **declaration: Any) -> Callable[[Forward], Op[Any]]:
    """Declare an op: `@op(saves=..., samples=[...])` above its forward function."""

    def declare(forward: Forward) -> Op[Any]:
        return declare_op(Op(forward, **declaration), method=method)

    return declare


def declare_op(op: AnyOp, *, method: bool = True) -> AnyOp:
    """Enter an op in the table, and as a method of Tensor."""
    table.enter(op.name, op)
    if method:
        install(op.name, op)
    return op


def declared_ops() -> list[Op[Any]]:
    """All declared ops, by name."""
    return [row for _, row in sorted(OPS.items()) if isinstance(row, Op)]
