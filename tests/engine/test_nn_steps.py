"""step_by_step: which models generate with a cache, and why others do not."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from own_layers import DECLARED, STEPS, UNDECLARED, WIDTH, around, assert_the_same

from gradcli import engine
from gradcli.engine import Tensor, nn
from gradcli.engine.nn.generation import cache_obstacle, generate
from gradcli.errors import GradcliError, OptionError


def text(make: Any, cached: bool) -> list[int]:
    engine.manual_seed(3)
    model = around(make())
    generator = engine.Generator(7, purpose="text")
    return list(generate(model, [1, 2, 3], 30, STEPS, generator=generator, cached=cached))


@pytest.mark.parametrize("name", [*UNDECLARED, *DECLARED])
def test_text_of_own_layers_is_the_same_with_a_cache(name: str) -> None:
    make = {**UNDECLARED, **DECLARED}[name]
    assert text(make, cached=True) == text(make, cached=False)


@pytest.mark.parametrize("name", UNDECLARED)
def test_an_own_layer_that_declares_nothing_is_named(name: str) -> None:
    model = around(nn.ReLU(), UNDECLARED[name]())
    assert f"layer '2' ({name}) " in cache_obstacle(model)
    with pytest.raises(OptionError, match=f"KeyValueCache: layer '2' .{name}. .* at once instead"):
        nn.KeyValueCache(model, STEPS)


class Trusting(nn.Module):
    """Says falsely that the layer inside works step by step."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    @nn.step_by_step(answers_for=["layer"])
    def forward(self, input: Tensor) -> Tensor:
        return self.layer(input)


@pytest.mark.parametrize("name", UNDECLARED)
def test_with_a_cache_these_layers_would_be_wrong(name: str) -> None:
    engine.manual_seed(1)
    model = around(Trusting(UNDECLARED[name]()))
    with pytest.raises(AssertionError):
        assert_the_same(model, (3, 1, 4), 1e-3)


class Wide(nn.Linear):
    """No other forward: what Linear says holds for it."""

    def __init__(self) -> None:
        super().__init__(WIDTH, WIDTH)

    def extra_repr(self) -> str:
        return "wide"


def reversing(function: Any) -> Any:
    @functools.wraps(function)
    def wrapped(self: Any, input: Tensor) -> Tensor:
        return function(self, input.flip(1))

    return wrapped


def test_a_subclass_of_a_declaring_layer_declares_anew() -> None:
    class Called(Wide):
        def __call__(self, input: Tensor) -> Tensor:
            return super().__call__(input - input.mean(1, keepdim=True))

    class Mixin:
        def forward(self, input: Tensor) -> Tensor:
            return input.flip(1)

    class Mixed(Mixin, Wide):
        pass

    class Wrapped(Wide):
        forward = reversing(nn.Linear.forward)

    class Declaring(Wide):
        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            return 2 * super().forward(input)

    assert cache_obstacle(around(Wide())) == cache_obstacle(around(Declaring())) == ""
    assert "'1' (Called) has its own __call__" in cache_obstacle(around(Called()))
    for odd in (Mixed(), Wrapped()):
        assert "does not say that it works step by step" in cache_obstacle(around(odd))


def test_what_is_put_around_one_layer_is_not_covered_by_its_class() -> None:
    model = around(nn.SelfAttention(WIDTH, 2, rotary_steps=STEPS), nn.ReLU())
    assert cache_obstacle(model) == ""
    for path in ("1", "1.rotary", "2", ""):
        layer = model.get_submodule(path)
        for register in (layer.register_forward_hook, layer.register_forward_pre_hook):
            with register(lambda *_: None):
                assert "has a forward hook" in cache_obstacle(model)
        with layer.register_full_backward_hook(lambda *_: None):
            assert cache_obstacle(model) == ""
        for name in ("forward", "extra_repr"):
            layer.__dict__[name] = getattr(layer, name)
            assert f"has its own {name}" in cache_obstacle(model)
            del layer.__dict__[name]
    assert cache_obstacle(model) == ""


