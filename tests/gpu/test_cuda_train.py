"""`gradcli ... --device cuda` from config to checkpoint, over the stand-in for NVIDIA's driver."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

import cuda_standin

ROOT = cuda_standin.ROOT
PENGUINS = str(ROOT / "configs" / "penguins.yaml")
MNIST = str(ROOT / "configs" / "mnist.yaml")
SHORT = ("-s", "train.epochs=2", "-s", "train.log_every=1")


def gradcli(*words: str, **settings: object) -> CompletedProcess[str]:
    """The command line; kernels without their checks, which test_kernels.py makes."""
    variables = settings.pop("variables", {})
    assert isinstance(variables, dict)
    unchecked = {"STANDIN_CUDA_CHECKED": "0", **variables}
    return cuda_standin.run("gradcli", *words, variables=unchecked, **settings)


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


def test_mnist_is_trained_as_on_the_cpu(tmp_path: Path) -> None:
    words = ("--max-steps", "8", "-s", "train.log_every=1")
    there, here = (train(tmp_path, MNIST, device, *words) for device in ("cuda", "cpu"))
    assert len(losses(there["run"])) == 8
    assert losses(there["run"]) == pytest.approx(losses(here["run"]), abs=1e-4)
    assert there["metrics"]["test.loss"] == pytest.approx(here["metrics"]["test.loss"], abs=1e-4)


def test_mnist_is_trained_in_bfloat16_as_on_the_cpu(tmp_path: Path) -> None:
    words = ("--max-steps", "8", "-s", "train.log_every=1", "-s", "train.precision=bf16")
    there, here = (train(tmp_path, MNIST, device, *words) for device in ("cuda", "cpu"))
    # Sums of float32 that differ in their last bit are now and then rounded apart: by 2^-9 of a
    # logit, which moves a batch's mean loss by a hundredth of that.
    assert losses(there["run"]) == pytest.approx(losses(here["run"]), abs=2e-3)
    assert losses(there["run"]) != losses(train(tmp_path, MNIST, "cuda", *words[:4])["run"])


def test_a_run_goes_on_with_the_same_bits_and_moves_between_devices(tmp_path: Path) -> None:
    whole = train(tmp_path, PENGUINS, "cuda", *SHORT)
    part = train(tmp_path, PENGUINS, "cuda", *SHORT, "--max-steps", "5")
    go_on = ("resume", part["run"], "--runs", str(tmp_path), "--json", "--device")
    on_cpu = Path(part["run"]).with_name("on-cpu")
    cuda_standin.subprocess.run(["cp", "-r", part["run"], str(on_cpu)], check=True)
    resumed = result(gradcli(*go_on, "cuda"))
    assert resumed["weights_sha256"] == whole["weights_sha256"]
    moved = result(gradcli("resume", str(on_cpu), *go_on[2:], "cpu"))
    assert moved["steps"] == whole["steps"]
    assert losses(str(on_cpu)) == pytest.approx(losses(whole["run"]), abs=1e-4)
    for device in ("cpu", "cuda"):
        found = result(gradcli("eval", whole["run"], "--json", "--device", device))
        wanted = whole["metrics"]["test.loss"]
        assert found["metrics"]["test.loss"] == pytest.approx(wanted, abs=1e-5)


def test_out_of_memory_is_a_sentence(tmp_path: Path) -> None:
    done = gradcli("train", MNIST, "--device", "cuda", "--runs", str(tmp_path), memory=60_000_000)
    assert done.returncode == 4
    assert done.stderr.count("\n") <= 3
    assert "no memory for" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_training_has_to_fit_the_memory_of_its_device(tmp_path: Path) -> None:
    """And not that of the machine, of which there may be less: none is free here."""
    given = ("train", PENGUINS, "--runs", str(tmp_path), "--max-steps", "1", "--device")
    small = gradcli(*given, "cuda:1", memory=10_000, devices=2)
    assert small.returncode == 4, small.stderr
    assert small.stderr.startswith("error[E402] training needs ")
    assert " kB, device 'cuda:1' has 10.0 kB available" in small.stderr
    poor = {"STANDIN_HOST_FREE": "1000"}
    assert "this machine has 1.0 kB available" in gradcli(*given, "cpu", variables=poor).stderr
    done = gradcli(*given, "cuda", variables=poor)
    assert done.returncode in (0, 6), done.stderr


def test_the_second_gpu_trains_the_same_run(tmp_path: Path) -> None:
    words = (*SHORT, "--max-steps", "4")
    first = train(tmp_path, PENGUINS, "cuda", *words)
    given = (PENGUINS, "--device", "cuda:1", "--runs", str(tmp_path), "--json", *words)
    done = gradcli("train", *given, devices=2)
    assert "computing on cuda:1" in done.stderr
    second = result(done)
    assert second["weights_sha256"] == first["weights_sha256"]
    meta = json.loads((Path(second["run"]) / "manifest.json").read_text())
    assert meta["device"] == "cuda:1"


@pytest.mark.parametrize("command", [("bench",), ("train", PENGUINS)])
def test_a_gpu_that_is_not_there_is_refused_with_their_number(command: tuple[str, ...]) -> None:
    done = gradcli(*command, "--device", "cuda:1", variables={"CUDA_VISIBLE_DEVICES": "0"})
    assert done.returncode == 4
    assert (
        "device 'cuda:1' cannot be used: there is no GPU 1: NVIDIA's driver shows 1 GPU, number 0; "
        "CUDA_VISIBLE_DEVICES='0' says which it shows"
    ) in done.stderr


@pytest.mark.parametrize("command", ["doctor", "gradcheck"])
def test_checks_name_a_gpu_that_is_not_there(command: str) -> None:
    done = gradcli(command, *(("relu",) if command == "gradcheck" else ()), "--device", "cuda:3")
    assert done.returncode == 4
    assert "there is no GPU 3: NVIDIA's driver shows 1 GPU, number 0" in done.stdout + done.stderr


def test_the_second_gpu_is_checked_by_itself() -> None:
    done = gradcli("gradcheck", "relu", "--device", "cuda:1", devices=2)
    assert done.returncode == 0, done.stderr
    assert "gradcheck --device cuda:1: 1 ops" in done.stdout
