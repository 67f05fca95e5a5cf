from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn.generation import (
    WORTH_CAPTURE,
    cache_obstacle,
    generate,
    generate_rows,
    window_start,
)
from gradcli.engine.nn.sampling import TokenSampler, pick
from gradcli.errors import GradcliError, NumericsError

VOCAB, CONTEXT = 11, 12


def gpt(**options: Any) -> nn.Module:
    """Two small blocks, positions learnt or turned."""
    engine.manual_seed(5)
    rotary = options.pop("rotary_steps", None)
    parts: list[nn.Module] = [nn.Embedding(VOCAB, 8)]
    if rotary is None:
        parts.append(nn.Positions(CONTEXT, 8, std=1.0))
    for _ in range(2):
        attention = nn.SelfAttention(8, 4, rotary_steps=rotary, **options)
        parts.append(nn.TransformerBlock(attention, 16, "gelu_tanh"))
    return nn.Sequential(*parts, nn.LayerNorm(8), nn.Linear(8, VOCAB)).double().eval()


def lstm() -> nn.Module:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.lstm = nn.Embedding(VOCAB, 8), nn.LSTM(8, 8, batch_first=True)
            self.head = nn.Linear(8, VOCAB)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embed(x))[0])

    return Last()


KINDS: list[dict[str, Any]] = [
    {},
    {"kv_heads": 2},
    {"kv_heads": 1, "rotary_steps": CONTEXT},
    {"rotary_steps": CONTEXT, "rotary_form": "half", "rotary_base": 50.0, "qk_norm": "rms"},
    {"head_dim": 3, "qk_norm": "rms_plain", "softcap": 0.5, "qkv_bias": False},
    {"window": 1},
    {"window": 4, "kv_heads": 2, "softcap": 0.5},
    {"alibi": True, "window": 5, "kv_heads": 2},
    {"alibi": True},
]


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("cut", [(12,), (1,) * 12, (5, 1, 1, 5), (3, 4, 5)], ids=str)
def test_a_cache_changes_no_logit(options: dict[str, Any], cut: tuple[int, ...]) -> None:
    model = gpt(**options)
    tokens = engine.randint(0, VOCAB, (3, CONTEXT))
    wanted = model(tokens)
    cache = nn.KeyValueCache(model, CONTEXT)
    begin = 0
    for size in cut:
        assert cache.length == begin
        found = cache(tokens[:, begin : begin + size])
        difference = (found - wanted[:, begin : begin + size]).abs().amax().item()
        assert difference < 1e-12
        begin += size
    assert not found.requires_grad


def test_a_model_forgets_its_cache_after_the_call() -> None:
    model = gpt()
    tokens = engine.randint(0, VOCAB, (1, 4))
    wanted = model(tokens).tolist()
    cache = nn.KeyValueCache(model, CONTEXT)
    cache(tokens)
    with pytest.raises(GradcliError, match="13 steps are more than the 12 it keeps"):
        cache(engine.zeros(1, 9, dtype=engine.int64))
    assert model(tokens).tolist() == wanted
    cache.clear()
    assert cache(tokens).tolist() == wanted


