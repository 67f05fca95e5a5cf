"""KeyValueCache and StatefulModule: what a model gives in portions is what it gives at once."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import pytest
from own_layers import (
    DECLARED,
    STEPS,
    VOCAB,
    WIDTH,
    Look,
    OwnAttention,
    Wave,
    around,
    assert_the_same,
)

from gradcli import engine
from gradcli.engine import Tensor, nn
from gradcli.errors import GradcliError, OptionError


@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize("cut", [(1,) * STEPS, (5, 1, 1, 5), (2, 3, 7)], ids=str)
def test_an_own_layer_that_declares_is_cached(name: str, cut: tuple[int, ...]) -> None:
    engine.manual_seed(1)
    assert_the_same(around(DECLARED[name]()), cut)


@pytest.mark.parametrize("make", [Look, OwnAttention, lambda: nn.SelfAttention(WIDTH, 2)])
def test_a_layer_in_two_places_has_two_states(make: Any) -> None:
    engine.manual_seed(1)
    layer = make()
    assert_the_same(around(layer, nn.ReLU(), layer), (3, 1, 1, 4))


def test_a_state_does_not_follow_memory_that_is_written_over() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.look = Look()

        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            y = self.look(input)
            with engine.no_grad():
                return input.add_(1.0) + y

    with engine.no_grad():
        assert_the_same(around(nn.ReLU(), Block()), (3, 1, 4))


def test_each_thread_has_its_own_cache() -> None:
    meeting = threading.Barrier(2)

    class Meeting(nn.Module):
        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            meeting.wait()
            return input

    engine.manual_seed(1)
    layers = nn.Positions(STEPS, WIDTH, 1.0), nn.SelfAttention(WIDTH, 2), Look()
    model, meeting_model = around(*layers), around(Meeting(), *layers)
    meeting_model[0], meeting_model[-1] = model[0], model[-1]
    tokens = engine.randint(0, VOCAB, (2, STEPS))
    outputs: dict[int, Tensor] = {}

    def run(row: int) -> None:
        cache = nn.KeyValueCache(meeting_model, STEPS)
        portions = tokens[row : row + 1].split([4, 1, 7] if row else [2, 5, 5], 1)
        outputs[row] = engine.cat([cache(portion) for portion in portions], 1)

    threads = [threading.Thread(target=run, args=(row,)) for row in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = model(tokens)
    for row in (0, 1):
        assert (outputs[row][0] - expected[row]).abs().amax().item() < 1e-12


def test_a_call_that_fails_changes_no_state() -> None:
    class Sometimes(nn.Module):
        fails = False

        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            if self.fails:
                raise OptionError("not now")
            return input

    engine.manual_seed(1)
    sometimes = Sometimes()
    model = around(Look(), nn.SelfAttention(WIDTH, 2), sometimes)
    tokens = engine.randint(0, VOCAB, (1, 6))
    cache = nn.KeyValueCache(model, STEPS)
    cache(tokens[:, :3])
    sometimes.fails = True
    with pytest.raises(OptionError, match="not now"):
        cache(tokens[:, 1:3])
    sometimes.fails = False
    assert (cache(tokens[:, 3:]) - model(tokens)[:, 3:]).abs().amax().item() < 1e-12
    cache.clear()
    sometimes.fails = True
    with pytest.raises(OptionError, match="not now"):
        cache(engine.zeros(2, 3, dtype=engine.int64))
    sometimes.fails = False
    assert (cache(tokens) - model(tokens)).abs().amax().item() < 1e-12


def test_a_state_is_read_once_and_set_once() -> None:
    class Sets(nn.StatefulModule):
        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            self.state = input
            return input

    class Reads(nn.StatefulModule):
        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            assert self.state is None
            return input

    for module, what in ((Sets(), "set before it was read"), (Reads(), "read and not set")):
        x = engine.rand(1, 2, 3)
        assert module(x) is x  # no cache, no state
        with pytest.raises(OptionError, match=f"its state was {what}; a forward reads it once"):
            nn.KeyValueCache(module, STEPS)(x)


def test_keys_of_another_shape_are_refused() -> None:
    class Keys(nn.StatefulModule):
        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            assert self.cache is not None
            self.cache.extend(self, *self.keys)
            return input

    keys, x = Keys(), engine.rand(2, 3, WIDTH)
    fits, turned = engine.rand(2, 4, 3, 5), engine.rand(2, 3, 4, 5)
    for bad in (turned, engine.rand(2, 3, 5), engine.rand(2, 4, 1, 5)):
        for keys.keys in ((fits, bad), (bad, fits)):
            with pytest.raises(GradcliError, match=r"Keys: keys and values must be .*, got"):
                nn.KeyValueCache(keys, STEPS)(x)
    cache, keys.keys = nn.KeyValueCache(keys, STEPS), (fits, engine.rand(2, 1, 3, 1))
    cache(x)
    keys.keys = engine.rand(2, 1, 3, 5), engine.rand(2, 1, 3, 1)
    with pytest.raises(GradcliError, match=r"here \(2, 4, 3, 5\), got \(2, 1, 3, 5\)"):
        cache(x)


def test_a_state_may_be_several_tensors() -> None:
    class Two(NamedTuple):
        total: Tensor
        counts: dict[str, int]

    class Mean(nn.StatefulModule):
        @nn.step_by_step
        def forward(self, input: Tensor) -> Tensor:
            total, counts = self.state or Two(engine.zeros_like(input[:, :1]), {"steps": 0})
            sums = input.cumsum(1) + total
            first = counts["steps"] + 1
            counts["steps"] += input.shape[1]
            self.state = Two(sums[:, -1:], counts)
            return sums / engine.arange(first, first + input.shape[1]).reshape(-1, 1)

    engine.manual_seed(1)
    with engine.no_grad():
        assert_the_same(around(Mean()), (2, 1, 5))


def test_another_batch_is_refused_before_any_state_sees_it() -> None:
    cache = nn.KeyValueCache(around(Look()), STEPS)
    cache(engine.zeros(2, 3, dtype=engine.int64))
    with pytest.raises(GradcliError, match="the batch was 2 and is now 1"):
        cache(engine.zeros(1, 3, dtype=engine.int64))


def test_a_cache_works_under_autocast() -> None:
    engine.manual_seed(1)
    block = nn.TransformerBlock(nn.SelfAttention(WIDTH, 2, rotary_steps=STEPS), 16)
    with engine.autocast():
        assert_the_same(around(block, Look(), dtype=engine.float32), (3, 1, 5), 0.05)


@pytest.mark.parametrize("make", [lambda: nn.SelfAttention(WIDTH, 2), Look, Wave])
def test_a_call_of_a_cache_is_not_captured(make: Any) -> None:
    engine.manual_seed(1)
    model = around(make())
    tokens = engine.randint(0, VOCAB, (1, STEPS))
    cache = nn.KeyValueCache(model, STEPS)
    step = engine.capture(lambda token: cache(token))
    with pytest.warns(UserWarning, match="the step is not captured"):
        output = engine.cat([step(token).clone() for token in tokens.split(1, 1)], 1)
    assert (output - model(tokens)).abs().amax().item() < 1e-12
