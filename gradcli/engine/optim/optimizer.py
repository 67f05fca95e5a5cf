"""Optimizer: parameters in groups with options, and the numbers kept for each parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any, ClassVar, Self

from gradcli.engine import dtype as dtypes
from gradcli.engine import recording, table
from gradcli.engine.array import Array, copy_into, empty, fill, run, scalar
from gradcli.engine.device import cpu, scope
from gradcli.engine.device.context import device_named
from gradcli.engine.kind import format_value
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.tensor import Tensor
from gradcli.engine.transfer import to_device
from gradcli.errors import DTypeError, OptionError, ShapeError
from gradcli.wording import quantity

Group = dict[str, Any]
First = Callable[[str, Tensor], Tensor]
FIRST_RATE = "initial_lr"  # of a group: what its schedulers set out from


class _StateSlots:
    """What is kept for the parameters of a group: their state, and what the kernels read besides.

    `hyper` has a row (learning rate, step from 1) for each parameter, in memory that outlives a
    step: a recorded call reads it anew, so a schedule needs no new call.
    """

    def __init__(self, group: Group, names: tuple[str, ...], first: First) -> None:
        self.group = group
        self.names = names
        self.params: list[Tensor] = group["params"]
        with scope.on(None):  # Python writes these
            self.hyper = zeros((len(self.params), 2), dtype=dtypes.float64)
            self._rate = zeros((1,), dtype=dtypes.float64)
        self.rows_read = [self.hyper.array.view((2,), (1,), 2 * i) for i in range(len(self.params))]
        self._numbers = cpu.doubles(self.hyper.array.storage)
        self._rate_number = cpu.doubles(self._rate.array.storage)
        self._rate_recorded = False  # the rate comes from a recorded call
        self.state = [{name: first(name, p) for name in names} for p in self.params]

    def advance(self, active: Sequence[int]) -> None:
        """One step further for these parameters, at the group's learning rate."""
        recorder = recording.current()
        if recorder is not None:
            recorder.varies(self, lambda: self)
            recorder.assume(self, "taken_for_granted")
            if not self._rate_recorded:
                self.rows(1)
            self._advance_by_calls(active)
            self._rate_recorded = False
            return
        rate = float(self.group["lr"])
        for i in active:
            self._numbers[2 * i] = rate
            self._numbers[2 * i + 1] += 1
        self.hyper.array.storage.version += 1

    def _advance_by_calls(self, active: Sequence[int]) -> None:
        hyper = self.hyper.array
        run(
            "copy",
            self._rate.array.expand((len(self.params),)),
            hyper.view((len(self.params),), (2,)),
        )
        whole = list(active) == list(range(len(self.params)))
        for first, count in [(0, len(self.params))] if whole else [(i, 1) for i in active]:
            steps = hyper.view((count,), (2,), 2 * first + 1)
            run("add", steps, scalar(1.0, dtypes.float64).expand((count,)), steps)

    @property
    def taken_for_granted(self) -> tuple[Any, ...]:
        """What recorded calls were made with: options but the rate, and where gradients go."""
        options = [v for name, v in self.group.items() if name not in ("params", "lr")]
        return (*options, *((p.leaf, p.array) for p in self.params))

    def varying(self) -> Array:
        """Where recorded calls find the learning rate."""
        return self._rate.array

    def rows(self, steps: int) -> None:
        """The group's learning rate as it is now, for any number of steps."""
        del steps
        self._rate_number[0] = self.group["lr"]

    def undo(self) -> None:
        """Nothing: the calls kept count, and they are undone."""
        self._rate_recorded = False

    def take_rate(self, rate: Array) -> None:
        """Use this learning rate in the captured step, instead of the group's."""
        copy_into(self._rate.array, rate)
        self._rate_recorded = True


