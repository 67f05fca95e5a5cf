"""Where a step stands in its sequence: rotary positions, learnt ones, and distances."""

from __future__ import annotations

__all__ = ["RotaryEmbedding", "Positions"]

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, NotNegative, Positive
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.key_value_cache import StatefulModule
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.steps import step_by_step
from gradcli.engine.ops.creation.creation import empty, tensor
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError


def _angles(dim: int, steps: int, base: float) -> Tensor:
    """The angle of pair i at each step, step * base^(-2i / dim), in float64."""
    empty(steps, dim // 2, dtype=dtypes.float64)  # refuses at once what is too large for memory
    rates = tensor([base ** (-2 * i / dim) for i in range(dim // 2)], dtype=dtypes.float64)
    return arange(steps, dtype=dtypes.float64).reshape(steps, 1) * rates


class RotaryEmbedding(Module):
    """Pairs of numbers rotated by step * base^(-2i / dim) (Su et al. 2021, RoFormer).

    Products of rotated queries and keys depend on how far apart their steps are. Pairs are numbers
    2i and 2i + 1; with interleaved=False numbers i and i + dim / 2.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        dim: Count,
        max_steps: Count,
        base: Positive = 10000.0,
        interleaved: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        if dim % 2:
            raise OptionError(f"RotaryEmbedding: dim must be an even number from 2 on, got {dim}")
        self.dim = dim
        self.max_steps = max_steps
        self.base = base
        self.interleaved = interleaved
        angles = _angles(dim, max_steps, base)
        self.register_buffer("cos", angles.cos().to(dtype), persistent=False)
        self.register_buffer("sin", angles.sin().to(dtype), persistent=False)

    def forward(self, input: Tensor, offset: int = 0) -> Tensor:
        """(..., steps, dim) rotated, the first step being number `offset`."""
        end = last_step("RotaryEmbedding", input, offset, self.max_steps)
        rows = slice(offset, end)
        return F.rotary_embedding(
            input, self.cos[rows], self.sin[rows], interleaved=self.interleaved
        )

    def extra_repr(self) -> str:
        """The options."""
        options = f"{self.dim}, max_steps={self.max_steps}, base={self.base}"
        return options + ("" if self.interleaved else ", interleaved=False")


class Positions(StatefulModule):
    """Adds a learnt row to each step (Gehring et al. 2017)."""

    _repr_format = "{0.max_steps}, {0.dim}"
    weight: Parameter

    def __init__(
        self,
        max_steps: Count,
        dim: Count,
        std: NotNegative = 0.02,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.max_steps = max_steps
        self.dim = dim
        self.std = std
        self.weight = Parameter(empty(max_steps, dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normally distributed, as wide as `std`."""
        init.normal_(self.weight, 0.0, self.std)

    @step_by_step
    def forward(self, input: Tensor) -> Tensor:
        """(..., steps, dim) plus the rows of its steps."""
        offset = self.steps_before
        end = last_step("Positions", input, offset, self.max_steps)
        if input.shape[-1] != self.dim:
            raise ShapeError(
                f"Positions: input must be (..., steps, {self.dim}), got {input.shape}"
            )
        return input + self.weight[offset:end]


def alibi_slopes(heads: int) -> list[float]:
    """How much less a head likes a step for each step that it is away (Press et al. 2022, ALiBi).

    2^(-8 i / heads) for i from 1 on; where heads is no power of two, those of the power below, then
    every other one of the power above.
    """
    power = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    between = [2 ** (-4 * i / power) for i in range(1, 2 * power, 2)]
    return (slopes + between)[:heads]


def last_step(name: str, input: Tensor, offset: int, most: int) -> int:
    """The step after the last; what reaches beyond the known ones is refused."""
    if input.ndim < 2:
        raise ShapeError(f"{name}: input must be (..., steps, numbers), got {input.shape}")
    end = offset + input.shape[-2]
    if offset < 0 or end > most:
        raise ShapeError(f"{name}: steps {offset} to {end - 1} are outside the {most} it knows")
    return end
