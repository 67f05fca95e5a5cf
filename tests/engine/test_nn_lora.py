"""Low-rank adaptation: a frozen layer, two thin matrices beside it, and both as one weight."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import Tensor, nn
from gradcli.engine.nn.lora import add_lora, is_adapter
from gradcli.errors import OptionError


def adapted(rank: int, alpha: float, bias: bool = True) -> tuple[nn.Linear, nn.LoRALinear, Tensor]:
    """A layer of float64, another with its parameters, whose B is not 0, and an input."""
    engine.manual_seed(3)
    plain = nn.Linear(5, 3, bias, dtype=engine.float64)
    layer = nn.LoRALinear(plain, rank, alpha)
    nn.init.normal_(layer.lora_B)
    return plain, layer, engine.randn(2, 7, 5, dtype=engine.float64).requires_grad_()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rank", "alpha"), [(1, 16.0), (2, 1.0), (9, 4.5)])
def test_it_is_the_layer_and_a_product_of_two(rank: int, alpha: float, bias: bool) -> None:
    plain, layer, x = adapted(rank, alpha, bias)
    product = alpha / rank * (layer.lora_B @ layer.lora_A)
    expected = plain(x) + x @ product.mT
    assert engine.allclose(layer(x), expected, rtol=1e-12, atol=1e-12)
    merged = layer.merged()
    assert engine.equal(merged.weight, plain.weight + product)
    assert engine.allclose(merged(x), layer(x), rtol=1e-12, atol=1e-12)
    assert merged.bias is plain.bias


def test_a_and_b_have_gradients_and_the_layer_has_none() -> None:
    plain, layer, x = adapted(2, 6.0)
    outputs = layer(x)
    weights = engine.randn(*outputs.shape, dtype=engine.float64)
    (outputs * weights).sum().backward()
    assert plain.weight.grad is None
    assert plain.bias is not None
    assert plain.bias.grad is None
    rows, along = x.detach().reshape(14, 5), weights.reshape(14, 3)
    thin = rows @ layer.lora_A.mT
    assert layer.lora_A.grad is not None
    assert layer.lora_B.grad is not None
    assert engine.allclose(layer.lora_B.grad, 3.0 * along.mT @ thin, rtol=1e-12)
    expected = 3.0 * (along @ layer.lora_B).mT @ rows
    assert engine.allclose(layer.lora_A.grad, expected, rtol=1e-12)


def test_it_begins_with_the_bits_of_the_layer() -> None:
    plain = nn.Linear(33, 17)
    x = engine.randn(4, 33)
    layer = nn.LoRALinear(plain, 4)
    assert engine.equal(layer(x), plain(x))
    assert not engine.equal(layer.lora_A, engine.zeros(4, 33))
    assert [*layer.state_dict()] == ["weight", "bias", "lora_A", "lora_B"]
    assert [is_adapter(f"0.{name}") for name in layer.state_dict()] == [False, False, True, True]


def test_dropout_acts_beside_the_layer_in_training_only() -> None:
    layer = nn.LoRALinear(nn.Linear(64, 8), 4, dropout=0.5)
    nn.init.normal_(layer.lora_B)
    x = engine.randn(3, 64)
    assert not engine.equal(layer(x), layer(x))
    layer.eval()
    assert engine.equal(layer(x), layer(x))
    whole = nn.LoRALinear(nn.Linear(64, 8), 4, dropout=1.0)
    nn.init.normal_(whole.lora_B)
    assert engine.equal(whole(x), nn.Linear.of(whole.weight, whole.bias)(x))


def test_layers_of_a_model_are_replaced_where_they_stand_and_back() -> None:
    block = nn.TransformerBlock(nn.SelfAttention(12, 3), 20)
    model = nn.Sequential(nn.Linear(5, 12), block, nn.Linear(12, 2)).eval()
    model[0].labels = ("linear", "first", None)
    calls: list[nn.Module] = []
    model[0].register_forward_hook(lambda layer, args, output: calls.append(layer))
    before = repr(model)
    x = engine.randn(2, 4, 5)
    y = model(x)
    add_lora(model, ["0", "1.attention.qkv", "2"], 2, 16.0, 0.0)
    assert [type(one).__name__ for one in model] == ["LoRALinear", "TransformerBlock", "LoRALinear"]
    assert model[0].labels == ("linear", "first", None)
    assert not model[0].training
    assert engine.equal(model(x), y)
    assert calls[-1] is model[0]
    for name, parameter in model.named_parameters():
        if is_adapter(name):
            nn.init.normal_(parameter, 0.0, 0.1)
    changed = model(x)
    assert not engine.allclose(changed, y, rtol=1e-3)
    assert nn.merge_lora(model) == 3
    assert repr(model) == before
    assert model[0].labels == ("linear", "first", None)
    assert engine.allclose(model(x), changed, rtol=1e-5, atol=1e-6)
    assert nn.merge_lora(model) == 0


def test_what_is_no_linear_layer_is_refused() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))
    with pytest.raises(OptionError, match="'0' is a ReLU, expected a Linear"):
        add_lora(model, ["0"], 2, 16.0, 0.0)
    with pytest.raises(OptionError, match="rank must be a whole number >= 1, got 0"):
        nn.LoRALinear(model[1], 0)
    with pytest.raises(OptionError, match="linear must be"):
        nn.LoRALinear(model[0], 2)
