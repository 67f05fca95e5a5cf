"""KeyValueCache: what layers have seen, so that a model is asked for new steps only."""

from __future__ import annotations

from gradcli.wording import quantity, verb

__all__ = ["StatefulModule", "KeyValueCache"]

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

from gradcli.engine.constructor import checked_constructor
from gradcli.engine.dtype import DType
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import Count
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.steps import obstacle
from gradcli.engine.program.positions import PositionCapture
from gradcli.engine.program.values import leaves, same
from gradcli.engine.tensor import Tensor
from gradcli.errors import CaptureError, DTypeError, OptionError, ShapeError

_running: ContextVar[KeyValueCache | None] = ContextVar("cache", default=None)
_Slot = tuple[int, int]  # the id of a module, and which of its calls in a pass
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


class _ModelPass:
    """One call of the model: who asked for what, by module and which of its calls in the pass.

    A model may use a module in several places, and each has a state of its own.
    """

    def __init__(self, steps: int = 0) -> None:
        self.steps = steps
        self._extensions: Counter[int] = Counter()
        self._writes: Counter[int] = Counter()
        self._open_states: dict[_Slot, Module] = {}  # states that were read and not set yet
        self.states: dict[_Slot, Any] = {}

    def next_keys(self, module: Module) -> _Slot:
        """Where keys and values of this call belong."""
        self._extensions[id(module)] += 1
        return id(module), self._extensions[id(module)]

    def read(self, module: Module) -> _Slot:
        """Where the state of this call is."""
        slot = id(module), self._writes[id(module)]
        self._open_states[slot] = module
        return slot

    def write(self, module: Module, value: Any) -> None:
        """The state behind this call."""
        slot = id(module), self._writes[id(module)]
        if self._open_states.pop(slot, None) is None:
            raise OptionError(
                f"{type(module).__name__}: its state was set before it was read{_CURE}"
            )
        self.states[slot] = deepcopy(value)  # the layer's own may be written over
        self._writes[id(module)] += 1

    def check_end(self) -> None:
        """Refuse states that would not be those behind this pass."""
        for module in self._open_states.values():
            raise OptionError(f"{type(module).__name__}: its state was read and not set{_CURE}")


def _copied_into(memory: Any, value: Any) -> bool:
    """Copy the tensors of a value into those of `memory`; False where it has another form."""
    try:
        (pattern, targets), (form, tensors) = leaves(memory), leaves(value)
    except CaptureError:
        return False
    pairs = list(zip(targets, tensors, strict=False))
    if not same(pattern, form) or any(_form(a) != _form(b) for a, b in pairs):
        return False
    for target, tensor in pairs:
        target.copy_(tensor)
    return True


