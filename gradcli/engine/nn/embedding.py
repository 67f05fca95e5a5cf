"""Embedding: a row of a table for each whole number."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.autograd import no_grad
from gradcli.engine.dtype import DType
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.creation import empty
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


class Embedding(Module):
    """Row weight[i] for each index i; the row padding_idx begins as 0 and gets no gradient."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise OptionError(
                f"Embedding: padding_idx {padding_idx} is outside the {num_embeddings} rows"
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

    def forward(self, input: Tensor) -> Tensor:
        """(...) of whole numbers to (..., embedding_dim)."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """As torch shows it."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
