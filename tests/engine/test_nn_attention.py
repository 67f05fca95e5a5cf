from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.errors import GradcliError

BOOL = engine.bool_


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nn.MultiheadAttention(6, 4), "4 heads must divide the width 6 evenly"),
        (lambda x: nn.MultiheadAttention(6, 0), "num_heads must be a whole number >= 1, got 0"),
        (
            lambda x: nn.MultiheadAttention(6, 2, dropout=2),
            "dropout must be a number from 0 to 1, got 2",
        ),
        (lambda x: nn.MultiheadAttention(6, 2, add_bias_kv=True), "add_bias_kv and add_zero_attn"),
        (lambda x: nn.MultiheadAttention(6, 2, add_zero_attn=True), "must be False"),
        (lambda x: nn.MultiheadAttention(4, 2)(x, x, x), "of widths (4, 4, 4)"),
        (lambda x: nn.MultiheadAttention(6, 2)(x, x[:2], x), "of equal length"),
        (lambda x: nn.MultiheadAttention(6, 2)(x, x[0], x[0]), "(steps, batch, width) or"),
        (lambda x: nn.MultiheadAttention(6, 2)(x, x, x, is_causal=True), "needs the attn_mask"),
        (
            lambda x: nn.MultiheadAttention(6, 2)(x, x, x, attn_mask=engine.zeros(3, 4)),
            "attn_mask must be (4, 4) or (6, 4, 4), got (3, 4)",
        ),
        (
            lambda x: nn.MultiheadAttention(6, 2)(x, x, x, engine.zeros(4, 3)),
            "key_padding_mask must be (3, 4), got (4, 3)",
        ),
        (
            lambda x: nn.MultiheadAttention(6, 2)(x, x, x, engine.zeros(3, 4).long()),
            "key_padding_mask must be bool (True hides) or float32, got int64",
        ),
        (
            lambda x: nn.TransformerEncoderLayer(6, 2, activation="tanh"),
            "activation must be 'relu' or 'gelu', got 'tanh'",
        ),
        (lambda x: nn.Transformer(6, 2, 1, 1, 8)(x, x[:, :2]), "must have one batch and 6 numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, message: str) -> None:
    with pytest.raises(GradcliError) as caught:
        call(engine.zeros(4, 3, 6))
    assert message in str(caught.value)


def test_hidden_keys_have_no_weight() -> None:
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = engine.randn(2, 3, 4)
    padding = engine.tensor([[False, False, True], [False, True, True]])
    _, weights = layer(x, x, x, padding)
    assert weights.shape == (2, 3, 3)
    assert weights[0, :, 2].tolist() == [0, 0, 0]
    assert weights[1, :, 0].tolist() == [1, 1, 1]


def test_dropped_weights_are_given_back_as_used() -> None:
    engine.manual_seed(0)
    layer = nn.MultiheadAttention(4, 2, dropout=0.5)
    x = engine.randn(9, 4)
    dropped = (layer(x, x, x, average_attn_weights=False)[1] == 0).sum().item()
    assert 40 < dropped < 120
    layer.eval()
    assert layer(x, x, x)[1].amin().item() > 0


def test_an_own_activation_is_used() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation=lambda x: x * 0)
    stack = nn.TransformerEncoder(layer, 2)
    layer.linear2.weight.detach().fill_(1e9)
    assert stack.layers[0].linear2.weight.abs().amax().item() < 1e9, "weights are copies"
    assert layer(engine.randn(3, 1, 4)).abs().amax().item() < 2


@pytest.mark.parametrize("kind", ["encoder", "decoder", "rotary", "options"])
def test_captured_training_has_the_bits_of_eager_training(kind: str) -> None:
    def trained(eager: bool) -> list[Any]:
        engine.manual_seed(3)
        if kind == "encoder":
            layer: Any = nn.TransformerEncoderLayer(8, 2, 16, 0.1, "gelu", batch_first=True)
        elif kind == "decoder":
            layer = nn.TransformerDecoderLayer(8, 2, 16, 0.1, batch_first=True, norm_first=True)
        elif kind == "options":
            layer = nn.Sequential(
                nn.SelfAttention(8, 2, window=3, alibi=True, softcap=2.0, qk_norm="rms"),
                nn.SelfAttention(8, 2, rotary_steps=7, rotary_form="half", window=3, dropout=0.1),
            )
        else:
            layer = nn.Sequential(nn.Positions(7, 8), nn.RotaryEmbedding(8, 7), nn.Linear(8, 8))
        optimizer = optim.AdamW(layer.parameters(), lr=1e-2)
        mask = nn.Transformer.generate_square_subsequent_mask(7)
        other = engine.randn(2, 5, 8)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            if kind == "encoder":
                y = layer(x, mask, is_causal=True)
            else:
                y = layer(x, other, mask) if kind == "decoder" else layer(x)
            loss = (y * y).mean()
            loss.backward()
            optimizer.step()
            return loss

        captured = engine.capture(step, eager=eager)
        losses = [captured(engine.randn(2, 7, 8)).item() for _ in range(6)]
        assert eager or not captured.fallback_reason
        return [losses, [p.tolist() for p in layer.parameters()]]

    assert trained(eager=False) == trained(eager=True)


def test_slopes_count_steps_exactly_in_bfloat16() -> None:
    """Not all whole numbers above 256 are bfloat16, and steep slopes tell neighbours apart."""
    engine.manual_seed(0)
    layer = nn.SelfAttention(8, 2, alibi=True)
    layer.slopes.fill_(1.0)
    x = engine.randn(1, 300, 8)
    expected = layer(x)
    with engine.autocast():
        assert (layer(x).float() - expected).abs().amax().item() < 2e-2
    rounded = layer.to(engine.bfloat16)(x.to(engine.bfloat16))
    assert (rounded.float() - expected).abs().amax().item() < 2e-2
