"""Tensors on a device: where results are made, gradients, what is refused, and captured steps."""

from __future__ import annotations

import pytest
from on_host import gpu  # noqa: F401

from gradcli import engine
from gradcli.engine import Tensor, nn, optim
from gradcli.engine.array import run
from gradcli.engine.device.gpu.device import GPU, DeviceTensor
from gradcli.engine.device.gpu.driver import Address
from gradcli.engine.device.gpu.launch import CallSpec
from gradcli.engine.program.passes import PASSES
from gradcli.errors import DeviceError, DTypeError, GradcliError, NumericsError, RangeError

pytestmark = pytest.mark.usefixtures("gpu")
FEATURES, CLASSES, BATCH = 7, 3, 9


def close(x: Tensor, y: Tensor, allowed: float = 1e-6) -> bool:
    pairs = zip(x.reshape(-1).tolist(), y.reshape(-1).tolist(), strict=True)
    return all(abs(a - b) <= allowed * max(1, abs(b)) for a, b in pairs)


def test_a_tensor_goes_there_and_comes_back() -> None:
    for dtype in (engine.float32, engine.int64, engine.int32, engine.uint8, engine.bool_):
        x = engine.tensor([[1, 0, 1], [0, 1, 1]], dtype=dtype)
        there = x.to("cuda")
        assert (there.device, there.dtype, there.shape) == ("cuda", dtype, (2, 3))
        assert there.cpu().tolist() == x.tolist() == there.tolist()
        assert there.to("cuda") is there
    assert engine.zeros(0, 3).to("cuda").cpu().shape == (0, 3)


@pytest.mark.parametrize("strides", [(1 << 16, 1), (0, 0), (1, -(1 << 32))])
def test_a_tensor_with_more_elements_than_32_bits_count_is_refused(
    strides: tuple[int, int],
) -> None:
    there = engine.ones(1).to("cuda").array.storage.device
    assert isinstance(there, GPU)
    wide = DeviceTensor((1 << 16, 1 << 16), strides, engine.float32, Address(None, 0))
    with pytest.raises(DeviceError, match=r"exp: a tensor of shape \(65536, 65536\) reaches over"):
        there.plan_call(CallSpec("exp", [wide, wide]))
    small = DeviceTensor((1 << 16, 3), (3, 1), engine.float32, Address(None, 0))
    assert there.plan_call(CallSpec("exp", [small, small])).launches


def test_a_strided_tensor_goes_there_in_order() -> None:
    x = engine.arange(12.0).reshape(3, 4).t()
    assert x.to("cuda").tolist() == x.tolist()
    assert x.to("cuda").t().cpu().tolist() == x.t().tolist()


def test_results_are_made_where_the_inputs_are() -> None:
    x = engine.randn(4, 5).to("cuda")
    for y in (x + 1, x.exp(), x @ x.t(), x.sum(0), engine.zeros_like(x), x.softmax(-1), x[1:3]):
        assert y.device == "cuda"
    assert engine.ones(3).device == "cpu"


def test_gradients_are_those_of_the_cpu() -> None:
    x, w = engine.randn(BATCH, FEATURES), engine.randn(FEATURES, CLASSES)

    def gradients(device: str) -> tuple[Tensor, Tensor]:
        a, b = (t.to(device).detach().requires_grad_() for t in (x, w))
        ((a @ b).tanh() * 2).sum().backward()
        assert a.grad is not None and b.grad is not None
        assert a.grad.device == b.grad.device == device
        return a.grad.cpu(), b.grad.cpu()

    for found, wanted in zip(gradients("cuda"), gradients("cpu"), strict=True):
        assert close(found, wanted)


def test_the_gradient_of_a_move_moves_back() -> None:
    x = engine.randn(3).requires_grad_()
    (x.to("cuda") * 2).sum().backward()
    assert x.grad is not None
    assert (x.grad.device, x.grad.tolist()) == ("cpu", [2.0, 2.0, 2.0])


