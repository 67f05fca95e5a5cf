"""Layers of transformers in PyTorch, under our names: torch.nn has none with these weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn

Translate = Callable[[Any, "nn.Module"], Any]


def positions(torch: Any, ours: nn.Module, translate: Translate) -> Any:
    """A learnt row for each step, added to it."""
    del translate

    class Rows(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(ours.max_steps, ours.dim))

        def forward(self, input: Any) -> Any:
            return input + self.weight[: input.shape[1]]

    return Rows()


def attention(torch: Any, ours: nn.Module, translate: Translate) -> Any:
    """Queries, keys and values from one matrix, turned by their steps if ours are."""
    inner = ours.kv_heads * ours.head_dim
    turn = _turning(torch, ours.rotary)

    class Heads(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = translate(torch, ours.qkv)
            self.out = translate(torch, ours.out)

        def forward(self, input: Any) -> Any:
            batch, steps, _ = input.shape
            parts = self.qkv(input).split([ours.dim, inner, inner], -1)
            q, k, v = (x.view(batch, steps, -1, ours.head_dim).transpose(1, 2) for x in parts)
            found = torch.nn.functional.scaled_dot_product_attention(
                turn(q),
                turn(k),
                v,
                dropout_p=ours.dropout if self.training else 0.0,
                is_causal=ours.causal,
                enable_gqa=ours.kv_heads != ours.heads,
            )
            return self.out(found.transpose(1, 2).reshape(input.shape))

    return Heads()


def block(torch: Any, ours: nn.Module, translate: Translate) -> Any:
    """Attention and a small network, each with a norm and added to its input."""

    class Layer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for name in ("norm1", "attention", "norm2", "mlp", "dropout"):
                setattr(self, name, translate(torch, getattr(ours, name)))

        def forward(self, x: Any) -> Any:
            for norm, part in ((self.norm1, self.attention), (self.norm2, self.mlp)):
                if ours.norm_first:
                    x = x + self.dropout(part(norm(x)))
                else:
                    x = norm(x + self.dropout(part(x)))
            return x

    return Layer()


def tie(made: Any, ours: nn.Module) -> None:
    """What is one parameter in our model is one in torch's."""
    first: dict[int, str] = {}
    for name, parameter in ours.named_parameters(remove_duplicate=False):
        original = first.setdefault(id(parameter), name)
        if original != name:
            owner, _, last = name.rpartition(".")
            setattr(made.get_submodule(owner), last, made.get_parameter(original))


def _turning(torch: Any, rotary: Any) -> Callable[[Any], Any]:
    """Pairs of numbers 2i and 2i + 1, turned by their step (RoFormer)."""
    if rotary is None:
        return lambda x: x
    cos, sin = (_copied(torch, table) for table in (rotary.cos, rotary.sin))

    def turn(x: Any) -> Any:
        a, b = x[..., 0::2], x[..., 1::2]
        c, s = cos[: x.shape[-2]], sin[: x.shape[-2]]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

    return turn


def _copied(torch: Any, tensor: Tensor) -> Any:
    return torch.from_dlpack(tensor.detach()).clone()


WRITTEN: dict[str, Callable[[Any, nn.Module, Translate], Any]] = {
    "Positions": positions,
    "SelfAttention": attention,
    "TransformerBlock": block,
}
