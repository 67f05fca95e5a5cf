"""A step taken apart: every call has its layer, and the calls together are the step."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.bench import layers, step
from gradcli.bench.calls import CallOwners, Owned, Parts, Timed
from gradcli.bench.layers import Scope, Scopes
from gradcli.config import build, load
from gradcli.engine.device import cpu
from gradcli.engine.program.chain import Instruction, packed
from gradcli.engine.program.record import Buffer, Call, View
from gradcli.errors import NumericsError

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.fixture(scope="module")
def penguins() -> tuple[Any, Any, Parts]:
    """Config, job and the parts of its step."""
    config = load(CONFIGS / "penguins.yaml")
    job = build(config)
    return config, job, step.parts(job, config.model, times=2)


def test_every_layer_with_weights_has_its_calls_in_both_directions(
    penguins: tuple[Any, Any, Parts],
) -> None:
    _, _, parts = penguins
    scopes = {call.scope for call in parts.calls}
    # A relu may have become part of the product before it.
    for owner in ("0 linear 32", "2 linear 'head'", "loss"):
        assert {Scope(owner), Scope(owner, backward=True)} <= scopes
    assert {Scope("batch"), Scope("optimizer")} <= scopes


def test_kernels_belong_where_they_are_used(penguins: tuple[Any, Any, Parts]) -> None:
    _, job, parts = penguins
    owners = {call.call.kernel: call.scope.owner for call in parts.calls}
    assert owners["adam_step"] == "optimizer"
    assert owners["cross_entropy"] == owners["cross_entropy_backward"] == "loss"
    assert owners["index_select"] == "batch"
    products = [c for c in parts.calls if c.call.kernel.startswith("matmul")]
    # Two layers forward, two gradients of weights, one of an input: the first has no need of it.
    assert len(products) == 5
    assert {c.scope.owner for c in products} == {"0 linear 32", "2 linear 'head'"}
    assert not any("forward" in module.__dict__ for module in job.model.modules())


def call(kernel: str, inputs: list[View], output: View) -> Call:
    return Call(kernel, tuple(inputs), (output,))


def view(*shape: int) -> View:
    strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    return View(Buffer(4 * math.prod(shape)), 0, shape, strides, engine.float32)


def test_a_call_made_of_several_belongs_to_the_one_with_the_most_work() -> None:
    a, b, product, result = view(8, 8), view(8, 8), view(8, 8), view(8, 8)
    recorded = Owned(
        calls=[call("matmul", [a, b, a], product), call("relu", [product], result)],
        owners=[Scope("0 linear"), Scope("1 relu")],
    )
    origins = CallOwners(recorded)
    assert origins.owner(recorded.calls[0]) == Scope("0 linear")
    assert origins.owner(recorded.calls[1]) == Scope("1 relu")
    assert origins.owner(call("matmul_then", [a, b], result)) == Scope("0 linear")
    assert origins.owner(call("copy", [view(2)], view(2))) == layers.THE_REST


def test_the_arena_and_the_waves_are_those_of_a_program(penguins: tuple[Any, Any, Parts]) -> None:
    _, _, parts = penguins
    assert 0 < len(parts.calls) <= parts.eager
    assert 0 < parts.waves <= len(parts.calls) * 3
    assert parts.arena > 0
    assert all(call.seconds > 0 for call in parts.calls)


def test_taking_a_step_apart_trains_like_steps(penguins: tuple[Any, Any, Parts]) -> None:
    """One recorded step, then each call times + 1 times: four updates."""
    config = load(CONFIGS / "penguins.yaml")
    job = build(config)
    before = [p.tolist() for p in job.model.parameters()]
    step.parts(job, config.model, times=2)
    after = [p.tolist() for p in job.model.parameters()]
    assert before != after
    assert all(math.isfinite(p.abs().max().item()) for p in job.model.parameters())


def test_a_container_owns_only_what_its_layers_do_not() -> None:
    model = "model=[{residual: [{linear: 9}, relu]}, {linear: 3}]"
    config = load(CONFIGS / "penguins.yaml", [model])
    parts = step.parts(build(config), config.model, times=1)
    owners: dict[str, set[str]] = {}
    for call in parts.calls:
        owners.setdefault(call.scope.owner, set()).add(call.call.kernel)
    assert not any(kernel.startswith("matmul") for kernel in owners["0 residual"])
    assert any(kernel.startswith("matmul") for kernel in owners["0.0 linear 9"])


def test_what_has_become_part_of_a_call_is_named() -> None:
    def timed(kernel: str, *sizes: int) -> Timed:
        left_out, number = view(0), view()
        made = Call(kernel, (view(8, 8), left_out, number), (view(8),), sizes)
        return Timed(made, layers.THE_REST, 1.0, 0, 0)

    steps = [Instruction("exp", (0,), 8), Instruction("relu", (8,), 5)]
    assert timed("chain", *packed(steps)).title == "chain exp relu"
    assert timed("matmul_then", cpu.KERNELS["gelu"]).title == "matmul_then gelu"
    assert timed("conv2d_forward_then", *[0] * 8, cpu.KERNELS["relu"]).title.endswith(" relu")
    assert timed("matmul").title == "matmul"
    assert timed("matmul").shapes == "8x8 1 8"


def test_turns_end_with_their_block() -> None:
    scopes = Scopes()
    with scopes.of(Scope("outer")):
        with scopes.of(Scope("inner")):
            assert scopes.now == Scope("inner")
        assert scopes.now == Scope("outer")
    assert scopes.now == layers.THE_REST


def test_micro_batches_are_taken_apart_too() -> None:
    config = load(CONFIGS / "penguins.yaml")
    job = build(config)
    job = replace(job, settings=replace(job.settings, micro_batch=8))
    parts = step.parts(job, config.model, times=1)
    losses = [c for c in parts.calls if c.call.kernel == "cross_entropy"]
    assert len(losses) == 4
    assert {c.scope for c in losses} == {Scope("loss")}


def test_a_step_is_the_same_eagerly_and_captured() -> None:
    losses = []
    for captured in (False, True):
        steps = step.TrainingSteps(build(load(CONFIGS / "penguins.yaml")), captured=captured)
        losses.append([steps.run(count) for count in (1, 1, 1, 5, 20)])
        assert steps.fallback_reason == ""
    assert losses[0] == losses[1]


def test_a_loss_that_is_not_finite_ends_the_measurement() -> None:
    config = load(CONFIGS / "penguins.yaml", ["optim={name: sgd, lr: 1e30}"])
    with pytest.raises(NumericsError):
        step.TrainingSteps(build(config), captured=False).run(20)
