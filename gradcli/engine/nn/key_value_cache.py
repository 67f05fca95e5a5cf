"""KeyValueCache: what attention has seen, so that a model is asked for new steps only."""

from __future__ import annotations

from gradcli.engine.constructor import checked_constructor
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import Count
from gradcli.engine.nn.module import Module
from gradcli.engine.ops.creation import empty
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


class Remembering(Module):
    """A module whose result for a step depends on the steps before it.

    Attributes:
        cache: during a call of a KeyValueCache, that cache; otherwise None.
    """

    cache: KeyValueCache | None = None

    @property
    def steps_before(self) -> int:
        """How many steps stand before those of this call."""
        return 0 if self.cache is None else self.cache.length


@checked_constructor
class KeyValueCache:
    """A model that goes on where it stopped: keys and values of all steps so far are kept.

    `cache(inputs)` gives what the model gives for `inputs` (batch, steps, ...) behind everything
    that was given before, up to rounding; nothing of it has a gradient. At most `steps` in all.
    """

    def __init__(self, model: Module, steps: Count) -> None:
        self.model = model
        self.steps = steps
        self._length = 0
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """How many steps are kept."""
        return self._length

    def clear(self) -> None:
        """Forget all steps."""
        self._length = 0
        self._kept.clear()

    @no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        """The model's outputs for the steps of `inputs`, which follow those that are kept."""
        if inputs.ndim < 2 or not inputs.shape[1]:
            raise ShapeError(
                f"KeyValueCache: inputs must be (batch, steps, ...), got {inputs.shape}"
            )
        end = self._length + inputs.shape[1]
        if end > self.steps:
            raise ShapeError(f"KeyValueCache: {end} steps are more than the {self.steps} it keeps")
        remembering = [one for one in self.model.modules() if isinstance(one, Remembering)]
        for module in remembering:
            module.cache = self
        try:
            outputs: Tensor = self.model(inputs)
        finally:
            for module in remembering:
                module.cache = None
        self._length = end
        return outputs

    def extend(self, module: Module, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a module, both (batch, heads, steps, numbers), from the first step."""
        kept = self._kept.get(id(module)) or self._begin(module, key, value)
        if kept[0].shape[0] != key.shape[0]:
            raise ShapeError(
                f"KeyValueCache: the batch was {kept[0].shape[0]} and is now {key.shape[0]}; "
                "call clear() between them"
            )
        first, end = self._length, self._length + key.shape[2]
        for memory, new in zip(kept, (key, value), strict=True):
            memory[:, :, first:end].copy_(new)
        return kept[0][:, :, :end], kept[1][:, :, :end]

    def _begin(self, module: Module, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        batch, heads, _, width = key.shape
        made = empty(2, batch, heads, self.steps, width, dtype=key.dtype)
        self._kept[id(module)] = kept = (made[0], made[1])
        return kept
