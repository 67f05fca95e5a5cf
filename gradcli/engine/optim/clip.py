"""Clipping: gradients scaled down together when their common norm is too large."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.argument import check_arguments
from gradcli.engine.array import Array, copy_into, run
from gradcli.engine.device import scope
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import Kind, NotNegative
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.tensor import Tensor
from gradcli.errors import NumericsError, OptionError


@check_arguments
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: NotNegative,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients by min(1, max_norm / (norm + 1e-6)); gives the norm before that.

    The norm is one number over all gradients, added up in double. Nothing is read back on the
    way, unless error_if_nonfinite asks for it.
    """
    if norm_type != 2.0:
        raise OptionError(f"clip_grad_norm_: norm_type must be 2, got {norm_type}")
    grads = gradients(_as_list("clip_grad_norm_", parameters))
    if not grads:
        return zeros(())
    norm, factor = norm_and_factor(grads, max_norm)
    result = norm.to(grads[0].dtype).reshape(())
    if error_if_nonfinite and not math.isfinite(result.item()):
        raise NumericsError(f"clip_grad_norm_: the norm of the gradients is {result.item()}")
    scale(grads, factor)
    return result


def gradients(parameters: Iterable[Tensor]) -> list[Array]:
    """The gradients of those parameters that have one."""
    return [p.leaf.grad for p in parameters if p.leaf is not None and p.leaf.grad is not None]


def scale(grads: Iterable[Array], factor: Tensor) -> None:
    """Each gradient times one number."""
    for grad in grads:
        run("scale_by", factor.array, grad)
        grad.storage.version += 1


@check_arguments
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: NotNegative) -> None:
    """Each number of each gradient at most clip_value away from 0."""
    tensors = _as_list("clip_grad_value_", parameters)
    for parameter in tensors:
        if parameter.leaf is not None and parameter.leaf.grad is not None:
            grad = parameter.leaf.grad
            with no_grad():
                near = table.clamp(Tensor(grad), -clip_value, clip_value)
            copy_into(grad, near.array)


def _as_list(owner: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for i, tensor in enumerate(tensors):
        Kind.of(Tensor).convert_argument(owner, f"parameters[{i}]", tensor)
    return tensors


def norm_and_factor(grads: Sequence[Array], max_norm: float) -> tuple[Tensor, Tensor]:
    """The norm of all gradients together, and what brings it to max_norm: a float64 (1) each."""
    with scope.on(grads[0].storage.device):
        squares, norm, factor = (zeros(n, dtype=dtypes.float64) for n in (len(grads), 1, 1))
    for i, grad in enumerate(grads):
        run("sum_squares", grad, squares[i].array)
    run("clip_factor", squares.array, norm.array, factor.array, options=(max_norm,))
    return norm, factor