class Optimizer:
    """Changes parameters by their gradients; those without a gradient are left alone.

    Subclasses name their state tensors, give their options to the constructor, and update one
    parameter. State exists from construction on.
    """

    state_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: Iterable[Any], defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise DTypeError(f"{self._name}: params must be a list of Tensors, got one Tensor")
        if not isinstance(params, Iterable):
            kind = type(params).__name__
            cure = "; pass its parameters()" if hasattr(params, "parameters") else ""
            raise DTypeError(f"{self._name}: params must be a list of Tensors, got {kind}{cure}")
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self._groups: list[_StateSlots] = []
        self._slots_of: dict[int, tuple[_StateSlots, int]] = {}
        items = list(params)
        if not items:
            raise OptionError(f"{self._name}: got no parameters")
        groups = items if isinstance(items[0], Mapping) else [{"params": items}]
        for group in groups:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """Names of the state tensors that parameters of this group need."""
        del group
        return self.state_names

    def first_state(self, group: Group, name: str, parameter: Tensor) -> Tensor:
        """A state tensor as it is before the first step."""
        del group, name
        return table.zeros_like(parameter)

    def add_param_group(self, param_group: Mapping[str, object]) -> None:
        """Add parameters, with options of their own where given."""
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise DTypeError(
                f"{self._name}: a group must be a dict with 'params', "
                f"got {format_value(param_group)}"
            )
        unknown = set(param_group) - {"params", FIRST_RATE, *self.defaults}
        if unknown:
            raise OptionError(
                f"{self._name}: no option '{min(unknown)}'; it has {', '.join(self.defaults)}"
            )
        members = param_group["params"]
        if not isinstance(members, Iterable):
            raise DTypeError(
                f"{self._name}: params must be a list of Tensors, got {format_value(members)}"
            )
        params = [members] if isinstance(members, Tensor) else list(members)
        group = {**self.defaults, **param_group, "params": params}
        self._check(group)
        for i, p in enumerate(params):
            self._check_parameter(group, p, {*self._slots_of, *map(id, params[:i])})
        slots = _StateSlots(group, self.kept_for(group), partial(self.first_state, group))
        self._slots_of.update((id(p), (slots, i)) for i, p in enumerate(params))
        self._groups.append(slots)
        self.param_groups.append(group)

    def _check(self, group: Group) -> None:
        """Refuse options that cannot be; every subclass has its own."""

    def _check_parameter(self, group: Group, parameter: object, owned: Set[int]) -> None:
        del group
        if not isinstance(parameter, Tensor):
            kind = type(parameter).__name__
            raise DTypeError(f"{self._name}: a parameter must be a Tensor, got {kind}")
        if not parameter.is_leaf:
            raise OptionError(f"{self._name}: only leaves can be optimized, got an op's result")
        if not parameter.is_floating_point() or not parameter.is_contiguous():
            raise OptionError(
                f"{self._name}: a parameter must be a contiguous float tensor, got "
                f"{parameter.dtype} {parameter.shape} with strides {parameter.stride()}"
            )
        if not parameter.array.storage.writable:
            raise OptionError(f"{self._name}: a parameter lies in read-only memory; use a clone()")
        if id(parameter) in owned:
            raise OptionError(
                f"{self._name}: a parameter of shape {parameter.shape} is given twice"
            )

    # -- stepping ------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or overwrite them with 0."""
        for p in self._parameters():
            if p.leaf is not None:
                p.leaf.clear(set_to_none)

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        for group, slots in zip(self.param_groups, self._groups, strict=True):
            if slots.names != self.kept_for(group):
                raise OptionError(
                    f"{self._name}: its options were changed so that it has to keep "
                    f"{list(self.kept_for(group))} instead of {list(slots.names)}; "
                    "make a new optimizer"
                )
            grads = [None if p.leaf is None else p.leaf.grad for p in slots.params]
            slots.advance([i for i, grad in enumerate(grads) if grad is not None])
            for i, grad in enumerate(grads):
                if grad is not None:
                    self._step_one(group, slots, i, grad)

    def _step_one(self, group: Group, slots: _StateSlots, i: int, grad: Array) -> None:
        parameter = slots.params[i].array
        if group.get("maximize"):
            up, grad = grad, empty(grad.shape, grad.dtype)
            run("neg", up.contiguous(), grad)
        state = [tensor.array for tensor in slots.state[i].values()]
        self.update(group, grad.contiguous(), slots.rows_read[i], parameter, state)
        for array in (parameter, *state):
            array.storage.version += 1

    def take_rates(self, rates: Tensor) -> None:
        """The learning rates of the groups, float64 (groups,), for the steps from here on.

        In a captured step this is how a schedule reaches every replay; elsewhere it is the same
        as setting `lr` in each group.
        """
        if rates.shape != (len(self._groups),) or rates.dtype is not dtypes.float64:
            raise ShapeError(
                f"{self._name}: take_rates wants float64 ({len(self._groups)},), "
                f"got {rates.dtype} {rates.shape}"
            )
        if recording.current() is not None:
            for i, slots in enumerate(self._groups):
                slots.take_rate(rates[i : i + 1].array)
            return
        for group, rate in zip(self.param_groups, rates.tolist(), strict=True):
            group["lr"] = rate

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """Overwrite one parameter and its state; the kernel of the subclass."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        raise OptionError(
            f"{self._name}: an optimizer is not copied; make one for the copied parameters and "
            "give it this one's state_dict()"
        )

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    # -- state ---------------------------------------------------------------------------------

    @property
    def state(self) -> dict[Tensor, dict[str, Tensor]]:
        """What is kept for each parameter: `step`, and the tensors the class names."""
        return {p: self._state_of(p) for p in self._parameters()}

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        slots, i = self._slots_of[id(parameter)]
        return {"step": slots.hyper[i, 1], **slots.state[i]}

    def state_tensors(self) -> dict[str, Tensor]:
        """All state by name, as in "exp_avg.0"; writing to a tensor changes the optimizer."""
        return {
            f"{name}.{i}": tensor
            for i, p in enumerate(self._parameters())
            for name, tensor in self._state_of(p).items()
        }

    def state_dict(self) -> dict[str, Any]:
        """As in torch: state by the parameter's number, and groups of such numbers."""
        number = {id(p): i for i, p in enumerate(self._parameters())}
        groups = [
            {**group, "params": [number[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {i: self._state_of(p) for i, p in enumerate(self._parameters())}
        return {"state": state, "param_groups": groups}

    def to(self, device: str) -> Self:
        """What is kept for each parameter, moved to a device where the parameters lie."""
        there = device_named(device)
        for slots in self._groups:
            for state in slots.state:
                for tensor in state.values():
                    tensor.array = to_device(tensor.array, there)
        return self

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over options and state; all is compared before anything is copied.

        State that is missing (torch has none before the first step) becomes 0.
        """
        if not isinstance(state_dict, Mapping) or "param_groups" not in state_dict:
            raise DTypeError(
                "load_state_dict: takes what state_dict() gives, a dict with 'state' and "
                f"'param_groups', got {type(state_dict).__name__}"
            )
        groups = state_dict["param_groups"]
        here = [len(group["params"]) for group in self.param_groups]
        there = [len(group["params"]) for group in groups]
        if here != there:
            raise OptionError(
                f"load_state_dict: {self._name} has groups of {quantity(str(here), 'parameter')}, "
                f"the state {there}"
            )
        numbers = [number for group in groups for number in group["params"]]
        copies: list[tuple[Tensor, Any]] = []
        for number, p in zip(numbers, self._parameters(), strict=True):
            copies += self._copies(number, p, state_dict["state"].get(number, {}))
        options = [
            self._options_of(new, mine) for mine, new in zip(self.param_groups, groups, strict=True)
        ]
        for mine, new in zip(self.param_groups, options, strict=True):
            mine.update(new)
        for tensor, value in copies:
            if isinstance(value, Tensor):
                copy_into(tensor.array, value.array)
            else:
                fill(tensor.array, value)
                tensor.array.storage.version += 1

    def _options_of(self, new: Mapping[str, object], mine: Group) -> Group:
        names = [name for name in (*self.defaults, FIRST_RATE) if name in new]
        group = {**mine, **{name: new[name] for name in names}}
        self._check(group)
        return {name: group[name] for name in names}

    def _copies(
        self, number: object, parameter: Tensor, saved: Mapping[str, object]
    ) -> list[tuple[Tensor, Any]]:
        """Pairs (own tensor, new value) of one parameter."""
        new = {name: value for name, value in saved.items() if value is not None}
        # In torch SGD keeps no step: a momentum that exists means that there was one.
        new.setdefault("step", int(any(name in new for name in self.state_names)))
        state = self._state_of(parameter)
        group = self._slots_of[id(parameter)][0].group
        for name, tensor in state.items():
            value = new.get(name)
            if value is None:
                value = new[name] = self.first_state(group, name, parameter)
            if isinstance(value, Tensor) and value.shape != tensor.shape:
                raise ShapeError(
                    f"load_state_dict: {name} of parameter {number} has shape {value.shape}, "
                    f"expected {tensor.shape}"
                )
        return [(tensor, new[name]) for name, tensor in state.items()]

    def __repr__(self) -> str:
        lines = [f"{self._name} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])
