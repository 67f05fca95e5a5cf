"""Attention where its tiles end: queries go 64 to a tile and keys 128, padded to whole vectors."""

from __future__ import annotations

import pytest

from gradcli import engine


def forward_and_backward(
    queries: int, keys: int, dtype: engine.DType, causal: bool
) -> list[engine.Tensor]:
    generator = engine.Generator(queries * 1000 + keys)
    q, k, v = (
        engine.randn(1, 2, n, width, dtype=dtype, generator=generator).requires_grad_()
        for n, width in ((queries, 5), (keys, 5), (keys, 3))
    )
    y = engine.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    y.backward(engine.randn(1, 2, queries, 3, dtype=dtype, generator=generator))
    gradients = [x.grad for x in (q, k, v)]
    assert None not in gradients
    return [y.detach(), *(x for x in gradients if x is not None)]


KEYS = [1, 15, 16, 17, 127, 128, 129, 143, 144, 145, 257]
QUERIES = [1, 63, 64, 65, 130]


@pytest.mark.parametrize(
    ("queries", "keys", "causal"),
    [(q, k, False) for q in QUERIES for k in KEYS] + [(n, n, True) for n in QUERIES + KEYS[1:]],
)
def test_fused_attention_is_the_composed_one_around_the_ends_of_tiles(
    queries: int, keys: int, causal: bool, isa: str
) -> None:
    for dtype, most in ((engine.float64, 1e-12), (engine.float32, 2e-5)):
        fused = forward_and_backward(queries, keys, dtype, causal)
        with engine.decomposed():
            parts = forward_and_backward(queries, keys, dtype, causal)
        for one, other in zip(fused, parts, strict=True):
            assert engine.allclose(one, other, rtol=most, atol=most)
