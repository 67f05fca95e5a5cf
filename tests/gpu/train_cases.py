"""What a training by `gradcli ... --device` must do on every kind of GPU; tests say on which."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from gradcli.train import checkpoint
from gradcli.train.tensor_files import load_tensors

CONFIGS = Path(__file__).parents[2] / "configs"
PENGUINS = str(CONFIGS / "penguins.yaml")
MNIST = str(CONFIGS / "mnist.yaml")
OF_LABELS = (
    "[accuracy, {top_k: 2}, {f1: macro}, {recall: {average: none, name: each}}, roc_auc, "
    "log_loss, brier, confusion]"
)
OF_VALUES = "[mse, rmse, mae, mape, median_error, r2]"
SHORT = ("-s", "train.epochs=2", "-s", "train.log_every=1")


def result(done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode in (0, 6), done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def losses(run: str) -> list[float]:
    return figures(run, "loss")


def figures(run: str, name: str) -> list[float]:
    """What the log says of each step."""
    lines = [json.loads(line) for line in (Path(run) / "log.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if line["event"] == "step"]


@dataclass(frozen=True)
class TrainCases:
    """Cases on a device, with the command line as its stand-in runs it."""

    device: str
    gradcli: Callable[..., CompletedProcess[str]]

    def train(self, runs: Path, config: str, device: str, *words: str) -> dict[str, Any]:
        options = (config, "--device", device, "--runs", str(runs), "--json")
        return result(self.gradcli("train", *options, *words))

    def mnist_is_trained_as_on_the_cpu(self, runs: Path) -> None:
        words = ("--max-steps", "8", "-s", "train.log_every=1")
        there, here = (self.train(runs, MNIST, at, *words) for at in (self.device, "cpu"))
        assert len(losses(there["run"])) == 8
        assert losses(there["run"]) == pytest.approx(losses(here["run"]), abs=1e-4)
        norms = [figures(one["run"], "grad_norm") for one in (there, here)]
        assert norms[0] == pytest.approx(norms[1], rel=1e-3) and min(norms[0]) > 0
        expected = pytest.approx(here["metrics"]["test.loss"], abs=1e-4)
        assert there["metrics"]["test.loss"] == expected

    def mnist_is_trained_in_bfloat16_as_on_the_cpu(self, runs: Path) -> None:
        words = ("--max-steps", "8", "-s", "train.log_every=1", "-s", "train.precision=bf16")
        there, here = (self.train(runs, MNIST, at, *words) for at in (self.device, "cpu"))
        # Sums of float32 that differ in their last bit are now and then rounded apart: by 2^-9 of
        # a logit, which moves a batch's mean loss by a hundredth of that.
        assert losses(there["run"]) == pytest.approx(losses(here["run"]), abs=2e-3)
        in_float32 = self.train(runs, MNIST, self.device, *words[:4])
        assert losses(there["run"]) != losses(in_float32["run"])

    def the_last_evaluation_sees_what_it_sees_on_the_cpu(self, runs: Path) -> None:
        runs_there, runs_here = (
            Path(self.train(runs, PENGUINS, at, "-s", "train.epochs=1")["run"])
            for at in (self.device, "cpu")
        )
        texts = [(run / "evaluation.json").read_text() for run in (runs_there, runs_here)]
        there, here = map(json.loads, texts)
        assert there["confusion"] == here["confusion"]
        assert set(there) == set(here)
        for one, other in zip(there["worst"], here["worst"], strict=True):
            assert one["row"] == other["row"]
            assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)
        tensors, others = (
            load_tensors(run / "evaluation.safetensors") for run in (runs_there, runs_here)
        )
        for name, one in tensors.items():
            assert one.shape == others[name].shape
            flat = others[name].reshape(-1).tolist()
            assert one.reshape(-1).tolist() == pytest.approx(flat, abs=1e-3)

    def a_run_goes_on_with_the_same_bits_and_moves_between_devices(self, runs: Path) -> None:
        whole = self.train(runs, PENGUINS, self.device, *SHORT)
        part = self.train(runs, PENGUINS, self.device, *SHORT, "--max-steps", "5")
        go_on = ("--runs", str(runs), "--json", "--device")
        on_cpu = str(shutil.copytree(part["run"], runs / "on-cpu"))
        resumed = result(self.gradcli("resume", part["run"], *go_on, self.device))
        assert resumed["weights_sha256"] == whole["weights_sha256"]
        moved = result(self.gradcli("resume", on_cpu, *go_on, "cpu"))
        assert moved["steps"] == whole["steps"]
        assert losses(on_cpu) == pytest.approx(losses(whole["run"]), abs=1e-4)
        for device in ("cpu", self.device):
            metrics = result(self.gradcli("eval", whole["run"], "--json", "--device", device))
            expected = whole["metrics"]["test.loss"]
            assert metrics["metrics"]["test.loss"] == pytest.approx(expected, abs=1e-5)

    def data_that_stays_on_the_host_gives_the_same_bits(
        self, runs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = self.train(runs, PENGUINS, self.device, *SHORT)
        monkeypatch.setenv("STANDIN_SHARE", "1e-9")
        given = (PENGUINS, "--device", self.device, "--runs", str(runs), "--json", *SHORT)
        done = self.gradcli("train", *given)
        here = result(done)
        assert "the data stays in the host's memory: it would take" in done.stderr
        assert here["weights_sha256"] == there["weights_sha256"]
        assert here["metrics"] == there["metrics"]
        assert losses(here["run"]) == losses(there["run"])
        plans = [json.loads((Path(one["run"]) / "plan.json").read_text()) for one in (here, there)]
        assert plans[0]["memory"]["mapped"] > plans[1]["memory"]["mapped"] == 0
        evaluation = result(self.gradcli("eval", here["run"], "--json", "--device", self.device))
        assert evaluation["metrics"]["test.loss"] == here["metrics"]["test.loss"]

    def a_new_run_begins_with_the_weights_and_state_of_another(self, runs: Path) -> None:
        old = self.train(runs, PENGUINS, self.device, *SHORT, "--max-steps", "5")["run"]
        words = ("--from", f"{old}@last", "--from-optimizer", "--max-steps", "0")
        for device in (self.device, "cpu"):
            new = self.train(runs, PENGUINS, device, *words)["run"]
            first, last = (
                checkpoint.read(Path(run) / "checkpoints" / checkpoint.file_name(step)).tensors
                for run, step in ((new, 0), (old, 5))
            )
            assert {name: bytes(one.data) for name, one in first.items()} == {
                name: bytes(one.data) for name, one in last.items()
            }

    def metrics_are_those_of_the_cpu(self, runs: Path) -> None:
        """Those of labels, and those of values; the batches are uneven."""
        values = ("-s", "data.target=body_mass_g", "-s", "data.task=regression")
        values += ("-s", "data.numeric=[bill_length_mm, bill_depth_mm]", "-s", "loss=mse")
        values += ("-s", "model=[{linear: 1}]", "-s", "train.best=val.loss", "-s", "expect=null")
        for words, metrics in ((("-s", "train.batch=20"), OF_LABELS), (values, OF_VALUES)):
            measured = ("-s", f"metrics={metrics}", *words)
            run = self.train(runs, PENGUINS, "cpu", *SHORT, *measured)["run"]
            evaluation = ("eval", run, "--json", "--device")
            here, there = (result(self.gradcli(*evaluation, at)) for at in ("cpu", self.device))
            assert len(here["metrics"]) > 4
            assert there["metrics"] == pytest.approx(here["metrics"], rel=1e-4)
            assert there.get("tables") == here.get("tables")

    def predictions_are_those_of_the_cpu(self, runs: Path) -> None:
        """Captured, and eagerly."""
        new = str(CONFIGS.parent / "datasets" / "penguins" / "penguins.csv")
        for capture in ("true", "false"):
            run = self.train(runs, PENGUINS, "cpu", *SHORT, "-s", f"train.capture={capture}")["run"]
            there, here = (
                result(self.gradcli("predict", run, new, "--json", "--device", device))
                for device in (self.device, "cpu")
            )
            assert len(here["predictions"]) > 300
            for one, other in zip(there["predictions"], here["predictions"], strict=True):
                assert one["label"] == other["label"]
                assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
