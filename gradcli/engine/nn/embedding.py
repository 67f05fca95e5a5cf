"""Embedding: a row of a table for each whole number."""

from __future__ import annotations

from gradcli.wording import quantity

__all__ = ["Embedding"]

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.steps import step_by_step
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


class EmbeddingRows(Tensor):
    """What an Embedding gives: rows of a table, and the memory of which rows of which table.

    A layer that multiplies each row by a matrix can multiply the table instead, and pick then: the
    same values, with fewer products where the table is smaller than what was picked from it.
    """

    __slots__ = ("indices", "snapshot", "table")

    def __init__(self, rows: Tensor, indices: Tensor, table: Tensor) -> None:
        super().__init__(rows.array, node=rows.node, output=rows.output)
        self.indices = indices
        self.table = table
        self.snapshot = self._state()

    def _state(self) -> tuple[Any, ...]:
        """What tells that any of it was changed in place, or is asked for a gradient of its own."""
        parts = (self, self.indices, self.table)
        return (self.node, self.leaf, *(t.array.storage.version for t in parts))

    def stand(self) -> bool:
        """True while these are still the rows of the table, and worth going back to it for."""
        if getattr(self, "snapshot", None) is None:  # a copy remembers nothing
            return False
        few = 2 * self.table.shape[0] <= self.indices.numel()
        return few and self.snapshot == self._state()


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """F.linear, of the table where `input` was picked from a smaller one."""
    if isinstance(input, EmbeddingRows) and input.stand():
        return F.embedding(input.indices, F.linear(input.table, weight, bias))
    return F.linear(input, weight, bias)


class Embedding(Module):
    """Row weight[i] for each index i; the row padding_idx begins as 0 and gets no gradient."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: Whole,
        embedding_dim: Whole,
        padding_idx: int | None = None,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise OptionError(
                f"Embedding: padding_idx {padding_idx} is outside the "
                f"{quantity(num_embeddings, 'row')}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normally distributed rows; 0 at padding_idx."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    @step_by_step
    def forward(self, input: Tensor) -> Tensor:
        """(...) of whole numbers to (..., embedding_dim)."""
        rows = F.embedding(input, self.weight, self.padding_idx)
        # Beside the table, a row without gradient would get one.
        return rows if self.padding_idx is not None else EmbeddingRows(rows, input, self.weight)

    def extra_repr(self) -> str:
        """As torch shows it."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
