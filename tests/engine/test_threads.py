"""Python threads, over captured steps and eager ops: everybody gets the right answers.

`python tests/engine/test_threads.py 100000` asks for so many answers of each kind.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator
from functools import partial
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.device import cpu
from gradcli.engine.fused import decomposing
from gradcli.engine.nn import functional as F
from gradcli.engine.walk import _watching

THREADS = 8
Answers = Iterator[tuple[Any, Any]]  # (what came, what is right)
Kind = Callable[[], Callable[[int], Answers]]


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def model() -> Any:
    engine.manual_seed(1)
    return nn.Sequential(nn.Linear(65, 33), nn.BatchNorm1d(33), nn.GELU(), nn.Linear(33, 65)).eval()


def questions(number: int) -> list[Any]:
    """What one thread asks; 64 x 65 floats are read where they lie, 3 x 65 are copied."""
    rows = (64, 64, 64, 3)
    generator = engine.Generator(number)
    return [engine.randn(n, 65, generator=generator) for n in rows]


def one_captured_step() -> Callable[[int], Answers]:
    """The server: every thread calls the same function, from the first call on."""
    layers = model()

    def predict(x: Any) -> Any:
        with engine.no_grad():
            y = layers(x)
            return {"y": y, "largest": y.amax()}

    def listed(result: Any) -> Any:
        return result["y"].tolist(), result["largest"].tolist()

    fast = engine.capture(predict, on_fallback=refuse)

    def asked(number: int) -> Answers:
        given = questions(number)
        right = [listed(predict(x)) for x in given]
        three, all_three = engine.stack(given[:3]), [list(r) for r in zip(*right[:3], strict=True)]
        for i in itertools.count():
            if i % 10 == 9:
                yield list(listed(fast.scan(three))), all_three
            else:
                yield listed(fast(given[i % 4])), right[i % 4]

    return asked


def own_captured_steps() -> Callable[[int], Answers]:
    """Every thread trains a model of its own, captured; the losses are those of eager steps."""

    def losses(number: int, capture: bool) -> Iterator[Any]:
        layers = nn.Sequential(nn.Linear(65, 9), nn.Tanh(), nn.Linear(9, 65))
        for i, p in enumerate(layers.parameters()):
            p.data.copy_(engine.rand(*p.shape, generator=engine.Generator(number, step=i)) - 0.5)
        chosen = optim.Adam(layers.parameters(), lr=0.01)

        def step(x: Any) -> Any:
            chosen.zero_grad()
            loss = F.mse_loss(layers(x), x)
            loss.backward()
            chosen.step()
            return loss

        run = engine.capture(step, on_fallback=refuse) if capture else step
        given = questions(number)
        for i in itertools.count():
            yield run(given[i % 3]).item()

    return lambda number: zip(losses(number, True), losses(number, False), strict=True)


def eager_ops() -> Callable[[int], Answers]:
    """Every thread goes forward and backward through one model's values, with its own leaves."""
    layers = model()

    def gradient(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        with engine.no_grad():
            layers(x)
        (layers(leaf) * F.softmax(leaf, -1)).sum().backward(inputs=[leaf])
        return leaf.grad.tolist()

    def asked(number: int) -> Answers:
        given = questions(number)
        right = [gradient(x) for x in given]
        for i in itertools.count():
            yield gradient(given[i % 4]), right[i % 4]

    return asked


KINDS: dict[str, Kind] = {
    "one captured step": one_captured_step,
    "captured steps of their own": own_captured_steps,
    "eager ops": eager_ops,
}


def wrong_answers(kind: Kind, total: int) -> list[str]:
    """Ask so many times from eight threads at once; what went wrong."""
    asked = kind()
    found: list[str] = []
    begin = threading.Barrier(THREADS)

    def thread(number: int) -> None:
        try:
            answers = asked(number)
            begin.wait()
            for i, (came, right) in enumerate(itertools.islice(answers, total // THREADS)):
                if came != right:
                    found.append(f"thread {number}, answer {i}")
        except BaseException as error:
            begin.abort()
            found.append(f"thread {number}: {error!r}")

    together([partial(thread, i) for i in range(THREADS)])
    return found


def together(functions: list[Callable[[], object]]) -> None:
    """Each in a thread; Python changes from one to the next as often as it can."""
    threads = [threading.Thread(target=one) for one in functions]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", KINDS)
def test_eight_threads_get_the_answers_to_their_own_questions(kind: str) -> None:
    assert wrong_answers(KINDS[kind], 1600) == []


BLOCKS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "no_grad": (engine.no_grad, engine.is_grad_enabled),
    "inference_mode": (engine.inference_mode, engine.is_grad_enabled),
    "enable_grad": (engine.enable_grad, engine.is_grad_enabled),
    "set_grad_enabled": (lambda: engine.set_grad_enabled(False), engine.is_grad_enabled),
    "autocast": (engine.autocast, lambda: (engine.ones(2, 2) @ engine.ones(2, 2)).dtype),
    "decomposed": (engine.decomposed, decomposing),
    "detect_anomaly": (engine.detect_anomaly, _watching.get),
}


def test_the_table_has_every_block() -> None:
    public = {name for name in engine.__all__ if isinstance(getattr(engine, name), type)}
    blocks = {name for name in public if issubclass(getattr(engine, name), ContextDecorator)}
    assert blocks == set(BLOCKS)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("decorated", [True, False], ids=["decorator", "with"])
def test_a_block_that_threads_share_leaves_each_as_it_was(name: str, decorated: bool) -> None:
    make, state = BLOCKS[name]
    shared = make()
    found: list[bool] = []
    entered, both, left = threading.Event(), threading.Event(), threading.Event()

    def inside(function: Callable[[], object]) -> None:
        before = state()
        if decorated:
            shared(function)()
        else:
            with shared:
                function()
        found.append(state() == before)

    def hold(mine: threading.Event, other: threading.Event) -> None:
        mine.set()
        other.wait(10)

    def first() -> None:
        inside(partial(hold, entered, both))
        left.set()

    def second() -> None:
        with make():  # so that it finds another state than the first
            entered.wait(10)
            inside(partial(hold, both, left))

    together([first, second])
    assert found == [True, True]


def test_no_two_threads_make_the_same_draw() -> None:
    generator = engine.Generator(3)
    drawn: list[Any] = []

    def draw() -> Any:
        return engine.rand(2, generator=generator)

    def many(ways: list[Callable[[], Any]]) -> None:
        drawn.extend(tuple(ways[i % len(ways)]().tolist()) for i in range(900))

    captured: list[Callable[[], Any]] = [engine.capture(draw, on_fallback=refuse) for _ in "ab"]
    for _ in range(3):
        drawn.extend(tuple(step().tolist()) for step in captured)
    late = engine.capture(draw, on_fallback=lambda _: None)  # others draw while it is recorded
    ways: list[list[Callable[[], Any]]] = [[draw], [*captured, draw], [draw, late], captured]
    together([partial(many, each) for each in ways])
    assert len(drawn) == 3606
    assert len(set(drawn)) == len(drawn)


def test_a_step_that_one_thread_records_is_not_mixed_up_with_what_others_do() -> None:
    inside, over = threading.Event(), threading.Event()

    def step(x: Any) -> Any:
        y = x * 3.0
        inside.set()
        assert over.wait(10)
        return y + 1.0

    fast = engine.capture(step, on_fallback=refuse)
    came: list[Any] = []

    def record() -> None:
        came.extend(fast(engine.ones(3)).tolist() for _ in range(4))

    def others() -> None:
        assert inside.wait(10)
        leaf: Any = engine.ones(5, requires_grad=True)
        (leaf * 2.0).sum().backward()
        came.append(leaf.grad.tolist()[:3])
        waiting = threading.Thread(target=lambda: came.append(fast(engine.zeros(3)).tolist()))
        waiting.start()
        over.set()
        waiting.join()

    together([record, others])
    assert sorted(came) == [[1.0] * 3, [2.0] * 3] + [[4.0] * 3] * 4
    (program,) = fast.programs
    assert len(program.calls) == 1  # one chain; no call of the other thread


def test_a_step_that_stays_eager_runs_in_several_threads_at_once() -> None:
    both = threading.Barrier(2)

    def step(x: Any) -> Any:
        both.wait(10)
        return x * 2.0

    fast, came = engine.capture(step, eager=True), []
    together([lambda: came.append(fast(engine.ones(1)).item())] * 2)
    assert came == [2.0, 2.0]


def test_a_replay_that_is_interrupted_by_the_same_step_gives_its_own_answer() -> None:
    """As a signal handler may do, between any two lines."""
    fast = engine.capture(lambda x, y: (x + y).sum() * 1.0, on_fallback=refuse)
    large = [engine.full((80, 80), float(i)) for i in range(3)]
    for _ in range(3):
        fast(large[0], engine.tensor(0.0))
    asked = []

    def trace(frame: Any, event: str, _: object) -> Any:
        if "/engine/program/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            sys.settrace(None)
            asked.append(fast(large[2], engine.tensor(1.0)).item())
            sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answer = fast(large[1], engine.tensor(0.5)).item()
    finally:
        sys.settrace(before)
    assert answer == 6400 * 1.5
    assert asked == [6400 * 3.0] * len(asked)
    assert len(asked) > 20


def test_a_turn_ends_with_an_error_and_with_an_interrupt() -> None:
    table = engine.randn(5, 3)
    fast = engine.capture(lambda i: engine.index_select(table, 0, i), on_fallback=refuse)
    wrong, right, came = engine.tensor([7]), engine.tensor([1]), []

    def interrupted() -> Any:
        raise KeyboardInterrupt

    slow = engine.capture(interrupted, on_fallback=refuse)
    for _ in range(4):
        fast(right)
        with pytest.raises(IndexError):
            fast(wrong)
        with pytest.raises(KeyboardInterrupt):
            slow()

    def others() -> None:
        came.append(fast(right).tolist())
        with pytest.raises(KeyboardInterrupt):
            slow()
        came.append("over")

    together([others])
    assert came == [table[1:2].tolist(), "over"]


def test_a_child_that_is_forked_in_another_threads_turn_has_its_own() -> None:
    inside, over = threading.Event(), threading.Event()

    def step(x: Any) -> Any:
        if threading.current_thread() is recording:
            inside.set()
            over.wait(10)
        return x + engine.rand(3) * 0.0 + 1.0

    fast = engine.capture(step, on_fallback=refuse)
    recording = threading.Thread(target=lambda: fast(engine.zeros(3)))
    recording.start()
    assert inside.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        right = all(fast(engine.full((3,), i)).tolist() == [i + 1.0] * 3 for i in range(5))
        os._exit(0 if right and fast.programs else 1)
    over.set()
    recording.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


if __name__ == "__main__":
    cpu.fill_on_alloc(True)
    for kind in KINDS:
        found = wrong_answers(KINDS[kind], int(sys.argv[1]))
        asked = f"{kind}: {sys.argv[1]} answers in {THREADS} threads"
        sys.stdout.write(f"{asked}, {len(found)} wrong {found[:3]}\n")