def test_numbers_of_the_cpu_are_taken_along() -> None:
    x, y = engine.randn(3, 4), engine.randn(4)
    there = x.to("cuda")
    assert close((there * y).cpu(), x * y)
    y.fill_(2.0)
    assert close((there * y).cpu(), x * 2)


def test_float64_stays_on_the_cpu() -> None:
    with pytest.raises(DTypeError, match="to: float64 is for the CPU"):
        engine.zeros(3, dtype=engine.float64).to("cuda")


def test_a_result_is_not_written_to_the_cpu() -> None:
    with pytest.raises(DeviceError, match=r"lies on cuda and another .* move one of them"):
        engine.zeros(3).copy_(engine.ones(3).to("cuda"))


def test_a_bad_index_is_an_error_when_results_are_read() -> None:
    rows = engine.randn(4, 2).to("cuda")
    picked = engine.index_select(rows, 0, engine.tensor([1, 7]))
    with pytest.raises(RangeError, match=r"index_select: index 7 at position 1 is outside 0..3"):
        picked.cpu()
    assert engine.index_select(rows, 0, engine.tensor([1])).cpu().shape == (1, 2)


def test_memory_comes_back(gpu: GPU) -> None:  # noqa: F811
    before = gpu.allocated()
    x = engine.zeros(1000).to("cuda")
    assert gpu.allocated() >= before + 4000
    del x
    assert gpu.allocated() == before


def trained(
    device: str, capture: bool, steps: int = 5, *, half: bool = False
) -> tuple[list[float], list[Tensor]]:
    """Losses and weights of a small training with clipping and a schedule."""
    engine.manual_seed(3)
    net = nn.Sequential(nn.Linear(FEATURES, 5), nn.GELU(), nn.Dropout(0.2), nn.Linear(5, CLASSES))
    x, t = engine.randn(BATCH, FEATURES), engine.arange(BATCH) % CLASSES
    net.to(device)
    x, t = x.to(device), t.to(device)
    optimizer = optim.AdamW(net.parameters(), lr=0.05)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step(rows: Tensor) -> Tensor:
        optimizer.zero_grad()
        with engine.autocast(enabled=half):
            loss: Tensor = nn.functional.cross_entropy(net(x[rows]), t[rows])
        loss.backward()
        optim.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        return loss

    run = engine.capture(step, on_fallback=pytest.fail) if capture else step
    losses = []
    for i in range(steps):
        losses.append(run(engine.tensor([i, 2, 5, 8 - i])).item())
        schedule.step()
    return losses, [p.detach().cpu() for p in net.parameters()]


def test_a_captured_step_gives_the_bits_of_an_eager_one() -> None:
    eager, captured = trained("cuda", False), trained("cuda", True)
    assert captured[0] == eager[0]
    for found, wanted in zip(captured[1], eager[1], strict=True):
        assert found.tolist() == wanted.tolist()


def test_a_training_is_that_of_the_cpu() -> None:
    found, wanted = trained("cuda", True), trained("cpu", True)
    assert found[0] == pytest.approx(wanted[0], abs=1e-5)
    for x, y in zip(found[1], wanted[1], strict=True):
        assert close(x, y, 1e-4)


@pytest.mark.parametrize("tensor_cores", [True, False])
def test_a_training_in_bfloat16_is_that_of_the_cpu(gpu: GPU, tensor_cores: bool) -> None:  # noqa: F811
    """Products of bfloat16 are rounded where the sums are made, or in calls of their own."""
    if not tensor_cores:
        gpu.multiplies_bfloat16 = frozenset()
    eager, captured = (trained("cuda", how, half=True) for how in (False, True))
    assert captured[0] == eager[0]
    for found, wanted in zip(captured[1], eager[1], strict=True):
        assert found.tolist() == wanted.tolist()
    loaded = {module.family for module in gpu.loaded if module.dtype == "bf16"}
    assert ("matmul_tensor" in loaded) == tensor_cores
    on_cpu = trained("cpu", True, half=True)
    assert captured[0] == pytest.approx(on_cpu[0], abs=2**-8)


