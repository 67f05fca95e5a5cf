"""Tokens of a small GPT in gradcli: `generate_rows`, as `gradcli predict --prompt` calls it."""

from __future__ import annotations

from benchmarks.generation import CONTEXT, HEADS, LAYERS, PROMPT, VOCABULARY, WIDTH
from benchmarks.runner import Loop, Runner
from benchmarks.workloads_gradcli import versions
from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.device import cpu
from gradcli.engine.nn.generation import generate_rows
from gradcli.engine.nn.sampling import TokenSampler

__all__ = ["generation", "versions"]

ENDLESS = 1 << 40


def generation(batch: int, mode: str) -> Runner:
    """A step gives a token in each row; `mode` is the number of threads."""
    cpu.set_threads(int(mode))
    engine.manual_seed(1)
    blocks = [nn.TransformerBlock(nn.SelfAttention(WIDTH, HEADS), 4 * WIDTH) for _ in range(LAYERS)]
    ends = nn.Embedding(VOCABULARY, WIDTH), nn.Positions(CONTEXT, WIDTH)
    model = nn.Sequential(*ends, *blocks, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY))
    sampler = TokenSampler([engine.Generator(row) for row in range(batch)], captured=True)
    tokens = generate_rows(model, [1] * PROMPT, ENDLESS, CONTEXT, sampler)
    return Loop(lambda: next(tokens), [()], values=lambda result: [])
