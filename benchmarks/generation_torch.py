"""Tokens of a small GPT in plain torch: an eager loop with a key/value cache made beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional as F

from benchmarks.generation import CONTEXT, HEADS, LAYERS, PROMPT, VOCABULARY, WIDTH
from benchmarks.runner import Loop, Runner
from benchmarks.workloads_torch import versions

__all__ = ["generation", "versions"]


class Block:
    """A transformer block that keeps keys and values of all steps."""

    def __init__(self, batch: int) -> None:
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = torch.nn.Linear(4 * WIDTH, WIDTH)
        shape = batch, HEADS, CONTEXT, WIDTH // HEADS
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)

    def __call__(self, x: Any, begin: int) -> Any:
        """The steps from `begin` on."""
        batch, steps, _ = x.shape
        end = begin + steps
        parts = self.qkv(self.norm1(x)).view(batch, steps, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        self.keys[:, :, begin:end] = k
        self.values[:, :, begin:end] = v
        y = F.scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=steps > 1
        )
        x = x + self.out(y.transpose(1, 2).reshape(batch, steps, WIDTH))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


def _tokens(batch: int) -> Iterator[list[int]]:
    embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
    positions = 0.02 * torch.randn(CONTEXT, WIDTH)
    blocks = [Block(batch) for _ in range(LAYERS)]
    norm, head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY)
    fresh, begin = torch.ones(batch, PROMPT, dtype=torch.int64), 0
    window = [fresh]
    while True:
        end = begin + fresh.shape[1]
        x = embedding(fresh) + positions[begin:end]
        for block in blocks:
            x = block(x, begin)
        weights = torch.softmax(head(norm(x[:, -1])), -1)
        fresh, begin = torch.multinomial(weights, 1), end
        yield fresh[:, 0].tolist()
        window.append(fresh)
        if begin == CONTEXT:  # behind the last half, all read again
            fresh, begin = torch.cat(window, 1)[:, -PROMPT - 1 :], 0
            window = [fresh]


def generation(batch: int, mode: str) -> Runner:
    """A step gives a token in each row; `mode` is the number of threads."""
    torch.set_num_threads(int(mode))
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    tokens = _tokens(batch)
    return Loop(lambda: next(tokens), [()], values=lambda result: [])
