"""outside.call: a function of Python inside a captured step, at its place and once a step."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim, outside
from gradcli.engine.device import cpu
from gradcli.engine.program.planned import arena_bytes
from gradcli.errors import NumericsError
from tests.engine.program.exchange import Exchange
from tests.engine.program.replays import bits, refuse

F = nn.functional
ROWS = 12


def trained(one: Exchange, name: str, eager: bool, threads: int = 1) -> list[Any]:
    """Several steps in one go, twice, and some one by one: what they give and what they leave."""
    before = cpu.threads()
    cpu.set_threads(threads)
    try:
        engine.manual_seed(7)
        captured = engine.capture(getattr(one, name), on_fallback=refuse, eager=eager)
        given = [bits(captured.scan(engine.rand(ROWS, 5, 4))) for _ in range(2)]
        given += [bits(captured(engine.rand(5, 4))) for _ in range(3)]
        assert len(captured.programs) == (not eager)
        return [given, one.state()]
    finally:
        cpu.set_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["step", "twice", "first"])
def test_a_captured_step_has_the_bits_of_an_eager_one(name: str, threads: int) -> None:
    eager, captured = Exchange(), Exchange()
    assert trained(captured, name, False, threads) == trained(eager, name, True)
    assert len(eager.calls) == (2 * ROWS + 3) * (1 if name == "step" else 2)


@pytest.mark.parametrize("name", ["step", "twice", "first"])
def test_it_is_called_once_a_step_and_not_for_the_proof(name: str) -> None:
    """So of processes that exchange some may replay their steps, and others not."""
    eager, captured = Exchange(), Exchange()
    trained(eager, name, True)
    trained(captured, name, False)
    assert captured.calls == eager.calls


# -- training ------------------------------------------------------------------------------------


class Training:
    """Gradients of several micro-batches in one buffer, exchanged, clipped and applied."""

    def __init__(self, recompute: bool = False) -> None:
        engine.manual_seed(11)
        self.layers = [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.25)]
        self.model = nn.Sequential(*self.layers, nn.Linear(8, 3))
        self.recompute = recompute
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.parameters = list(self.model.parameters())
        self.length = sum(p.numel() for p in self.parameters)
        self.source, self.out = engine.zeros(2, self.length), engine.zeros(self.length)

    def add(self) -> None:
        """The sum of two ranks, of which the other one found something else."""
        source: Any = self.source.memoryview()
        rows = source.cast("f").tolist()
        pairs = zip(rows[: self.length], rows[self.length :], strict=True)
        total = engine.tensor([a + 0.5 * b + 0.01 for a, b in pairs])
        self.out.copy_(total)

    def loss(self, x: Any, target: Any) -> Any:
        """Of one micro-batch."""
        if self.recompute:
            head, tail = self.model[:4], self.model[4]
            return F.cross_entropy(tail(engine.checkpoint(head, x)), target)
        return F.cross_entropy(self.model(x), target)

    def __call__(self, x: Any, target: Any) -> Any:
        """A step over two micro-batches."""
        losses = []
        for i in range(2):
            self.optimizer.zero_grad()
            loss = self.loss(x[4 * i : 4 * i + 4], target[4 * i : 4 * i + 4])
            loss.backward()
            self.source[i].copy_(engine.cat([p.grad.reshape(-1) for p in self.parameters]))
            losses.append(loss.detach())
        outside.call(self.add, [self.source], [self.out])
        begin = 0
        for p in self.parameters:
            p.grad = self.out[begin : begin + p.numel()].reshape(*p.shape)
            begin += p.numel()
        norm = optim.clip_grad_norm_(self.parameters, 0.1)
        self.optimizer.step()
        return losses[0] + losses[1], norm

    def state(self) -> list[list[float]]:
        """All that outlives a step."""
        held = [*self.model.state_dict().values(), self.out]
        return [t.reshape(-1).tolist() for t in held]


@pytest.mark.parametrize("recompute", [False, True])
def test_a_training_step_with_clipping_is_one_program(recompute: bool) -> None:
    ended = []
    for eager in (True, False):
        one = Training(recompute)
        engine.manual_seed(13)
        captured = engine.capture(one, on_fallback=refuse, eager=eager)
        x, target = engine.rand(9, 8, 6), engine.randint(0, 3, (9, 8))
        given = []
        for rate in (0.01, 0.003):  # a rate is brought to the step each time
            one.optimizer.param_groups[0]["lr"] = rate
            given.append(bits(captured.scan(x, target)))
        assert len(captured.programs) == (not eager)
        ended.append((given, one.state()))
    assert ended[0] == ended[1]


@pytest.mark.parametrize("recompute", [False, True])
def test_the_arena_is_known_before_and_nothing_is_called_for_it(recompute: bool) -> None:
    one = Training(recompute)
    captured = engine.capture(one, on_fallback=refuse)
    captured.scan(engine.rand(3, 8, 6), engine.randint(0, 3, (3, 8)))
    with engine.device("meta"):
        planned = Training(recompute)
        planned.add = refuse  # type: ignore[method-assign, assignment]
        args = engine.rand(8, 6), engine.zeros(8, dtype=engine.int64)
        planned(*args)
    assert arena_bytes(planned, args) == captured.programs[0].arena_bytes > 0


# -- what comes with a step ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 1 << 13])
def test_arguments_are_there_before_and_behind_the_function(size: int) -> None:
    """Large ones are read where they lie, by the calls of both sections."""
    source, out, sums = engine.zeros(size), engine.zeros(size), engine.zeros(size)

    def add() -> None:
        out.copy_(source + 1)

    def step(x: Any, y: Any) -> Any:
        source.copy_(x * 2)
        outside.call(add, [source], [out])
        sums.add_(out * x - y)
        return sums * 1, x.sum() + y

    ended = []
    for eager in (True, False):
        sums.zero_()
        engine.manual_seed(17)
        captured = engine.capture(step, on_fallback=refuse, eager=eager)
        rows = engine.rand(ROWS, size), engine.rand(ROWS, size)
        given = [bits(captured.scan(*rows)), bits(captured(rows[1][0], rows[0][0]))]
        assert len(captured.programs) == (not eager)
        ended.append((given, bits(sums)))
    assert ended[0] == ended[1]


@pytest.mark.parametrize("size", [3, 1 << 13])
def test_an_argument_is_what_it_was_before_the_step(size: int) -> None:
    """Also behind the function, where the step has changed the memory that was given."""
    sums, out = engine.zeros(size), engine.zeros(size)

    def add() -> None:
        out.copy_(sums)

    def step(x: Any) -> Any:
        sums.add_(1)
        outside.call(add, [sums], [out])
        return out * 100 + x

    captured = engine.capture(step, on_fallback=refuse)
    for count in range(1, 6):
        assert captured(sums)[0].item() == 100 * count + count - 1
    assert len(captured.programs) == 1


def test_random_numbers_are_the_steps_own_on_both_sides() -> None:
    source, out = engine.zeros(64), engine.zeros(64)

    def add() -> None:
        out.copy_(source)

    def step(x: Any) -> Any:
        source.copy_(F.dropout(x, 0.5))
        outside.call(add, [source], [out])
        return out, F.dropout(x, 0.5)

    ended = []
    for eager in (True, False):
        engine.manual_seed(19)
        captured = engine.capture(step, on_fallback=refuse, eager=eager)
        ended.append([bits(captured.scan(engine.ones(ROWS, 64))) for _ in range(2)])
    assert ended[0] == ended[1]


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 2, 3, 9])
def test_an_error_of_the_function_ends_the_steps_as_a_refused_value_does(at: int) -> None:
    """The state is that of the step before what stands behind the call."""
    ended = []
    for eager in (True, False):
        one = Exchange()
        error = NumericsError("exchange: nothing from rank 1")
        one.error = at, error
        captured = engine.capture(one.step, on_fallback=refuse, eager=eager)
        engine.manual_seed(23)
        steps = captured.steps(engine.rand(ROWS, 5, 4))
        assert steps.done == at - 1
        assert steps.error is error
        ended.append(one.state())
    assert ended[0] == ended[1]


def test_the_row_of_the_step_that_was_ended_is_what_its_memory_holds() -> None:
    one = Exchange()
    one.error = 6, NumericsError("exchange: nothing from rank 1")
    steps = engine.capture(one.step, on_fallback=refuse).steps(engine.rand(ROWS, 5, 4))
    assert steps.done == 5
    assert steps.outputs[0].shape == (6,)


def test_other_errors_are_raised_as_they_are() -> None:
    one = Exchange()
    one.error = 7, KeyError("rank 1")
    captured = engine.capture(one.step, on_fallback=refuse)
    with pytest.raises(KeyError, match="rank 1"):
        captured.scan(engine.rand(ROWS, 5, 4))
    assert len(captured.scan(engine.rand(2, 5, 4))[0]) == 2
    assert len(one.calls) == 7 + 2