def test_what_a_cache_cannot_hold_is_refused() -> None:
    model = gpt()
    with pytest.raises(GradcliError, match="steps must be a whole number >= 1, got 0"):
        nn.KeyValueCache(model, 0)
    with pytest.raises(GradcliError, match=r"steps must be a whole number >= 1, got 2\.5"):
        nn.KeyValueCache(model, 2.5)  # type: ignore[arg-type]
    with pytest.raises(GradcliError, match="model must be a Module, got 3"):
        nn.KeyValueCache(3, 4)  # type: ignore[arg-type]
    with pytest.raises(GradcliError, match=r"inputs must be a Tensor, got \[\[1\]\]"):
        nn.KeyValueCache(model, 4)([[1]])  # type: ignore[arg-type]
    cache = nn.KeyValueCache(model, CONTEXT)
    with pytest.raises(GradcliError, match=r"\(batch, steps\), got gradcli.int64 of shape \(3,\)"):
        cache(engine.zeros(3, dtype=engine.int64))
    cache(engine.zeros(2, 3, dtype=engine.int64))
    with pytest.raises(GradcliError, match="the batch was 2 and is now 1"):
        cache(engine.zeros(1, 3, dtype=engine.int64))


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("prompt", [1, 5, CONTEXT, CONTEXT + 1, 3 * CONTEXT + 2])
@pytest.mark.parametrize("way", [{}, {"temperature": 0}, {"repetition_penalty": 1.3}], ids=str)
def test_generation_with_the_cache_is_that_without(
    options: dict[str, Any], prompt: int, way: dict[str, Any]
) -> None:
    model = gpt(**options)
    begin = engine.randint(0, VOCAB, (prompt,)).tolist()

    def made(count: int, cached: bool) -> list[int]:
        generator = engine.Generator(7, purpose="text")
        return list(
            generate(model, begin, count, CONTEXT, generator=generator, cached=cached, **way)
        )

    tokens = made(WORTH_CAPTURE, cached=False)
    assert len(tokens) == WORTH_CAPTURE
    assert made(WORTH_CAPTURE, cached=True) == tokens  # its steps are replayed
    assert made(WORTH_CAPTURE - 1, cached=True) == tokens[:-1]  # these are not


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("count", [20, WORTH_CAPTURE])
def test_a_row_of_a_batch_is_what_it_is_alone(options: dict[str, Any], count: int) -> None:
    model = gpt(**options).float()

    def rows(seeds: list[int], **how: Any) -> list[list[int]]:
        sampler = TokenSampler([engine.Generator(seed) for seed in seeds], top_p=0.9)
        steps = generate_rows(model, [1, 2], count, CONTEXT, sampler, **how)
        return [list(row) for row in zip(*steps, strict=True)]

    together = rows([3, 4, 5])
    assert together == [rows([seed])[0] for seed in (3, 4, 5)]
    assert together == rows([3, 4, 5], captured=False) == rows([3, 4, 5], cached=False)
    assert len({tuple(row) for row in together}) == 3
    half = {"cache_dtype": engine.bfloat16}
    assert rows([3, 4], **half) == rows([3, 4], **half, captured=False)


def test_a_token_that_stops_is_not_given() -> None:
    def made(**how: Any) -> list[int]:
        return list(generate(gpt(), [1, 2], 30, CONTEXT, generator=engine.Generator(2), **how))

    tokens = made()
    stop = tokens[12]
    assert made(stop=[stop, 99]) == tokens[: tokens.index(stop)]
    assert made(stop=[99]) == tokens


def test_the_whole_prompt_is_read() -> None:
    model = gpt()
    begin = [1, 2, 3, 4]
    [found] = generate(model, begin, 1, CONTEXT, temperature=0)
    assert found == model(engine.tensor([begin]))[0, -1].argmax().item()


def test_one_pass_reads_the_prompt_and_each_token_is_read_once() -> None:
    read = []

    class Counted(nn.Sequential):
        @nn.step_by_step
        def forward(self, input: Any) -> Any:
            read.append(input.shape[1])
            return super().forward(input)

    model = Counted(gpt())
    list(generate(model, [1, 2, 3], 12, CONTEXT))
    assert read == [3] + [1] * 9 + [7, 1]  # beyond the context it goes on with the last half


@pytest.mark.parametrize(
    ("tokens", "start"), [(1, 0), (12, 0), (13, 6), (18, 6), (19, 12), (24, 12), (25, 18)]
)
def test_the_window_moves_on_by_half_a_context(tokens: int, start: int) -> None:
    assert window_start(tokens, CONTEXT) == start
    assert window_start(5, 1) == 4


def test_models_that_look_back_in_other_ways_are_not_cached() -> None:
    assert not cache_obstacle(gpt())
    assert "'2.attention' (SelfAttention) sees later steps" in cache_obstacle(gpt(causal=False))
    assert "the model (Last) does not say" in cache_obstacle(lstm())
    engine.manual_seed(1)
    assert len(list(generate(lstm(), [3], 30, CONTEXT))) == 30


def test_generation_leaves_the_mode_of_the_model() -> None:
    model = gpt(dropout=0.5).train()
    tokens = generate(model, [1], 5, CONTEXT)
    next(tokens)
    tokens.close()
    assert model.training


def test_generation_leaves_the_mode_of_each_layer() -> None:
    model = gpt(dropout=0.5).train()
    model[2].eval()
    modes = [module.training for module in model.modules()]
    list(generate(model, [1], 5, CONTEXT))
    assert [module.training for module in model.modules()] == modes