MIXING = [
    (lambda: nn.SelfAttention(WIDTH, 2, causal=False), "sees later steps, causal is False"),
    (lambda: nn.LayerNorm((STEPS, WIDTH)), "normalizes over the last 2 dimensions at once"),
    (lambda: nn.RMSNorm((STEPS, WIDTH)), "normalizes over the last 2 dimensions at once"),
    (lambda: nn.Softmax(1), "works along dim=1"),
    (lambda: nn.LogSoftmax(-2), "works along dim=-2"),
    (lambda: nn.Softmin(0), "works along dim=0"),
    (lambda: nn.GLU(1), "works along dim=1"),
    (lambda: nn.SwiGLU(-2), "works along dim=-2"),
    (lambda: nn.PReLU(STEPS), "has a weight a step"),
    *(
        (make, "does not say that it works step by step")
        for make in (
            lambda: nn.RotaryEmbedding(WIDTH, STEPS),
            lambda: nn.BatchNorm1d(STEPS),
            lambda: nn.GroupNorm(2, STEPS),
            lambda: nn.InstanceNorm1d(STEPS),
            lambda: nn.LocalResponseNorm(2),
            lambda: nn.Conv1d(STEPS, STEPS, 1),
            lambda: nn.AvgPool1d(2),
            lambda: nn.Flatten(),
            lambda: nn.Unflatten(1, (2, -1)),
            lambda: nn.LSTM(WIDTH, WIDTH, batch_first=True),
            lambda: nn.GRUCell(WIDTH, WIDTH),
            lambda: nn.MultiheadAttention(WIDTH, 2),
            lambda: nn.TransformerEncoderLayer(WIDTH, 2),
            lambda: nn.CosineSimilarity(),
        )
    ),
]


@pytest.mark.parametrize(("make", "reason"), MIXING)
def test_layers_that_mix_steps_are_named_with_the_reason(make: Any, reason: str) -> None:
    layer = make()
    model = nn.Sequential(nn.Identity(), nn.ModuleList([nn.ReLU(), layer])).eval()
    title = f"layer '1.1' ({type(layer).__name__}) {reason}"
    assert cache_obstacle(model) == title
    with pytest.raises(OptionError) as caught:
        nn.KeyValueCache(model, STEPS)
    assert title in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        *(functools.partial(kind, 0.5) for kind in (nn.Dropout, nn.Dropout1d, nn.AlphaDropout)),
        lambda: nn.SelfAttention(WIDTH, 2, dropout=0.5),
    ],
)
def test_layers_that_drop_are_cached_in_evaluation_only(make: Any) -> None:
    model = around(make())
    assert_the_same(model, (3, 4))
    cache = nn.KeyValueCache(model, STEPS)
    model.train()
    assert cache_obstacle(model) == ""  # generation evaluates
    with pytest.raises(OptionError, match="drops at random in training mode"):
        nn.KeyValueCache(model, STEPS)
    with pytest.raises(OptionError, match="drops at random in training mode"):
        cache(engine.zeros(1, 2, dtype=engine.int64))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: nn.step_by_step(nn.Linear), "stands on the forward of a Module, got <class"),
        (lambda: nn.step_by_step(unless=str)(3), "stands on the forward of a Module, got 3"),
        (lambda: nn.step_by_step(answers_for="conv"), "answers_for is a list of names, got 'conv'"),
    ],
)
def test_a_mark_in_the_wrong_place_is_refused(use: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"step_by_step: {message}"):
        use()


def test_numbers_need_a_dimension_behind_the_steps() -> None:
    cache = nn.KeyValueCache(nn.Softmax(-1), STEPS)
    with pytest.raises(GradcliError, match=r"inputs must be \(batch, steps, numbers, ...\)"):
        cache(engine.rand(2, 5))
    x = engine.rand(2, 5, WIDTH)
    assert cache(x).tolist() == nn.Softmax(-1)(x).tolist()
