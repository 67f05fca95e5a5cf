"""Activation checkpointing: less memory, the same bits of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import AutogradError, OptionError


def layers(width: int = 7, count: int = 4) -> nn.Sequential:
    engine.manual_seed(1)
    parts: list[nn.Module] = []
    for _ in range(count):
        parts += [nn.Linear(width, width), nn.Dropout(0.3), nn.BatchNorm1d(width), nn.GELU()]
    return nn.Sequential(*parts)


def run(
    model: nn.Module, forward: Callable[[engine.Tensor], engine.Tensor], x: engine.Tensor
) -> list[Any]:
    """Gradients, loss, statistics, and the random number that comes next."""
    engine.manual_seed(7)
    model.zero_grad()
    x = x.clone().requires_grad_()
    loss = (forward(x) ** 2).mean()
    loss.backward()
    grads = [None if p.grad is None else p.grad.tolist() for p in (x, *model.parameters())]
    return [loss.item(), grads, [b.tolist() for b in model.buffers()], engine.rand(1).item()]


def sequential(model: nn.Sequential, segments: int = 3) -> Callable[[engine.Tensor], engine.Tensor]:
    return lambda x: engine.checkpoint_sequential(list(model), segments, x)


def test_gradients_statistics_and_random_numbers_are_the_same_bits() -> None:
    x = engine.randn(5, 7)
    ways: list[Callable[[nn.Sequential], Callable[[engine.Tensor], engine.Tensor]]] = [
        lambda model: model,
        sequential,
        lambda model: sequential(model, 1),
        lambda model: sequential(model, 99),
        lambda model: lambda x: engine.checkpoint(model, x),
        lambda model: lambda x: engine.checkpoint(sequential(model), x),
    ]
    found = []
    for way in ways:
        model = layers()
        found.append(run(model, way(model), x))
    assert all(one == found[0] for one in found), [one == found[0] for one in found]


def test_statistics_that_are_averages_and_those_of_instances_move_once() -> None:
    x = engine.randn(5, 3, 4)
    found = []
    for way in (lambda model: model, lambda model: lambda x: engine.checkpoint(model, x)):
        norms = nn.Sequential(
            nn.BatchNorm1d(3, momentum=None),
            nn.InstanceNorm1d(3, track_running_stats=True),
        )
        found.append(run(norms, way(norms), x))
    assert found[0] == found[1]


def test_without_the_random_state_dropout_draws_anew() -> None:
    x = engine.ones(200).requires_grad_()
    y = engine.checkpoint(nn.Dropout(0.5), x, preserve_rng_state=False)
    y.sum().backward()
    assert x.grad is not None
    assert (x.grad > 0).tolist() != (y > 0).tolist()


def test_a_captured_step_replays_it_to_the_same_bits() -> None:
    x = engine.randn(6, 5, 7)
    found = []
    for captured in (False, True):
        model = layers()

        def step(x: engine.Tensor, model: nn.Sequential = model) -> engine.Tensor:
            model.zero_grad()
            loss: engine.Tensor = (sequential(model)(x) ** 2).mean()
            loss.backward()
            return loss

        fast = engine.capture(step) if captured else step
        engine.manual_seed(3)
        losses = [fast(x[i]).item() for i in range(6)]
        found.append([losses, [p.grad.tolist() for p in model.parameters() if p.grad is not None]])
        if isinstance(fast, engine.Captured):
            assert fast.fallback_reason == ""
            assert len(fast.programs) == 1
    assert found[0] == found[1]
    assert len(set(found[0][0])) == 6


def test_it_keeps_less_memory_and_frees_all_of_it(allocated: Callable[[], int]) -> None:
    model = nn.Sequential(*(nn.Tanh() for _ in range(12)))
    x = engine.randn(1000).requires_grad_()
    before = allocated()
    y = model(x)
    plain = allocated() - before
    del y
    y = sequential(model, 4)(x)
    assert allocated() - before <= plain // 2
    y.sum().backward()
    x.grad = None
    del y
    assert allocated() == before


@pytest.mark.parametrize("half", [False, True])
def test_a_captured_step_computes_again_when_the_way_back_comes_there(half: bool) -> None:
    """Earlier it could, and would keep in vain: the arena is that of few of the layers."""
    x = engine.randn(64, 32)
    found = []
    for segments in (1, 12):
        engine.manual_seed(5)
        blocks = [nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(12)]
        model = nn.Sequential(*blocks)

        def step(
            x: engine.Tensor, model: nn.Sequential = model, segments: int = segments
        ) -> engine.Tensor:
            model.zero_grad()
            with engine.autocast(enabled=half):
                loss = (sequential(model, segments)(x) ** 2).mean()
            loss.backward()
            return loss

        fast = engine.capture(step)
        losses = [fast(x).item() for _ in range(4)]
        [program] = fast.programs
        grads = [p.grad.tolist() for p in model.parameters() if p.grad is not None]
        found.append((program.arena_bytes, losses, grads))
    assert found[1][1:] == found[0][1:]
    assert found[1][0] < found[0][0] / 2


def test_grad_hooks_and_gradients_of_gradients_reach_into_it() -> None:
    w = engine.tensor([2.0], dtype=engine.float64, requires_grad=True)
    x = engine.tensor([3.0], dtype=engine.float64, requires_grad=True)
    calls, seen = [], []

    def cube(x: engine.Tensor) -> engine.Tensor:
        calls.append(1)
        square = x * x
        square.register_hook(lambda grad: seen.append(grad.item()))
        return square * x * w

    y = engine.checkpoint(cube, x)
    of_w, of_x = engine.grad(y, (w, x), create_graph=True)
    assert of_w is not None and of_x is not None
    assert (of_w.item(), of_x.item()) == (27.0, 54.0)
    assert len(calls) == 2 and seen == [6.0]
    (second,) = engine.grad(of_x, x)
    assert second is not None
    assert second.item() == 36.0


def test_several_results_and_ways_back_run_it_again_once() -> None:
    x = engine.tensor([0.5], requires_grad=True)
    calls = []

    def both(x: engine.Tensor, *, scale: float) -> dict[str, Any]:
        calls.append(1)
        return {"a": x.exp() * scale, "rest": [x.sin(), "text"]}

    made = engine.checkpoint(both, x, scale=2.0)
    made["a"].backward(retain_graph=True)
    made["rest"][0].backward()
    made["a"].backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(4 * 1.6487213 + 0.8775826)
    assert len(calls) == 2


def test_nothing_is_remembered_where_nothing_is_wanted() -> None:
    x = engine.ones(2).requires_grad_()
    calls = []
    with engine.no_grad():
        y = engine.checkpoint(lambda x: (calls.append(1), x * 2)[1], x)
    assert not y.requires_grad
    assert not engine.checkpoint(lambda x: x * 2, x.detach()).requires_grad


def test_an_own_function_may_be_part_of_it() -> None:
    class Square(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: engine.Tensor) -> engine.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2 * ctx.saved_tensors[0]

    x = engine.tensor([3.0], requires_grad=True)
    engine.checkpoint(lambda x: Square.apply(x.exp()), x).backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(2 * 403.428793, rel=1e-6)


def test_a_parameter_changed_before_the_way_back_is_noticed() -> None:
    layer = nn.Linear(3, 3)
    x = engine.ones(2, 3).requires_grad_()
    y = engine.checkpoint(layer, x).sum()
    with engine.no_grad():
        layer.weight.mul_(2)
    with pytest.raises(AutogradError, match=r"linear: a value kept .* was changed in place"):
        y.backward()


def test_a_function_that_does_something_else_the_second_time_is_refused() -> None:
    x = engine.ones(2).requires_grad_()
    turns = [engine.Tensor.exp, engine.Tensor.sin]
    y = engine.checkpoint(lambda x: turns.pop(0)(x), x)
    with pytest.raises(AutogradError, match="call 0 was 'exp' and then 'sin'"):
        y.sum().backward()
    more = [1, 2]
    y = engine.checkpoint(lambda x: x.exp() if more.pop(0) == 1 else x.exp().exp(), x)
    with pytest.raises(AutogradError, match="1 at first, then 2"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: engine.checkpoint(3, x), OptionError, "function must be a function, got 3"),
        (lambda x: engine.checkpoint(abs, x, use_reentrant=True), OptionError, "must be False"),
        (
            lambda x: engine.checkpoint_sequential([], 0, x),
            OptionError,
            "segments must be a whole number >= 1",
        ),
    ],
)
def test_wrong_calls_are_refused_in_words(call: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        call(engine.ones(2))
