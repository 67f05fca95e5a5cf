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

    class TorchPositions(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(ours.max_steps, ours.dim))

        def forward(self, input: Any) -> Any:
            return input + self.weight[: input.shape[1]]

    return TorchPositions()


def attention(torch: Any, ours: nn.Module, translate: Translate) -> Any:
    """Queries, keys and values from one matrix, normalized and rotated like ours."""
    width, inner = ours.heads * ours.head_dim, ours.kv_heads * ours.head_dim
    turn = _turning(torch, ours.rotary)
    attend = torch.nn.functional.scaled_dot_product_attention
    if ours.softcap is not None:
        attend = _capped(torch, ours.softcap)

    class Heads(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = translate(torch, ours.qkv)
            self.out = translate(torch, ours.out)
            for name in ("q_norm", "k_norm"):
                norm = getattr(ours, name)
                setattr(self, name, translate(torch, norm) if norm else torch.nn.Identity())

        def forward(self, input: Any) -> Any:
            batch, steps, _ = input.shape
            parts = self.qkv(input).split([width, inner, inner], -1)
            q, k, v = (x.view(batch, steps, -1, ours.head_dim).transpose(1, 2) for x in parts)
            heads = attend(
                turn(self.q_norm(q)),
                turn(self.k_norm(k)),
                v,
                _mask(torch, ours, q),
                dropout_p=ours.dropout if self.training else 0.0,
                is_causal=ours.causal and ours.window is None and ours.slopes is None,
                enable_gqa=ours.kv_heads != ours.heads,
            )
            return self.out(heads.transpose(1, 2).reshape(batch, steps, width))

    return Heads()


def _mask(torch: Any, ours: Any, query: Any) -> Any:
    """What is added to scores beside is_causal: a window, and a slope of the distance."""
    if ours.window is None and ours.slopes is None:
        return None
    steps = query.shape[-2]
    at = torch.arange(steps, device=query.device)
    back = at[:, None] - at
    mask = torch.zeros_like(back, dtype=query.dtype)
    if ours.slopes is not None:
        mask = -_as_torch(torch, ours.slopes)[:, None, None] * back.abs()
    if ours.causal:
        mask = mask.masked_fill((back < 0) | (back >= (ours.window or steps)), -torch.inf)
    return mask


def _capped(torch: Any, cap: float) -> Callable[..., Any]:
    """Attention as in torch, with scores softly capped."""
    functional = torch.nn.functional

    def attend(
        q: Any, k: Any, v: Any, mask: Any, dropout_p: float, is_causal: bool, enable_gqa: bool
    ) -> Any:
        if enable_gqa:
            k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        scores = cap * torch.tanh(q @ k.mT / q.shape[-1] ** 0.5 / cap)
        if is_causal:
            mask = torch.full_like(scores, -torch.inf).triu(1)
        weights = (scores if mask is None else scores + mask).softmax(-1)
        return functional.dropout(weights, dropout_p) @ v

    return attend


def block(torch: Any, ours: nn.Module, translate: Translate) -> Any:
    """Attention and a small network, each with a norm and added to its input."""

    class TorchBlock(torch.nn.Module):  # type: ignore[misc]
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

    return TorchBlock()


def tie(theirs: Any, ours: nn.Module) -> None:
    """Share parameters in torch's model where ours does."""
    first: dict[int, str] = {}
    for name, parameter in ours.named_parameters(remove_duplicate=False):
        original = first.setdefault(id(parameter), name)
        if original != name:
            owner, _, last = name.rpartition(".")
            setattr(theirs.get_submodule(owner), last, theirs.get_parameter(original))


def _turning(torch: Any, rotary: Any) -> Callable[[Any], Any]:
    """Rotate pairs of numbers by their step (RoFormer): neighbours, or half a row apart."""
    if rotary is None:
        return lambda x: x
    cos, sin = (_as_torch(torch, table) for table in (rotary.cos, rotary.sin))

    def turn(x: Any) -> Any:
        a, b = (x[..., 0::2], x[..., 1::2]) if rotary.interleaved else x.chunk(2, -1)
        c, s = cos[: x.shape[-2]], sin[: x.shape[-2]]
        pair = [a * c - b * s, a * s + b * c]
        return torch.stack(pair, -1).flatten(-2) if rotary.interleaved else torch.cat(pair, -1)

    return turn


def _as_torch(torch: Any, tensor: Tensor) -> Any:
    return torch.from_dlpack(tensor.detach()).clone()


def lora_linear(torch: Any, ours: nn.Module, translate: Translate) -> Any:
    """A frozen matrix with a product of two thin ones beside it."""
    del translate

    class TorchLoRALinear(torch.nn.Linear):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(ours.in_features, ours.out_features, ours.bias is not None)
            for parameter in self.parameters():
                parameter.requires_grad_(False)
            self.lora_A = torch.nn.Parameter(torch.empty(ours.rank, ours.in_features))
            self.lora_B = torch.nn.Parameter(torch.empty(ours.out_features, ours.rank))

        def forward(self, x: Any) -> Any:
            inputs = torch.nn.functional.dropout(x, ours.dropout, self.training)
            return super().forward(x) + ours.alpha / ours.rank * (
                inputs @ self.lora_A.T @ self.lora_B.T
            )

    return TorchLoRALinear()


TRANSLATORS: dict[str, Callable[[Any, nn.Module, Translate], Any]] = {
    "Positions": positions,
    "SelfAttention": attention,
    "TransformerBlock": block,
    "LoRALinear": lora_linear,
}
