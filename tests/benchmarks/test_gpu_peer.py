"""PyTorch's side of the benchmarks of a GPU, here on the CPU: it computes and trains the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from benchmarks import gpu_device, gpu_products, gpu_torch  # noqa: E402
from benchmarks.gpu_jobs import CONFIGS, QUICKER, job_of  # noqa: E402
from gradcli import engine  # noqa: E402
from gradcli.bench.compare_torch import Rival  # noqa: E402
from gradcli.bench.step import TrainingSteps  # noqa: E402

pytestmark = pytest.mark.parity


@pytest.fixture
def peer() -> gpu_torch.Peer:
    return gpu_torch.Peer(torch, "cpu")


@pytest.mark.parametrize("case", gpu_products.QUICK, ids=lambda case: case.name)
def test_a_case_is_the_same_in_torch(peer: gpu_torch.Peer, case: gpu_products.Case) -> None:
    given = [engine.randn(*shape, generator=engine.Generator(1)) for shape in case.inputs]
    contender, numbers = gpu_products.theirs(peer, case, given)
    contender(2)()
    inputs = [tensor.clone().requires_grad_(case.backward) for tensor in given]
    y = case.ours(*inputs)
    if case.backward:
        y = engine.grad(y, inputs, engine.ones_like(y.detach()))[-1]
    ours = y.detach()[:1].reshape(-1).tolist()
    assert numbers == pytest.approx(ours, rel=1e-4, abs=1e-4)


def test_a_case_in_bfloat16_is_near(peer: gpu_torch.Peer) -> None:
    case = gpu_products.QUICK[0]
    given = [engine.randn(*shape) for shape in case.inputs]
    exact = gpu_products.theirs(peer, case, given)[1]
    half = gpu_products.theirs(peer, case, given, torch.bfloat16)[1]
    assert half != exact
    assert half == pytest.approx(exact, abs=0.2)


@pytest.mark.parametrize("name", QUICKER)
def test_a_rival_begins_with_our_loss(name: str) -> None:
    job = job_of(CONFIGS[name], QUICKER[name])
    start = {key: tensor.clone() for key, tensor in job.model.state_dict().items()}
    rival = Rival(torch, job, start, compiled=False, half=False)
    loss = TrainingSteps(job, captured=False).run(1)
    assert rival.run(1) == pytest.approx(loss, rel=1e-5)
    assert rival.run(2) != pytest.approx(loss, rel=1e-5)


def test_a_rival_computes_in_bfloat16_where_asked() -> None:
    job = job_of(CONFIGS["MNIST MLP"], QUICKER["MNIST MLP"])
    start = {key: tensor.clone() for key, tensor in job.model.state_dict().items()}
    losses = [Rival(torch, job, start, compiled=False, half=half).run(1) for half in (False, True)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_no_torch_takes_part_where_it_cannot_use_the_device() -> None:
    if torch.cuda.is_available():
        pytest.skip("it can")
    found, why_not = gpu_torch.peer("cuda")
    assert found is None
    assert "cannot use the device 'cuda'" in why_not


def test_work_is_repeated_until_it_fills_a_stretch() -> None:
    asked = []

    def ready(count: int) -> Callable[[], Any]:
        asked.append(count)
        return lambda: time.sleep(0.001 * count)

    found = gpu_device.timed({"sleep": ready}, gpu_device.Effort(stretch=0.02, times=2))
    assert asked[0] == 1
    assert 10 <= asked[-1] <= 20
    assert 1.0 <= found["sleep"].ms < 2.0
