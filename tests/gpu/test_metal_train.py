"""`gradcli ... --device metal` from config to checkpoint, over the stand-in for pyobjc's Metal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import metal_standin
import pytest

ROOT = metal_standin.ROOT
PENGUINS = str(ROOT / "configs" / "penguins.yaml")
MNIST = str(ROOT / "configs" / "mnist.yaml")
SHORT = ("-s", "train.epochs=2", "-s", "train.log_every=1")


@pytest.fixture(params=["encoded", "indirect"])
def replay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which a recorded step is replayed."""
    monkeypatch.setenv("GRADCLI_METAL_REPLAY", request.param)


def gradcli(*words: str, **settings: object) -> CompletedProcess[str]:
    return metal_standin.run("gradcli", *words, **settings)


def result(done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode in (0, 6), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def train(runs: Path, config: str, device: str, *words: str) -> dict[str, Any]:
    given = (config, "--device", device, "--runs", str(runs), "--json")
    return result(gradcli("train", *given, *words))


def losses(run: str) -> list[float]:
    lines = [json.loads(line) for line in (Path(run) / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["event"] == "step"]


@pytest.mark.usefixtures("replay")
def test_mnist_is_trained_as_on_the_cpu(tmp_path: Path) -> None:
    words = ("--max-steps", "8", "-s", "train.log_every=1")
    there, here = (train(tmp_path, MNIST, device, *words) for device in ("metal", "cpu"))
    assert len(losses(there["run"])) == 8
    assert losses(there["run"]) == pytest.approx(losses(here["run"]), abs=1e-4)
    assert there["metrics"]["test.loss"] == pytest.approx(here["metrics"]["test.loss"], abs=1e-4)


def test_mnist_is_trained_in_bfloat16_as_on_the_cpu(tmp_path: Path) -> None:
    words = ("--max-steps", "8", "-s", "train.log_every=1", "-s", "train.precision=bf16")
    there, here = (train(tmp_path, MNIST, device, *words) for device in ("metal", "cpu"))
    # Sums of float32 that differ in their last bit are now and then rounded apart: by 2^-9 of a
    # logit, which moves a batch's mean loss by a hundredth of that.
    assert losses(there["run"]) == pytest.approx(losses(here["run"]), abs=2e-3)
    assert losses(there["run"]) != losses(train(tmp_path, MNIST, "metal", *words[:4])["run"])


def test_a_run_goes_on_with_the_same_bits_and_moves_between_devices(tmp_path: Path) -> None:
    whole = train(tmp_path, PENGUINS, "metal", *SHORT)
    part = train(tmp_path, PENGUINS, "metal", *SHORT, "--max-steps", "5")
    go_on = ("--runs", str(tmp_path), "--json", "--device")
    on_cpu = shutil.copytree(part["run"], tmp_path / "on-cpu")
    resumed = result(gradcli("resume", part["run"], *go_on, "metal"))
    assert resumed["weights_sha256"] == whole["weights_sha256"]
    moved = result(gradcli("resume", str(on_cpu), *go_on, "cpu"))
    assert moved["steps"] == whole["steps"]
    assert losses(str(on_cpu)) == pytest.approx(losses(whole["run"]), abs=1e-4)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"memory": 94_000_000}, "no memory for"),
        ({"fails": "matmul"}, "Caused GPU Address Fault Error"),
    ],
)
def test_what_fails_on_the_device_is_a_sentence(
    tmp_path: Path, settings: dict[str, object], expected: str
) -> None:
    words = ("--runs", str(tmp_path), "--max-steps", "2")
    done = gradcli("train", MNIST, "--device", "metal", *words, **settings)
    assert done.returncode == 4
    assert done.stderr.count("\n") <= 4
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
