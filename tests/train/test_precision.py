"""`train: {precision: ...}`: what is computed in which type, and runs that resume or replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_capture_configs import FOLDER, SMALL, trained
from tiny import Silent, go_on, records, tiny_job, train

from gradcli import engine
from gradcli.config import build, load
from gradcli.config.json_schema import json_schema
from gradcli.engine import recording
from gradcli.engine.program.passes import PASSES
from gradcli.engine.program.record import Recording
from gradcli.errors import CheckpointError, ConfigError, ErrorGroup
from gradcli.train import precision
from gradcli.train.checkpoint import read
from gradcli.train.evaluate import Evaluation
from gradcli.train.generate import Sampling, continued
from gradcli.train.job import TrainSettings
from gradcli.train.step import OneStep


def job(value: str, **changes: Any) -> Any:
    return tiny_job(settings={"precision": value, **changes})


def losses(run: str) -> list[float]:
    return [line["loss"] for line in records(run) if line["event"] == "step"]


def calls(value: str, what: Callable[[Any], Any]) -> list[Any]:
    made = job(value)
    recorded = Recording()
    with recording.to(recorded):
        what(made)
    return recorded.calls


def one_step(made: Any) -> None:
    step = OneStep(made, made.dataset.splits["train"])
    with recording.to(None):
        inputs, targets = step.batch(engine.arange(8), engine.tensor([5, 1, 0]))
    step.__dict__["batch"] = lambda indices, state: (inputs, targets)
    with precision.products(made.settings):
        step.gradients(engine.arange(8), engine.tensor([5, 1, 0]))


def test_each_precision_makes_the_calls_that_it_says() -> None:
    found = {value: calls(value, one_step) for value in ("float32", "tf32", "bf16")}
    halves = {
        value: sum(view.dtype is engine.bfloat16 for call in made for view in call.views)
        for value, made in found.items()
    }
    assert halves["float32"] == halves["tf32"] == 0 < halves["bf16"]
    marks = {
        value: {call.options for call in made if call.kernel == "matmul"}
        for value, made in found.items()
    }
    assert marks == {"float32": {()}, "tf32": {(1.0,)}, "bf16": {()}}


def test_a_job_s_precision_does_not_depend_on_what_was_set_and_leaves_it() -> None:
    settings = TrainSettings(batch=1)
    engine.set_float32_matmul_precision("high")
    try:
        with precision.forward(settings), engine.no_grad():
            assert engine.get_float32_matmul_precision() == "highest"
        assert engine.get_float32_matmul_precision() == "high"
    finally:
        engine.set_float32_matmul_precision("highest")
    x = engine.ones(2, 2)
    with engine.autocast(), precision.forward(settings):
        assert (x @ x).dtype is engine.float32


def test_checkpoints_are_float32_and_the_training_is_near_that_in_float32(tmp_path: Path) -> None:
    half, single = (train(tmp_path / value, job(value)) for value in ("bf16", "float32"))
    newest = sorted((Path(half.run) / "checkpoints").glob("*.safetensors"))[-1]
    assert {one.dtype for one in read(newest).tensors.values()} <= {"F32", "F64"}
    a, b = losses(half.run), losses(single.run)
    assert a != b
    # Logits are rounded to 8 bits, which moves the first losses by 2^-9 of them; then weights part.
    assert max(abs(x - y) for x, y in zip(a[:5], b[:5], strict=True)) <= 2.0**-6


@pytest.mark.parametrize("value", ["bf16", "tf32"])
def test_a_resumed_run_has_the_same_bits(tmp_path: Path, value: str) -> None:
    whole = train(tmp_path / "whole", job(value))
    part = train(tmp_path / "part", job(value), max_steps=7)
    resumed = go_on(part.run, job(value))
    assert resumed.weights_sha256 == whole.weights_sha256


def test_another_precision_is_another_training(tmp_path: Path) -> None:
    part = train(tmp_path, job("bf16"), max_steps=3)
    with pytest.raises(CheckpointError, match=r'train\.precision: the checkpoint has "bf16"'):
        go_on(part.run, job("float32"))


@pytest.mark.parametrize(
    "name", ["mnist", "mnist_cnn", "long/shakespeare_gpt", "long/shakespeare_lstm"]
)
def test_captured_steps_of_configs_have_the_bits_of_eager_ones(name: str) -> None:
    path = FOLDER / f"{name}.yaml"
    small = SMALL if "shakespeare" in name else ("train.batch=32",)
    plan = load(path, (*small, "train.precision=bf16"))
    wanted = trained(plan, eager=True)
    for passes in ((), tuple(PASSES)):
        assert trained(plan, passes=passes) == wanted
    assert trained(plan, threads=1) == wanted


class Told(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_tf32_on_the_cpu_is_float32_and_a_line_says_so(tmp_path: Path) -> None:
    told = Told()
    run = train(tmp_path / "a", job("tf32"), reporter=told)
    says = "precision tf32: cpu computes products in float32, which is more precise"
    assert [note for note in told.notes if "precision" in note] == [says]
    silent = Told()
    other = train(tmp_path / "b", job("float32"), reporter=silent)
    assert run.weights_sha256 == other.weights_sha256
    assert not any("precision" in note for note in silent.notes)


def test_evaluations_are_computed_in_the_same_precision() -> None:
    figures = {
        value: Evaluation(job(value), job(value).dataset.splits["test"], "test").run()
        for value in ("bf16", "float32")
    }
    assert figures["bf16"]["test.loss"] != figures["float32"]["test.loss"]
    assert figures["bf16"]["test.loss"] == pytest.approx(figures["float32"]["test.loss"], rel=2e-2)


def test_text_is_written_in_the_same_precision() -> None:
    for value, dtype in (("bf16", engine.bfloat16), ("float32", engine.float32)):
        settings = (*SMALL, f"train.precision={value}")
        made = build(load(FOLDER / "long" / "shakespeare_gpt.yaml", settings))
        seen: list[Any] = []
        made.model.register_forward_hook(lambda *given, seen=seen: seen.append(given[-1].dtype))
        text = "".join(continued(made, "To be", Sampling(20, seed=3)))
        assert (len(text), set(seen)) == (20, {dtype})


def test_check_knows_the_key_and_its_values() -> None:
    with pytest.raises(
        (ConfigError, ErrorGroup), match="one of float32, tf32, bf16, got text 'fp16'"
    ):
        load(FOLDER / "mnist.yaml", ("train.precision=fp16",))
    assert load(FOLDER / "mnist.yaml", ("train.precision=tf32",)).train.precision == "tf32"
    assert '"tf32"' in json.dumps(json_schema())