def test_chains_widen_and_round_at_their_ends(gpu: GPU) -> None:  # noqa: F811
    """What lies between products is one kernel each, and its numbers stay bfloat16 in memory."""
    w, v = (engine.randn(40, 40).to("cuda").bfloat16() for _ in range(2))
    x, bias = engine.randn(9, 40).to("cuda").bfloat16(), engine.randn(40).to("cuda").bfloat16()
    one = engine.randn(5, 1).to("cuda")

    def step(x: Tensor) -> tuple[Tensor, ...]:
        y = (x @ w).tanh()
        z = ((y * bias + y).sigmoid() @ v).relu()
        turned = (z.t()[:, 2:7].t() * one).bfloat16()
        return z, y.float(), turned + 0.5, (z[1:] * 2.0)[::2]

    made = {}
    for passes in ((), ("ends",), tuple(p for p in PASSES if p != "ends"), tuple(PASSES)):
        run = engine.capture(step, passes=passes, on_fallback=pytest.fail)
        results = [tuple(one.cpu().tolist() for one in run(x)) for _ in range(4)]
        assert all(found == results[0] for found in results)
        (program,) = run.programs
        made[passes] = results[0], [call.kernel for call in program.calls]
    assert all(found == made[()][0] for found, _ in made.values())
    # tanh to sigmoid, relu, the product with a column, and the slice that is stepped.
    wanted = ["matmul", "chain", "matmul", "chain", "chain", "chain", "copy"]
    assert made[tuple(PASSES)][1] == wanted
    widths = [{view.dtype.size for view in call.views if view.numel > 40} for call in program.calls]
    assert widths[:4] == [{2}, {2, 4}, {2}, {2}]  # y is returned as float32


def test_convolutions_in_bfloat16_are_those_of_the_cpu(gpu: GPU) -> None:  # noqa: F811
    """Results and gradients differ by a rounding of bfloat16 at most."""
    found = {}
    for device in ("cuda", "cpu"):
        engine.manual_seed(5)
        x, w = engine.randn(2, 5, 7, 6), engine.randn(8, 5, 3, 3)
        x, w = (one.to(device).bfloat16().requires_grad_() for one in (x, w))
        y = nn.functional.conv2d(x, w, padding=1, stride=(2, 1))
        y.float().square().mean().backward()
        found[device] = [one.float().cpu() for one in (y, x.grad, w.grad)]
    assert {module.family for module in gpu.loaded} >= {"conv2d_tensor", "conv2d_input_tensor"}
    for mine, theirs in zip(found["cuda"], found["cpu"], strict=True):
        assert close(mine, theirs, 2**-7)


def test_wrong_products_of_bfloat16_are_refused_as_others_are() -> None:
    one = engine.ones(3, 4).to("cuda").bfloat16().array
    two = engine.ones(5, 2).to("cuda").bfloat16().array
    out, none = (engine.zeros(*n).to("cuda").bfloat16().array for n in ((1, 3, 2), (0,)))
    with pytest.raises(GradcliError, match=r"got shape \(1, 5, 2\); its tensors are ~bmk, ~bkn, "):
        run("matmul", one.reshape((1, 3, 4)), two.reshape((1, 5, 2)), none, out)


def test_scan_is_a_loop_over_the_rows() -> None:
    w = engine.randn(FEATURES, CLASSES).to("cuda")
    rows = engine.randn(6, BATCH, FEATURES)
    step = engine.capture(lambda x: (x @ w).relu().sum(0), on_fallback=pytest.fail)
    found = step.scan(rows.to("cuda"))
    assert (found.device, found.shape) == ("cuda", (6, CLASSES))
    for i in range(6):
        assert found[i].tolist() == (rows[i].to("cuda") @ w).relu().sum(0).tolist()


def test_a_number_that_is_not_finite_ends_the_steps() -> None:
    def step(x: Tensor) -> Tensor:
        y: Tensor = engine.require_finite(x.to("cuda").log().sum())
        return y

    captured = engine.capture(step, on_fallback=pytest.fail)
    rows = engine.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 2.0], [-1.0, 2.0], [1.0, 1.0]])
    result = captured.steps(rows)
    assert isinstance(result.error, NumericsError)
    assert result.done == 3
