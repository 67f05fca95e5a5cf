"""The engine on Metal's driver, over the stand-in for pyobjc."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import metal_standin  # noqa: F401 -- before the driver looks for Metal
import outside_cases
import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.device.gpu import installed, opened


@pytest.fixture(autouse=True)
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "metal_unavailable_reason", lambda index: "")
    monkeypatch.setattr(opened, "_open", {})


def test_the_engine_computes_on_it() -> None:
    found = []
    for device in ("cpu", "metal"):
        x = engine.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]]).to(device)
        y = engine.gelu(x) @ x.transpose(0, 1)
        assert y.device == device
        found.append([value for row in y.tolist() for value in row])
    assert found[1] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize("check", [outside_cases.check_bits, outside_cases.check_failure])
def test_a_step_calls_a_function_of_python(check: Callable[[str], None]) -> None:
    check("metal")


@pytest.fixture
def hurried() -> Iterator[None]:
    """Python changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurried")
def test_threads_compute_at_the_same_time() -> None:
    """Each has autorelease pools of its own, and all of them one queue."""
    w = engine.randn(6, 5).to("metal")
    rows = [engine.randn(4, 6) for _ in range(4)]

    def step(x: Tensor) -> Tensor:
        y: Tensor = ((x @ w).tanh().softmax(-1) * 3).sum(0)
        return y

    expected = [step(x.to("metal")).tolist() for x in rows]

    def work(number: int) -> list[list[float]]:
        captured = engine.capture(step, on_fallback=pytest.fail)
        return [captured(rows[number].to("metal")).tolist() for _ in range(60)]

    with ThreadPoolExecutor(len(rows)) as threads:
        for found, wanted in zip(threads.map(work, range(len(rows))), expected, strict=True):
            assert found == [wanted] * 60
