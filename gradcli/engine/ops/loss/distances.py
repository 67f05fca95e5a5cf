"""Distances between vectors, and the losses of triplets that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from gradcli.engine import table
from gradcli.engine.composite import function
from gradcli.engine.dtype import promote
from gradcli.engine.kind import NotNegative
from gradcli.engine.ops.loss.margins import at_least, finished, one_rank
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import broadcast, dim_index
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError

Distance = Callable[[Tensor, Tensor], Tensor]


@function(
    samples=[
        sample((3, 5), (3, 5)),
        sample((2, 1, 4), (3, 4), dim=-1),
        sample((4,), (4,), dim=0, eps=10.0),
    ],
    wrong=[wrong(sample((2, 3), (2, 4)), "do not broadcast")],
    method=False,
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: NotNegative = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`; no length counts as below eps."""
    shape = broadcast(x1.shape, x2.shape, "cosine_similarity")
    at = dim_index(dim, len(shape), "cosine_similarity")
    kind = promote(x1.dtype, x2.dtype)
    if not kind.is_floating_point:
        raise DTypeError(
            f"cosine_similarity: one input must hold floats, got {x1.dtype} and {x2.dtype}"
        )
    x1, x2 = table.to(x1, kind), table.to(x2, kind)
    directions = []
    for x in (table.expand(x1, shape), table.expand(x2, shape)):
        squares = table.sum(x * x, at, keepdim=True)
        directions.append(x / table.sqrt(at_least(squares, eps * eps)))
    return table.sum(directions[0] * directions[1], at)


@function(
    samples=[
        sample((3, 5), (3, 5)),
        sample((2, 1, 4), (3, 4), p=1.0, keepdim=True),
        sample((4,), (4,), p=3.0, eps=0.5),
        sample((2, 3), (2, 3), p=inf),
    ],
    method=False,
)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return table.norm(x1 - x2 + eps, p, -1, keepdim)


_TRIPLES = (
    sample((3, 5), (3, 5), (3, 5)),
    sample((4, 3), (4, 3), (4, 3), margin=0.5, swap=True, reduction="none"),
    sample((2, 1), (2, 1), (2, 1), reduction="sum"),
    sample((3,), (3,), (3,), margin=2.0),
)


@function(
    samples=[
        *_TRIPLES,
        sample((2, 4), (2, 4), (2, 4), p=1.0, swap=True),
        sample((2, 4), (2, 4), (2, 4), p=3.0, eps=0.25),
    ],
    method=False,
)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + distance to positive - distance to negative) (Schroff et al. 2015).

    With swap the distance from positive to negative counts where it is the shorter one.
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    three = (anchor, positive, negative)
    return _triplets("triplet_margin_loss", three, distance, margin, swap, reduction)


@function(
    samples=_TRIPLES,
    wrong=[wrong(sample((2, 3), (2, 3), (2, 3), margin=-1.0), "margin must be above 0, got -1.0")],
    method=False,
)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Distance | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with any distance function, such as 1 - cosine_similarity."""
    three, distance = (anchor, positive, negative), distance_function or pairwise_distance
    name = "triplet_margin_with_distance_loss"
    return _triplets(name, three, distance, margin, swap, reduction)


def _triplets(
    name: str,
    three: tuple[Tensor, Tensor, Tensor],
    distance: Distance,
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    if not margin > 0:
        raise OptionError(f"{name}: margin must be above 0, got {margin}")
    anchor, positive, negative = three
    one_rank(name, anchor=anchor, positive=positive, negative=negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = table.minimum(far, distance(positive, negative))
    return finished(name, at_least(margin + near - far, 0.0), reduction)
