"""engine.capture: what a replay does is what the step does, bit for bit, or it stays eager."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.device import cpu
from gradcli.engine.nn import functional as F
from gradcli.errors import CaptureError, NumericsError, OptionError, ShapeError

Step = Callable[..., Any]


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def small(optimizer: Callable[[Any], Any], dropout: float = 0.0) -> tuple[Any, Step]:
    """A model, and a training step of it."""
    engine.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(7, 33), nn.ReLU(), nn.Dropout(dropout), nn.Linear(33, 5), nn.BatchNorm1d(5)
    )
    chosen = optimizer(model.parameters())

    def step(x: Any, y: Any) -> Any:
        chosen.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        chosen.step()
        return {"loss": loss, "largest": model[0].weight.amax()}

    return model, step


def batches(count: int, size: int = 11) -> tuple[Any, Any]:
    engine.manual_seed(8)
    return engine.randn(count, size, 7), engine.randint(0, 5, (count, size))


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
}


def weights(model: Any) -> list[bytes]:
    return [bytes(t.contiguous().memoryview()) for t in model.state_dict().values()]


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_replayed_steps_give_the_bits_of_eager_steps(name: str, threads: int) -> None:
    xs, ys = batches(9)
    before = cpu.threads()
    try:
        cpu.set_threads(threads)
        model, step = small(OPTIMIZERS[name])
        eager = [step(xs[i], ys[i]) for i in range(9)]
        other, step = small(OPTIMIZERS[name])
        captured = engine.capture(step, on_fallback=refuse)
        replayed = [captured(xs[i], ys[i]) for i in range(9)]
    finally:
        cpu.set_threads(before)
    assert [e["loss"].item() for e in eager] == [r["loss"].item() for r in replayed]
    assert [e["largest"].item() for e in eager] == [r["largest"].item() for r in replayed]
    assert weights(model) == weights(other)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert mine.grad.tolist() == theirs.grad.tolist()


def test_a_scan_is_a_loop_over_the_rows() -> None:
    xs, ys = batches(7)
    model, step = small(OPTIMIZERS["adam"], dropout=0.4)
    engine.manual_seed(5)
    eager = [step(xs[i], ys[i])["loss"].item() for i in range(7)]
    other, step = small(OPTIMIZERS["adam"], dropout=0.4)
    engine.manual_seed(5)
    captured = engine.capture(step, on_fallback=refuse)
    assert captured.scan(xs, ys)["loss"].tolist() == eager
    assert weights(model) == weights(other)
    again = [step(xs[i], ys[i])["loss"].item() for i in range(2)]
    model, step = small(OPTIMIZERS["adam"], dropout=0.4)
    engine.manual_seed(5)
    assert [step(xs[i % 7], ys[i % 7])["loss"].item() for i in range(9)][7:] == again


def test_a_smaller_batch_is_a_program_of_its_own() -> None:
    xs, ys = batches(6)
    model, step = small(OPTIMIZERS["adam"])
    other, captured_step = small(OPTIMIZERS["adam"])
    captured = engine.capture(captured_step, on_fallback=refuse)
    for i in range(6):
        for size in (11, 3):
            step(xs[i, :size], ys[i, :size])
            captured(xs[i, :size], ys[i, :size])
            for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
                assert mine.grad.tolist() == theirs.grad.tolist()
    assert len(captured.programs) == 2
    assert weights(model) == weights(other)


def test_a_learning_rate_that_changes_needs_no_new_program() -> None:
    def run(wrap: Callable[[Step], Step]) -> list[bytes]:
        xs, ys = batches(6)
        model = nn.Linear(7, 5)
        for p in model.parameters():
            p.data.copy_(engine.full(p.shape, 0.1))
        chosen = optim.SGD(model.parameters(), lr=0.0)

        def step(x: Any, y: Any) -> Any:
            chosen.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            chosen.step()
            return loss

        wrapped = wrap(step)
        for i in range(6):
            chosen.param_groups[0]["lr"] = 0.1 * i
            wrapped(xs[i], ys[i])
        return weights(model)

    made: list[Any] = []

    def wrap(step: Step) -> Step:
        made.append(engine.capture(step, on_fallback=refuse))
        return made[0]  # type: ignore[no-any-return]

    assert run(wrap) == run(lambda step: step)
    assert len(made[0].programs) == 1


def test_rates_and_random_state_given_as_tensors_reach_every_step_of_a_scan() -> None:
    def run(scan: bool) -> tuple[list[float], list[bytes]]:
        xs, ys = batches(6)
        engine.manual_seed(3)
        model = nn.Sequential(nn.Linear(7, 6), nn.Dropout(0.5), nn.Linear(6, 5))
        chosen = optim.Adam(model.parameters(), lr=1.0)

        def step(x: Any, y: Any, rates: Any, state: Any) -> Any:
            engine.set_rng_state(state)
            chosen.take_rates(rates)
            chosen.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            chosen.step()
            return loss

        rates = engine.tensor([[0.01 * i] for i in range(6)], dtype=engine.float64)
        states = engine.tensor([[42, i, 0] for i in range(6)])
        if scan:
            captured = engine.capture(step, on_fallback=refuse)
            losses = captured.scan(xs, ys, rates, states).tolist()
        else:
            losses = [step(xs[i], ys[i], rates[i], states[i]).item() for i in range(6)]
        return losses, weights(model)

    assert run(True) == run(False)


def test_training_mode_is_part_of_what_was_recorded() -> None:
    engine.manual_seed(1)
    model = nn.Dropout(0.5)
    forward = engine.capture(lambda x: model(x), on_fallback=refuse)
    x = engine.ones(50)
    trained = [forward(x).tolist() for _ in range(4)]
    model.eval()
    assert [forward(x).tolist() for _ in range(4)] == [[1.0] * 50] * 4
    model.train()
    assert forward(x).tolist() not in [*trained, [1.0] * 50]
    assert len(forward.programs) == 2


def refused(step: Step, *args: Any, times: int = 3) -> str:
    told: list[str] = []
    captured = engine.capture(step, on_fallback=told.append)
    for _ in range(times):
        assert captured(*args).tolist() == step(*args).tolist()
    assert captured.fallback_reason == told[0]
    assert not captured.programs
    assert len(told) == 1
    return told[0]


def test_a_step_that_reads_values_stays_eager() -> None:
    def step(x: Any) -> Any:
        return x * 2 if x.sum().item() > 0 else x

    assert "reads the values of a tensor" in refused(step, engine.ones(3))


def test_a_step_that_python_changes_stays_eager() -> None:
    seen: list[int] = []

    def step(x: Any) -> Any:
        seen.append(0)
        return x * float(len(seen) // 2)

    captured = engine.capture(step, on_fallback=seen.append)  # type: ignore[arg-type]
    captured(engine.ones(3))
    captured(engine.ones(3))
    captured(engine.ones(3))
    assert any("the options of its call" in str(s) or "anew" in str(s) for s in seen)
    assert captured.fallback_reason


def test_state_that_is_carried_from_step_to_step_by_python_stays_eager() -> None:
    carried = [engine.ones(3)]

    def step(x: Any) -> Any:
        carried[0] = carried[0] * 2 + x
        return carried[0]

    told: list[str] = []
    captured = engine.capture(step, on_fallback=told.append)
    sums = [captured(engine.ones(3)).tolist()[0] for _ in range(5)]
    assert sums == [3.0, 7.0, 15.0, 31.0, 63.0]
    assert "reads memory that the step before had made" in told[0]


def test_gradients_that_pile_up_over_steps_stay_eager() -> None:
    w = engine.ones(3, requires_grad=True)

    def step(x: Any) -> Any:
        (w * x).sum().backward()
        return x.sum()

    told: list[str] = []
    captured = engine.capture(step, on_fallback=told.append)
    for i in range(4):
        captured(engine.ones(3))
        assert w.grad.tolist() == [i + 1.0] * 3
    assert told


def test_an_argument_that_is_overwritten_stays_eager() -> None:
    def step(x: Any) -> Any:
        x.add_(1.0)
        return x.sum()

    told: list[str] = []
    captured = engine.capture(step, on_fallback=told.append)
    x = engine.zeros(3)
    for i in range(4):
        assert captured(x).item() == 3.0 * (i + 1)
    assert "overwrites one of its arguments" in told[0]


def test_what_cannot_be_captured_warns_by_default() -> None:
    captured = engine.capture(lambda x: x * x.sum().item())
    with pytest.warns(UserWarning, match="reads the values"):
        captured(engine.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured(engine.ones(3))


def test_wrong_arguments_and_results_are_refused() -> None:
    captured = engine.capture(lambda x: x)
    with pytest.raises(OptionError, match="tensors and plain values, got list"):
        captured([1, 2])
    with pytest.raises(OptionError, match="no pass 'fusing'"):
        engine.capture(lambda x: x, passes=["fusing"])
    with pytest.raises(ShapeError, match="one number of rows"):
        captured.scan(engine.ones(2, 3), engine.ones(3))
    with pytest.warns(UserWarning, match="returns object"):
        engine.capture(lambda x: object())(engine.ones(2))


def test_what_a_replay_gives_is_the_callers_own() -> None:
    captured = engine.capture(lambda x: x * 2, on_fallback=refuse)
    made = [captured(engine.full((3,), float(i))) for i in range(5)]
    assert [m.tolist()[0] for m in made] == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_a_number_that_is_not_finite_ends_the_steps_before_the_update() -> None:
    w = engine.ones(2)

    def step(x: Any) -> Any:
        loss = (w * x).sum()
        engine.require_finite(loss)
        w.add_(1.0)
        return loss

    captured = engine.capture(step, on_fallback=refuse)
    xs = engine.ones(6, 2)
    xs[4, 1] = math.inf
    result = captured.steps(xs)
    assert result.done == 4
    assert isinstance(result.error, NumericsError)
    assert result.outputs.tolist() == [2.0, 4.0, 6.0, 8.0, math.inf]
    assert w.tolist() == [5.0, 5.0]
    with pytest.raises(NumericsError, match="not finite"):
        captured(xs[4])


def test_an_index_out_of_range_is_refused_in_a_replay_too() -> None:
    table = engine.randn(5, 3)
    captured = engine.capture(lambda i: engine.index_select(table, 0, i), on_fallback=refuse)
    good = engine.tensor([0, 4])
    for _ in range(3):
        captured(good)
    with pytest.raises(IndexError, match=r"index 5 at position 1 is outside 0\.\.4"):
        captured(engine.tensor([0, 5]))
    assert captured(good).tolist() == [table[0].tolist(), table[4].tolist()]


def test_seeding_inside_a_step_stays_eager() -> None:
    def step(x: Any) -> Any:
        first = engine.rand(3)
        engine.manual_seed(4)
        return x + engine.rand(3) + first * 0

    engine.manual_seed(9)
    with pytest.warns(UserWarning, match="manual_seed: cannot be captured"):
        engine.capture(step)(engine.zeros(3))


def test_memory_stays_flat_over_many_replays(allocated: Callable[[], int]) -> None:
    xs, ys = batches(50)
    _, step = small(OPTIMIZERS["adam"])
    captured = engine.capture(step, on_fallback=refuse)
    captured.scan(xs, ys)
    before = allocated()
    for _ in range(20):
        captured.scan(xs, ys)
    assert allocated() == before


def test_the_arena_is_exactly_what_is_allocated_for_it(allocated: Callable[[], int]) -> None:
    x = engine.randn(40, 50)
    captured = engine.capture(lambda a: (((a * 2).exp() + 1) @ a.t()).sum(), on_fallback=refuse)
    captured(x)
    before = allocated()
    captured(x)
    (program,) = captured.programs
    assert program.arena_bytes >= 40 * 50 * 4
    scratch = cpu.threads() * max(plan.worker_bytes for plan in program.plans)
    assert allocated() - before == program.arena_bytes + scratch


def test_capture_error_is_one_of_ours() -> None:
    assert CaptureError("x").exit_code == 2


def test_options_of_the_optimizer_that_change_make_a_new_program() -> None:
    def run(wrap: Callable[[Step], Step]) -> list[bytes]:
        xs, ys = batches(8)
        engine.manual_seed(3)
        model = nn.Linear(7, 5)
        chosen = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)

        def step(x: Any, y: Any) -> Any:
            chosen.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            chosen.step()
            return loss

        wrapped = wrap(step)
        for i in range(8):
            if i == 3:
                chosen.param_groups[0]["weight_decay"] = 0.3
            if i == 6:
                model.bias.requires_grad_(False)
            wrapped(xs[i], ys[i])
        return weights(model)

    captured = run(lambda step: engine.capture(step, on_fallback=refuse))
    assert captured == run(lambda step: step)


def test_arguments_that_never_repeat_stay_eager_in_the_end() -> None:
    told: list[str] = []
    captured = engine.capture(lambda x, by: x * by, on_fallback=told.append)
    for i in range(80):
        assert captured(engine.ones(2), float(i)).tolist() == [i, i]
    assert len(told) == 1
    assert "more than 64 kinds of arguments; pass numbers that change as tensors" in told[0]


def test_a_long_scan_comes_back_to_python_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.engine.program.replay.STRETCH_SECONDS", 1e-9)
    captured = engine.capture(lambda x: x * 3, on_fallback=refuse)
    assert captured.scan(engine.arange(9)).tolist() == [3 * i for i in range(9)]
