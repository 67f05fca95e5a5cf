"""Generation with a cache on a device."""

from __future__ import annotations

import pytest
from on_host import gpu  # noqa: F401

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn.generation import generate

CONTEXT = 6


@pytest.mark.usefixtures("gpu")
def test_a_cache_lies_where_the_model_does() -> None:
    engine.manual_seed(1)
    block = nn.TransformerBlock(nn.SelfAttention(8, 4, 2, rotary_steps=CONTEXT), 16)
    model = nn.Sequential(nn.Embedding(11, 8), block, nn.Linear(8, 11)).eval()
    expected = list(generate(model, [1, 2], 14, CONTEXT, temperature=0))
    model.to("cuda")
    assert list(generate(model, [1, 2], 14, CONTEXT, temperature=0)) == expected
    cache = nn.KeyValueCache(model, CONTEXT)
    assert cache(engine.tensor([[1, 2, 3]])).device == "cuda"