def _form(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.device


@checked_constructor
class KeyValueCache:
    """A model that goes on where it stopped: what its layers need of all steps so far is kept.

    `cache(inputs)` gives what the model gives for `inputs` behind everything that was given before,
    up to rounding; nothing of it has a gradient. At most `steps` in all. Each layer of the model
    must say that it works step by step (nn.step_by_step). Keys and values are kept in `dtype`, or
    as the layers give them. With `capture` single steps are replayed without Python, with the same
    bits, where the layers do the same at every step (engine.capture).
    """

    def __init__(
        self, model: Module, steps: Count, dtype: DType | None = None, capture: bool = False
    ) -> None:
        self.model = model
        self.steps = steps
        self.dtype = dtype
        self.capture = capture
        if dtype is not None and not dtype.is_floating_point:
            raise DTypeError(f"KeyValueCache: dtype must be of floats, got {dtype}")
        self._inside: dict[int, Module] = {}
        self._pass = _ModelPass()
        self.clear()
        self._begin(0)
        self._check_model()

    def _begin(self, batch: int) -> None:
        """Memory for so many sequences, and what is replayed with it."""
        self._batch = batch
        self._keys: dict[_Slot, tuple[Tensor, Tensor]] = {}
        self._lasting: dict[_Slot, Any] = {}  # states, whose memory outlives `clear`
        self._captured: PositionCapture | None = None
        self._replace_memory()

    def _replace_memory(self) -> None:
        """What was replayed reads other memory; what changes in mid-sequence stays eager."""
        replays = self.capture and self.steps > 3 and not self._length
        self._captured = PositionCapture(self._eagerly, self) if replays else None

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

    @property
    def programs(self) -> Sequence[object]:
        """What single steps replay; none where they stay eager."""
        return [] if self._captured is None else self._captured.programs

    def clear(self) -> None:
        """Forget all steps."""
        self._length = 0
        self._states: dict[_Slot, Any] = {}

    @no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        """The model's outputs for the steps of `inputs`, which follow those that are kept.

        Whole numbers (batch, steps), or (batch, steps, numbers, ...).
        """
        steps = self._new_steps(inputs)
        if not self._length:
            self.clear()  # of what a first call left that failed
            self._check_model()  # it may have changed since
            if inputs.shape[0] != self._batch:
                self._begin(inputs.shape[0])
        single = steps == 1 and self._length > 0
        run = self._captured if single and self._captured is not None else self._eagerly
        outputs: Tensor = run(inputs)
        self._length += steps
        return outputs

    def _eagerly(self, inputs: Tensor) -> Tensor:
        self._pass = _ModelPass(inputs.shape[1])
        self._inside = {id(module): module for module in self.model.modules()}
        token = _running.set(self)
        try:
            outputs: Tensor = self.model(inputs)
        finally:
            _running.reset(token)
        self._pass.check_end()
        for slot, value in self._pass.states.items():
            self._states[slot] = self._kept_state(slot, value) if self.capture else value
        return outputs

    def _kept_state(self, slot: _Slot, value: Any) -> Any:
        """The value in the memory of the one before: a replay reads and writes it there."""
        if slot not in self._lasting:
            self._lasting[slot] = value
        elif not _copied_into(self._lasting[slot], value):
            self._lasting[slot] = value
            self._replace_memory()
        return self._lasting[slot]

    # -- where a captured step is (program/positions.py) -----------------------------------------

    @property
    def position(self) -> int:
        """The number of the step to come."""
        return self._length

    @property
    def stations(self) -> Sequence[int]:
        """The first steps that find others before them, and the last there is room for."""
        return 1, 2, self.steps - 1

    @contextmanager
    def visit(self, position: int) -> Iterator[None]:
        """As if so many steps were kept; what is kept stays as it is."""
        before = self._length, dict(self._states)
        self._length = position
        try:
            yield
        finally:
            self._length, self._states = before

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
        slot = self._pass.next_keys(module)
        parts = key, value
        if slot not in self._keys:
            self._keys[slot] = self._room(key), self._room(value)
        elif not self._length and not all(map(self._fits, self._keys[slot], parts)):
            self._keys[slot] = self._room(key), self._room(value)
            self._replace_memory()
        keys, values = self._keys[slot]
        return self._append(module, keys, key), self._append(module, values, value)

    def _room(self, part: Tensor) -> Tensor:
        """Memory like that of `part`, for all steps."""
        shape = *part.shape[:2], self.steps, *part.shape[3:]
        return part.new_empty(*shape, dtype=self.dtype or part.dtype)

    def _fits(self, memory: Tensor, part: Tensor) -> bool:
        """Whether memory of a sequence before this one is right for `part`."""
        shape = *part.shape[:2], self.steps, *part.shape[3:]
        return _form(memory) == (shape, self.dtype or part.dtype, part.device)

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
        return memory[:, :, :end].to(part.dtype)

    def state_of(self, module: Module) -> Any:
        """What the module set at this call of the pass before, or None."""
        return self._states.get(self._pass.read(module))

    def set_state(self, module: Module, value: object) -> None:
        """Keep this for the next pass, if this one succeeds."""
        self._pass.write(module, value)
