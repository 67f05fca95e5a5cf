"""`gradcli bench --device`: launches replayed, ceilings of a device, the step of a config."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from on_host import gpu  # noqa: F401

from gradcli import engine
from gradcli.bench import gpu_ceilings, kernels, launches, report, tables, torch_model
from gradcli.bench.kernels import Item
from gradcli.config import build, load
from gradcli.engine.device.gpu.device import GPU
from gradcli.engine.device.gpu.driver import Address

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "mnist.yaml"
SMALL = ("train.batch=4", "data.split.train=16", "data.split.val=4")


def test_noted_launches_do_their_work_again(gpu: GPU) -> None:  # noqa: F811
    x, y = engine.ones(5).to("cuda"), engine.zeros(5).to("cuda")
    with launches.record(gpu) as found:
        z = x + y
        driver = gpu.driver
    assert len(found) == 1
    assert gpu.driver is not driver
    y.copy_(x)
    assert z.tolist() == [1.0] * 5
    launches.replays(gpu, found)(3)()
    assert z.tolist() == [2.0] * 5
    assert len(found) == 1


def test_work_is_repeated_until_it_is_long_enough(gpu: GPU) -> None:  # noqa: F811
    x, y = gpu.allocate(1024), gpu.allocate(1024)
    copies = launches.copies(gpu, Address(x.handle, 0), Address(y.handle, 0), 1024)
    run, count = launches.long_enough(copies, 0.002)
    run()
    assert 1 < count <= launches.LONGEST


def test_the_ceilings_of_a_device_are_measured_on_it(
    gpu: GPU,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_ceilings, "LEVELS", (1 << 10, 1 << 12))
    monkeypatch.setattr(gpu_ceilings, "SIDES", (8, 16))
    found = gpu_ceilings.measure(gpu)
    assert [size for size, _ in found.copies] == [1 << 10, 1 << 12]
    assert all(rate > 0 for _, rate in found.copies)
    assert found.gflops > 0


def test_kernels_are_timed_by_their_launches(
    gpu: GPU,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def group(device: str) -> list[Item]:
        x = engine.ones(300).to(device)
        return [Item("relu 300", x.relu, nbytes=2400), Item("exp 300", x.exp, nbytes=2400)]

    monkeypatch.setattr(kernels, "GROUPS", (group,))
    monkeypatch.setattr(kernels, "STRETCH", 0.0)
    found = kernels.replayed(gpu, 2)
    assert [item.name for item, _ in found] == ["relu 300", "exp 300"]
    assert all(seconds > 0 for _, seconds in found)


def test_the_step_of_a_config_is_timed_on_the_device(
    gpu: GPU,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_ceilings, "LEVELS", (1 << 10,))
    monkeypatch.setattr(gpu_ceilings, "SIDES", (8,))
    planned = load(CONFIG, SMALL)
    job = build(planned)
    found = {**report.conditions("cuda"), **report.facts("mnist.yaml", job)}
    found |= report.of_config(job, planned.model, 1, 5, compare=False, device="cuda")
    assert set(found["steps"]) == {"eager", "captured"}
    assert found["why_not_captured"] == ""
    assert found["is"] == gpu.driver.describe()
    assert found["memory"]["on_gpu"] > found["memory"]["parameters"]
    assert "layers" not in found
    json.dumps(found)
    shown = "\n".join(tables.of_config(found))
    assert report.ON_A_GPU in shown
    assert "GFLOP/s of our matrix product" in shown
    assert job.dataset.splits["train"].batch(engine.tensor([0]))[0].device == "cpu"


@pytest.mark.parametrize(("name", "index"), [("cuda", 0), ("cuda:1", 1)])
def test_torch_is_measured_on_the_same_gpu(name: str, index: int) -> None:
    """It calls the GPU that it was told to use "cuda", wherever a name is wanted."""
    used: list[int] = []
    cuda = SimpleNamespace(is_available=lambda: True, set_device=used.append)
    backends = SimpleNamespace(cudnn=SimpleNamespace())
    torch = SimpleNamespace(
        cuda=cuda, backends=backends, set_float32_matmul_precision=lambda how: None
    )
    assert torch_model.device(torch, name) == "cuda"
    assert used == [index]
