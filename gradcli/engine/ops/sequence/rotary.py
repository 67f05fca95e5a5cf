"""Rotary positions: pairs of numbers rotated by an angle that grows with the step."""

from __future__ import annotations

from gradcli.engine import table
from gradcli.engine.composite import function
from gradcli.engine.sample import sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


@function(
    samples=[
        sample((2, 5, 6), (5, 3), (5, 3)),
        sample((2, 3, 4, 2), (4, 1), (4, 1), interleaved=True),
        sample((2, 5, 6), (5, 3), (5, 3), interleaved=False),
        sample((1, 4), (1, 2), (1, 2), interleaved=False),
    ],
    wrong=[
        wrong(sample((4,), (1, 2), (1, 2)), "input must be (..., steps, an even number)"),
        wrong(sample((3, 4), (3, 2), (2, 2)), "cos and sin must be (3, 2)"),
    ],
    method=False,
)
def rotary_embedding(
    input: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = True
) -> Tensor:
    """Pairs (a, b) of each row become (a cos - b sin, a sin + b cos) (Su et al. 2021, RoFormer).

    `input` is (..., steps, E), `cos` and `sin` (steps, E / 2). A pair is numbers 2i and 2i + 1, as
    in the paper; with interleaved=False numbers i and i + E / 2, as in GPT-NeoX and Llama.
    """
    if input.ndim < 2 or input.shape[-1] % 2:
        raise ShapeError(
            f"rotary_embedding: input must be (..., steps, an even number), got {input.shape}"
        )
    steps, half = input.shape[-2], input.shape[-1] // 2
    if cos.shape != (steps, half) or sin.shape != (steps, half):
        raise ShapeError(
            f"rotary_embedding: cos and sin must be ({steps}, {half}) for input {input.shape}, "
            f"got {cos.shape} and {sin.shape}"
        )
    if interleaved:
        a, b = input[..., 0::2], input[..., 1::2]
    else:
        a, b = input[..., :half], input[..., half:]
    rotated = [a * cos - b * sin, a * sin + b * cos]
    join = table.stack if interleaved else table.cat
    return join(rotated, -1).reshape(input.shape)