def test_tokens_are_picked_by_their_probability() -> None:
    generator = engine.Generator(3)
    logits = engine.tensor([0.1, 0.2, 0.3, 0.4]).log()
    counts = Counter(pick(logits, generator=generator) for _ in range(4000))
    for token in range(4):
        share = (token + 1) / 10
        assert abs(counts[token] / 4000 - share) < 4 * math.sqrt(share * (1 - share) / 4000)


@pytest.mark.parametrize(
    ("options", "possible"),
    [
        ({"top_k": 2}, {3, 2}),
        ({"top_k": 9}, {0, 1, 2, 3}),
        ({"top_p": 0.35}, {3}),
        ({"top_p": 0.65}, {3, 2}),
        ({"top_p": 1.0}, {0, 1, 2, 3}),
        ({"top_k": 3, "top_p": 0.5}, {3, 2}),
        ({"temperature": 0}, {3}),
        ({"temperature": 1e-4}, {3}),
    ],
)
def test_only_probable_tokens_are_left(options: dict[str, Any], possible: set[int]) -> None:
    generator = engine.Generator(3)
    logits = engine.tensor([0.1, 0.2, 0.3, 0.4]).log()
    found = {pick(logits, generator=generator, **options) for _ in range(300)}
    assert found == possible


def test_heat_evens_out_and_equals_go_by_number() -> None:
    generator = engine.Generator(3)
    logits = engine.tensor([9.0, 0.0])
    hot = sum(pick(logits, temperature=1000, generator=generator) for _ in range(400))
    assert 150 < hot < 250
    assert pick(engine.tensor([1.0, 5.0, 5.0]), temperature=0) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: pick(x, temperature=-1), "temperature must be 0 or more, got -1"),
        (lambda x: pick(x, temperature=math.nan), "temperature must be 0 or more, got nan"),
        (lambda x: pick(x, top_k=0), "top_k must be 1 or more, got 0"),
        (lambda x: pick(x, top_p=0), "top_p must be above 0 and at most 1, got 0"),
        (lambda x: pick(x, top_p=1.1), "top_p must be above 0 and at most 1, got 1.1"),
        (lambda x: list(generate(gpt(), [], 3, CONTEXT)), "the prompt needs at least one token"),
        (lambda x: list(generate(gpt(), [1], 3, 0)), "context must be 1 or more, got 0"),
        (lambda x: nn.SelfAttention(6, 4), "4 heads must divide the width 6 evenly"),
        (lambda x: nn.SelfAttention(6, 3, 2), "kv_heads 2 must divide heads 3 evenly"),
        (
            lambda x: nn.SelfAttention(6, 3, dropout=-1),
            "dropout must be a number from 0 to 1, got -1",
        ),
        (lambda x: nn.SelfAttention(6, 3)(x), "must be (batch, steps, 6), got (2,)"),
        (
            lambda x: nn.TransformerBlock(nn.SelfAttention(6, 3), 8, "tanh"),
            "'relusquared', 'swiglu', got 'tanh'",
        ),
    ],
)
def test_what_makes_no_sense_here_is_refused(call: Any, message: str) -> None:
    with pytest.raises(GradcliError) as caught:
        call(engine.tensor([1.0, 2.0]))
    assert message in str(caught.value)


def test_logits_that_are_not_finite_choose_nothing() -> None:
    with pytest.raises(NumericsError, match="not all finite"):
        pick(engine.tensor([1.0, math.nan]))


@pytest.mark.parametrize("options", [*KINDS, {"dropout": 0.2, "causal": False}], ids=str)
@pytest.mark.parametrize("norm_first", [True, False])
def test_captured_blocks_train_with_the_bits_of_eager_ones(
    options: dict[str, Any], norm_first: bool
) -> None:
    def trained(eager: bool) -> list[Any]:
        engine.manual_seed(3)
        block = nn.TransformerBlock(nn.SelfAttention(8, 4, **options), 16, "gelu", norm_first, 0.1)
        optimizer = optim.AdamW(block.parameters(), lr=1e-2)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (block(x) * x).mean()
            loss.backward()
            optimizer.step()
            return loss

        captured = engine.capture(step, eager=eager)
        losses = [captured(engine.randn(2, 7, 8)).item() for _ in range(6)]
        assert eager or not captured.fallback_reason
        return [losses, [p.tolist() for p in block.parameters()]]

    assert trained(eager=False) == trained(eager=True)
