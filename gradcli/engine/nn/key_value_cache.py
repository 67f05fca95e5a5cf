"""KeyValueCache: what layers have seen, so that a model is asked for new steps only."""

from __future__ import annotations

from gradcli.wording import quantity, verb

__all__ = ["StatefulModule", "KeyValueCache"]

from collections import Counter
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

from gradcli.engine.constructor import checked_constructor
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import Count
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.steps import obstacle
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError

_running: ContextVar[KeyValueCache | None] = ContextVar("cache", default=None)
_Place = tuple[int, int]  # the id of a module, and which of its calls in a pass
_CURE = "; a forward reads it once, then sets it once"


class StatefulModule(Module):
    """A module whose result for a step depends on the steps before it.

    While a KeyValueCache runs its model, the module finds there what it needs of them.
    """

    @property
    def cache(self) -> KeyValueCache | None:
        """The cache that runs this module's model, in this thread, or None."""
        cache = _running.get()
        return cache if cache is not None and cache.runs(self) else None

    @property
    def steps_before(self) -> int:
        """How many steps stand before those of this call."""
        cache = self.cache
        return 0 if cache is None else cache.length

    @property
    def state(self) -> Any:
        """What was set behind the steps before those of this call; None where there are none.

        A tensor, or several in a tuple or the like. A forward reads it once, then sets it once;
        outside of a cache nothing is kept.
        """
        cache = self.cache
        return None if cache is None else cache.state_of(self)

    @state.setter
    def state(self, value: object) -> None:
        cache = self.cache
        if cache is not None:
            cache.set_state(self, value)


class _Pass:
    """One call of the model: who asked for what, by module and which of its calls in the pass.

    A model may use a module in several places, and each has a state of its own.
    """

    def __init__(self, steps: int = 0) -> None:
        self.steps = steps
        self._extensions: Counter[int] = Counter()
        self._writes: Counter[int] = Counter()
        self._open_states: dict[_Place, Module] = {}  # states that were read and not set yet
        self.states: dict[_Place, Any] = {}

    def next_keys(self, module: Module) -> _Place:
        """Where keys and values of this call belong."""
        self._extensions[id(module)] += 1
        return id(module), self._extensions[id(module)]

    def read(self, module: Module) -> _Place:
        """Where the state of this call is."""
        place = id(module), self._writes[id(module)]
        self._open_states[place] = module
        return place

    def write(self, module: Module, value: Any) -> None:
        """The state behind this call."""
        place = id(module), self._writes[id(module)]
        if self._open_states.pop(place, None) is None:
            raise OptionError(
                f"{type(module).__name__}: its state was set before it was read{_CURE}"
            )
        self.states[place] = deepcopy(value)  # the layer's own may be written over
        self._writes[id(module)] += 1

    def check_end(self) -> None:
        """Refuse states that would not be those behind this pass."""
        for module in self._open_states.values():
            raise OptionError(f"{type(module).__name__}: its state was read and not set{_CURE}")


@checked_constructor
class KeyValueCache:
    """A model that goes on where it stopped: what its layers need of all steps so far is kept.

    `cache(inputs)` gives what the model gives for `inputs` behind everything that was given before,
    up to rounding; nothing of it has a gradient. At most `steps` in all. Each layer of the model
    must say that it works step by step (nn.step_by_step).
    """

    def __init__(self, model: Module, steps: Count) -> None:
        self.model = model
        self.steps = steps
        self._batch = 0
        self._inside: dict[int, Module] = {}
        self._pass = _Pass()
        self.clear()
        self._check_model()

    def _check_model(self) -> None:
        reason = obstacle(self.model)
        if reason:
            raise OptionError(
                f"KeyValueCache: {reason}; call the model on all steps at once instead"
            )

    @property
    def length(self) -> int:
        """How many steps are kept."""
        return self._length

    def clear(self) -> None:
        """Forget all steps."""
        self._length = 0
        self._keys: dict[_Place, tuple[Tensor, Tensor]] = {}
        self._states: dict[_Place, Any] = {}

    @no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        """The model's outputs for the steps of `inputs`, which follow those that are kept.

        Whole numbers (batch, steps), or (batch, steps, numbers, ...).
        """
        self._pass = _Pass(self._new_steps(inputs))
        if not self._length:
            self.clear()  # of what a first call left that failed
            self._check_model()  # it may have changed since
        self._inside = {id(module): module for module in self.model.modules()}
        token = _running.set(self)
        try:
            outputs: Tensor = self.model(inputs)
        finally:
            _running.reset(token)
        self._pass.check_end()
        self._states.update(self._pass.states)
        self._batch = inputs.shape[0]
        self._length += self._pass.steps
        return outputs

    def _new_steps(self, inputs: Tensor) -> int:
        if not isinstance(inputs, Tensor):
            raise DTypeError(f"KeyValueCache: inputs must be a Tensor, got {inputs!r:.60}")
        least = 3 if inputs.dtype.is_floating_point else 2
        if inputs.ndim < least or not inputs.shape[1]:
            raise ShapeError(
                "KeyValueCache: inputs must be (batch, steps, numbers, ...), or whole numbers "
                f"(batch, steps), got {inputs.dtype} of shape {inputs.shape}"
            )
        batch, steps = inputs.shape[:2]
        if self._length and batch != self._batch:
            raise ShapeError(
                f"KeyValueCache: the batch was {self._batch} and is now {batch}; "
                "call clear() between them"
            )
        end = self._length + steps
        if end > self.steps:
            raise ShapeError(
                f"KeyValueCache: {quantity(end, 'step')} {verb(end)} more than the {self.steps} "
                "it keeps"
            )
        return steps

    # -- what layers ask for -------------------------------------------------------------------

    def runs(self, module: Module) -> bool:
        """Whether the module is part of the model."""
        return id(module) in self._inside

    def extend(self, module: Module, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a module, both (batch, heads, steps, numbers), from the first step."""
        place = self._pass.next_keys(module)
        if place not in self._keys:
            self._keys[place] = self._room(key), self._room(value)
        keys, values = self._keys[place]
        return self._append(module, keys, key), self._append(module, values, value)

    def _room(self, part: Tensor) -> Tensor:
        """Memory like that of `part`, for all steps."""
        return part.new_empty(*part.shape[:2], self.steps, *part.shape[3:])

    def _append(self, module: Module, memory: Tensor, part: Tensor) -> Tensor:
        """All steps, behind writing the new ones."""
        shape = *memory.shape[:2], self._pass.steps, *memory.shape[3:]
        if part.ndim != 4 or part.shape != shape:
            raise ShapeError(
                f"{type(module).__name__}: keys and values must be (batch, heads, steps, numbers), "
                f"here {shape}, got {part.shape}"
            )
        end = self._length + self._pass.steps
        memory[:, :, self._length : end].copy_(part)
        return memory[:, :, :end]

    def state_of(self, module: Module) -> Any:
        """What the module set at this call of the pass before, or None."""
        return self._states.get(self._pass.read(module))

    def set_state(self, module: Module, value: object) -> None:
        """Keep this for the next pass, if this one succeeds."""
        self._pass.write(module, value)
