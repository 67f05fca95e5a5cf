"""Every shipped config: captured steps give the bits of eager ones, whatever is switched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.config import build, load
from gradcli.engine.device import cpu
from gradcli.engine.program.passes import PASSES
from gradcli.train.order import epoch_order
from gradcli.train.state import weights_sha256
from gradcli.train.step import OneStep

FOLDER = Path(__file__).resolve().parents[2] / "configs"
# GPT-2 makes the calls of shakespeare_gpt with 124 million weights.
CONFIGS = sorted(path for path in FOLDER.rglob("*.yaml") if path.stem != "gpt2")
STEPS = 5
# The same calls in a second.
SMALL = ("data.context=16", "train.batch=8")
TEXTS = ("nanochat", "shakespeare_bpe", "shakespeare_gpt", "shakespeare_lstm")
SMALLER = dict.fromkeys(TEXTS, SMALL)


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


@pytest.fixture(scope="module", params=CONFIGS, ids=lambda path: path.stem)
def plan(request: pytest.FixtureRequest) -> Any:
    return load(request.param, SMALLER.get(request.param.stem, ()))


def trained(plan: Any, threads: int = 2, **capture: Any) -> tuple[str, list[float]]:
    """The hash of the weights after a few steps, and the losses; a smaller batch is among them."""
    before = cpu.threads()
    cpu.set_threads(threads)
    try:
        job = build(plan)
        split = job.dataset.splits["train"]
        batch = min(job.settings.batch, split.size // (STEPS + 1))
        step = engine.capture(OneStep(job, split), on_fallback=refuse, **capture)
        order = epoch_order(job.settings.seed, 0, split.size)
        rates = engine.tensor([g["lr"] for g in job.optimizer.param_groups], dtype=engine.float64)
        losses = []
        for number in range(STEPS):
            for size in (batch, batch - 3):
                rows = order[number * batch : number * batch + size]
                state = engine.tensor([job.settings.seed, number + size, 0])
                losses.append(step(rows, rates, state)[0].item())
        assert len(step.programs) == (0 if capture.get("eager") else 2)
    finally:
        cpu.set_threads(before)
    return weights_sha256(job.model), losses


@pytest.fixture(scope="module")
def eager(plan: Any) -> tuple[str, list[float]]:
    return trained(plan, eager=True)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_replays_with_any_number_of_threads_are_the_eager_steps(
    plan: Any, eager: tuple[str, list[float]], threads: int
) -> None:
    assert trained(plan, threads) == eager


@pytest.mark.parametrize("left_out", [*PASSES, "all"])
def test_replays_without_a_pass_are_the_eager_steps(
    plan: Any, eager: tuple[str, list[float]], left_out: str
) -> None:
    passes = [name for name in PASSES if left_out not in (name, "all")]
    assert trained(plan, passes=passes) == eager


@pytest.mark.parametrize("only", PASSES)
def test_replays_with_one_pass_alone_are_the_eager_steps(
    plan: Any, eager: tuple[str, list[float]], only: str
) -> None:
    assert trained(plan, passes=[only]) == eager
