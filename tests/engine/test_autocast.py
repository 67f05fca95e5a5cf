"""autocast: what becomes bfloat16 and what float32, that parameters are cast once, and captures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim, recording
from gradcli.engine.autocast import IN_FLOAT32, PRODUCTS, WIDEST
from gradcli.engine.device import cpu
from gradcli.engine.nn import functional as F
from gradcli.engine.program.passes import PASSES
from gradcli.engine.program.record import Recording
from gradcli.engine.table import OPS
from gradcli.errors import DTypeError, OptionError

HALF, SINGLE = engine.bfloat16, engine.float32


def randn(*size: int, dtype: Any = SINGLE) -> engine.Tensor:
    return engine.randn(*size, generator=engine.Generator(3)).to(dtype)


def casts(step: Callable[[], Any]) -> list[tuple[str, str]]:
    """From which type to which the copies of a step go."""
    recorded = Recording()
    with recording.to(recorded):
        step()
    return [
        (call.inputs[0].dtype.name, call.outputs[0].dtype.name)
        for call in recorded.calls
        if call.kernel == "copy"
    ]


def test_the_lists_name_ops_that_there_are_and_each_once() -> None:
    assert {*PRODUCTS, *IN_FLOAT32, *WIDEST} <= {name for name, _ in OPS.items()}
    assert len({*PRODUCTS, *IN_FLOAT32, *WIDEST}) == sum(map(len, (PRODUCTS, IN_FLOAT32, WIDEST)))


def test_products_are_bfloat16_and_sums_float32_in_a_block_only() -> None:
    x, w = randn(3, 5), randn(4, 5)
    with engine.autocast():
        y = F.linear(x, w)
        assert (y.dtype, y.softmax(-1).dtype, y.sum().dtype) == (HALF, SINGLE, SINGLE)
        assert (y.relu().dtype, (y + x[:, :4]).dtype, y.mean().dtype) == (HALF, SINGLE, HALF)
        assert F.mse_loss(y, x[:, :4]).dtype is SINGLE
        assert engine.addcmul(x[:, :4], y, y).dtype is SINGLE
        assert engine.mm(x, w.t()).dtype is engine.einsum("ij,kj->ik", x, w).dtype is HALF
    assert F.linear(x, w).dtype is SINGLE
    assert y.tolist() == F.linear(x.bfloat16(), w.bfloat16()).tolist()


def test_float64_and_whole_numbers_are_left_alone() -> None:
    x = randn(3, 5).double()
    with engine.autocast():
        assert (x @ x.t()).dtype is engine.float64
        assert x.exp().dtype is engine.float64
        assert engine.arange(5).sum().dtype is engine.int64


def test_blocks_nest_and_decorate() -> None:
    x = randn(3, 3)

    @engine.autocast()
    def product() -> engine.Tensor:
        with engine.autocast(enabled=False):
            inside = x @ x
        assert inside.dtype is SINGLE
        with engine.autocast():
            assert (x @ x).dtype is HALF
        return x @ x

    assert product().dtype is product().dtype is HALF
    assert (x @ x).dtype is SINGLE
    with engine.autocast("cpu", engine.bfloat16):
        assert (x @ x).dtype is HALF


def test_other_types_and_wrong_arguments_are_refused() -> None:
    with pytest.raises(OptionError, match=r"dtype must be bfloat16, got gradcli\.float32"):
        engine.autocast(dtype=SINGLE)
    with pytest.raises(DTypeError, match=r"autocast\(dtype=bfloat16\)"):
        engine.autocast(HALF)  # type: ignore[arg-type]


def test_gradients_of_float32_parameters_are_float32() -> None:
    layer, x = nn.Linear(5, 4), randn(3, 5).requires_grad_()
    with engine.autocast():
        loss = F.cross_entropy(layer(x), engine.tensor([0, 3, 1]))
    loss.backward()
    for tensor in (layer.weight, layer.bias, x):
        assert tensor.grad is not None
        assert tensor.grad.dtype is SINGLE
        assert tensor.grad.bfloat16().tolist() == tensor.grad.tolist()  # it came as bfloat16


def test_batch_norm_keeps_float32_statistics_beside_bfloat16() -> None:
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
    with engine.autocast():
        y = net(randn(4, 2, 6, 5))
        assert y.dtype is HALF
        loss = y.sum()
    loss.backward()
    norm = net[1]
    assert norm.running_mean.dtype is norm.weight.grad.dtype is norm.bias.grad.dtype is SINGLE
    wide = nn.BatchNorm2d(3)
    with engine.no_grad(), engine.autocast():
        conv = net[0](randn(4, 2, 6, 5))
    wide(conv.float())
    assert norm.running_var.tolist() == wide.running_var.tolist()
    net.eval()
    with engine.autocast():
        assert net(randn(1, 2, 6, 5)).dtype is HALF


# -- the cache -------------------------------------------------------------------------------------


def test_a_parameter_is_cast_once_in_an_outermost_block() -> None:
    w = nn.Parameter(randn(5, 5))
    x = randn(2, 5, dtype=HALF)

    def twice(**options: Any) -> None:
        with engine.autocast(**options):
            y = F.linear(x, w)
            with engine.autocast():
                F.linear(y, w)

    to_half = ("float32", "bfloat16")
    outputs = 0 if cpu.multiplies_bfloat16() else 2  # of both products
    assert casts(twice).count(to_half) == outputs + 1
    assert casts(lambda: twice(cache_enabled=False)).count(to_half) == outputs + 2
    assert casts(lambda: (twice(), twice())).count(to_half) == 2 * (outputs + 1)


def test_a_parameter_that_changes_in_a_block_is_cast_again() -> None:
    w, x = nn.Parameter(engine.ones(1, 1)), engine.ones(1, 1)
    with engine.autocast():
        assert F.linear(x, w).item() == 1
        with engine.no_grad():
            assert not F.linear(x, w).requires_grad
            w.copy_(engine.full((1, 1), 2.0))
        y = F.linear(x, w)
        assert y.item() == 2
        assert y.requires_grad
    y.backward()
    assert w.grad is not None


# -- what runs a step in other ways ----------------------------------------------------------------


def test_a_checkpoint_runs_again_as_it_ran() -> None:
    layer, x = nn.Linear(5, 5), randn(3, 5)
    found = []
    for part in (layer, lambda x: engine.checkpoint(layer, x)):
        layer.zero_grad()
        with engine.autocast():
            loss = part(x).float().square().sum()
        loss.backward()
        found.append((loss.tolist(), layer.weight.grad.tolist()))
    assert found[0] == found[1]


def test_composed_forms_run_in_the_type_of_the_op() -> None:
    x = randn(3, 5, dtype=HALF)
    with engine.autocast(), engine.decomposed():
        assert F.layer_norm(x, (5,)).dtype is SINGLE
        assert F.linear(x, randn(4, 5), randn(4)).dtype is HALF


def models() -> dict[str, Callable[[], tuple[nn.Module, engine.Tensor, engine.Tensor]]]:
    return {
        "mlp": lambda: (
            nn.Sequential(nn.Linear(7, 33), nn.GELU(), nn.LayerNorm(33), nn.Linear(33, 3)),
            randn(9, 7),
            engine.arange(9) % 3,
        ),
        "cnn": lambda: (
            nn.Sequential(
                nn.Conv2d(1, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(5, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(36, 3),
            ),
            randn(6, 1, 12, 12),
            engine.arange(6) % 3,
        ),
        "transformer": lambda: (
            nn.Sequential(
                nn.Embedding(11, 8),
                nn.TransformerBlock(nn.SelfAttention(8, 2), 16),
                nn.TransformerBlock(
                    nn.SelfAttention(8, 2, alibi=True, window=3, softcap=2.0, qk_norm="rms"),
                    16,
                    "swiglu",
                    norm_kind="rms",
                ),
                nn.Linear(8, 11),
            ),
            engine.arange(15).reshape(3, 5) % 11,
            engine.arange(15) % 11,
        ),
    }  # fmt: skip


def trained(name: str, passes: Any, *, eager: bool) -> tuple[list[Any], list[Any], str]:
    engine.manual_seed(5)
    model, x, target = models()[name]()
    optimizer = optim.Adam(model.parameters(), lr=1e-2)

    def step(x: engine.Tensor, target: engine.Tensor) -> engine.Tensor:
        optimizer.zero_grad()
        with engine.autocast():
            logits = model(x)
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target)
        loss.backward()
        optimizer.step()
        return loss

    fast = engine.capture(step, passes=passes, eager=eager)
    losses = [fast(x, target).item() for _ in range(6)]
    return losses, [p.tolist() for p in model.parameters()], fast.fallback_reason


@pytest.mark.parametrize("name", sorted(models()))
def test_a_captured_step_has_the_bits_of_the_eager_one_with_and_without_passes(name: str) -> None:
    wanted = trained(name, (), eager=True)
    assert wanted[0][-1] < wanted[0][0]
    for passes in ((), tuple(PASSES), *((one,) for one in PASSES)):
        found = trained(name, passes, eager=False)
        assert found[2] == ""
        assert found == wanted, passes


def test_a_program_belongs_to_the_block_around_its_call() -> None:
    x = randn(3, 3)
    fast = engine.capture(lambda x: x @ x)
    for _ in range(3):
        assert fast(x).dtype is SINGLE
        with engine.autocast():
            assert fast(x).dtype is HALF
    assert len(fast.programs) == 2
