"""Operations and bytes of a call follow from its shapes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradcli import engine
from gradcli.bench import counting
from gradcli.engine import recording
from gradcli.engine.device import cpu
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.program.chain import Instruction, packed
from gradcli.engine.program.record import Buffer, Call, Recording, View


def calls_of(step: Callable[[], object]) -> dict[str, Call]:
    """The calls of a step by kernel; the last one of each."""
    recorded = Recording()
    with recording.to(recorded):
        kept = step()
    recorded.close()
    assert kept is not None
    return {call.kernel: call for call in recorded.calls}


def work(step: Callable[[], object], kernel: str) -> tuple[int, int]:
    return counting.work(calls_of(step)[kernel])


def test_a_matrix_product_is_2mnk_for_each_matrix() -> None:
    a, b = engine.zeros(5, 3, 4), engine.zeros(5, 4, 7)
    flops, nbytes = work(lambda: a @ b, "matmul")
    assert flops == 5 * 2 * 3 * 4 * 7
    assert nbytes >= 4 * 5 * (3 * 4 + 4 * 7 + 3 * 7)


def test_all_three_convolutions_cost_the_same() -> None:
    x = engine.zeros(2, 4, 8, 8, requires_grad=True)
    w = engine.zeros(6, 2, 3, 3, requires_grad=True)

    def step() -> object:
        engine.conv2d(x, w, groups=2).sum().backward()
        return x.grad, w.grad

    found = calls_of(step)
    expected = 2 * 2 * 6 * 6 * 6 * (4 // 2) * 3 * 3
    for kernel in ("conv2d_forward", "conv2d_grad_input", "conv2d_grad_weight"):
        assert counting.work(found[kernel])[0] == expected, kernel


def test_what_stride_0_repeats_is_read_once() -> None:
    x, row = engine.zeros(100, 8), engine.zeros(8)
    assert work(lambda: x + row, "add") == (800, 4 * (800 + 8 + 800))


def test_a_gather_reads_only_the_rows_it_takes() -> None:
    table, rows = engine.zeros(10_000, 16), engine.tensor([3, 5])
    flops, nbytes = work(lambda: engine.index_select(table, 0, rows), "index_select")
    assert (flops, nbytes) == (0, 2 * 2 * 16 * 4 + 2 * 8)


def test_an_optimizer_reads_and_writes_what_it_updates() -> None:
    weight = engine.zeros(1000, requires_grad=True)
    (weight * weight).sum().backward()
    optimizer = engine.optim.Adam([weight])

    def step() -> object:
        optimizer.step()
        return weight

    _, nbytes = work(step, "adam_step")
    assert 0 <= nbytes - 4 * 1000 * 7 < 100


@pytest.mark.parametrize("kernel", [name for name in FACTS if name.endswith("_step")])
def test_a_step_moves_what_it_reads_and_twice_what_it_updates(kernel: str) -> None:
    grad, state = (View(Buffer(4000), 0, (1000,), (1,), engine.float32) for _ in range(2))
    hyper = View(Buffer(16), 0, (2,), (1,), engine.float64)
    step = Call(kernel, (grad, hyper), (state,) * FACTS[kernel].outputs)
    assert counting.work(step)[1] == 4000 + 16 + 2 * 4000 * FACTS[kernel].outputs


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_nothing_is_no_work(shape: tuple[int, ...]) -> None:
    x = engine.zeros(*shape)
    assert work(x.exp, "exp") == (0, 0)


def test_attention_counts_the_pairs_that_see_each_other() -> None:
    q = engine.zeros(2, 3, 5, 4, requires_grad=True)
    k, v = engine.zeros(2, 3, 5, 4), engine.zeros(2, 3, 5, 8)

    def step(causal: bool) -> object:
        out = engine.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out.sum().backward()
        return q.grad

    for causal, pairs in ((False, 25), (True, 15)):
        found = calls_of(lambda causal=causal: step(causal))  # type: ignore[misc]
        heads = 2 * 3 * pairs
        assert counting.work(found["attention_forward"])[0] == 2 * heads * (4 + 8)
        assert counting.work(found["attention_backward"])[0] == 2 * heads * (3 * 4 + 2 * 8)


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_recurrent_layer_multiplies_its_state_in_each_step(kind: str, gates: int) -> None:
    layer = getattr(engine.nn, kind)(3, 5)
    x = engine.zeros(7, 2, 3)

    def step() -> object:
        layer(x)[0].sum().backward()
        return [p.grad for p in layer.parameters()]

    found = calls_of(step)
    for direction in ("forward", "backward"):
        flops, _ = counting.work(found[f"{kind.lower()}_{direction}"])
        assert flops == 2 * 7 * 2 * gates * 5 * 5


def test_a_chain_counts_each_of_its_steps() -> None:
    x = View(Buffer(4 * 6), 0, (2, 3), (3, 1), engine.float32)
    steps = [
        Instruction("exp", (0,), 8),
        Instruction("add", (8, 0), 9),
        Instruction("relu", (9,), 5),
    ]
    chain = Call("chain", (x,), (x,), packed(steps))
    assert counting.work(chain) == (3 * 6, 2 * 4 * 6)


def test_a_row_behind_a_product_changes_no_count() -> None:
    a = View(Buffer(4 * 6), 0, (1, 2, 3), (6, 3, 1), engine.float32)
    out = View(Buffer(4 * 4), 0, (1, 2, 2), (4, 2, 1), engine.float32)
    plain = Call("matmul", (a, a, out), (out,))
    then = Call("matmul_then", (a, a, out, out), (out, out), (cpu.KERNELS["relu"],))
    assert counting.work(then)[0] == counting.work(plain)[0] == 2 * 2 * 2 * 3
