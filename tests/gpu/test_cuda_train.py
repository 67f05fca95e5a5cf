"""`gradcli ... --device cuda` from config to checkpoint, over the stand-in for NVIDIA's driver."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

import cuda_standin
from train_cases import MNIST, PENGUINS, SHORT, TrainCases, result


def gradcli(*words: str, **settings: object) -> CompletedProcess[str]:
    """The command line; kernels without their checks, which test_kernels.py makes."""
    variables = settings.pop("variables", {})
    assert isinstance(variables, dict)
    unchecked = {"STANDIN_CUDA_CHECKED": "0", **variables}
    return cuda_standin.run("gradcli", *words, variables=unchecked, **settings)


CASES = TrainCases("cuda", gradcli)


def test_mnist_is_trained_as_on_the_cpu(tmp_path: Path) -> None:
    CASES.mnist_is_trained_as_on_the_cpu(tmp_path)


def test_mnist_is_trained_in_bfloat16_as_on_the_cpu(tmp_path: Path) -> None:
    CASES.mnist_is_trained_in_bfloat16_as_on_the_cpu(tmp_path)


def test_data_that_stays_on_the_host_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CASES.data_that_stays_on_the_host_gives_the_same_bits(tmp_path, monkeypatch)


def test_a_new_run_begins_with_the_weights_and_state_of_another(tmp_path: Path) -> None:
    CASES.a_new_run_begins_with_the_weights_and_state_of_another(tmp_path)


def test_metrics_are_those_of_the_cpu(tmp_path: Path) -> None:
    CASES.metrics_are_those_of_the_cpu(tmp_path)


def test_the_last_evaluation_sees_what_it_sees_on_the_cpu(tmp_path: Path) -> None:
    CASES.the_last_evaluation_sees_what_it_sees_on_the_cpu(tmp_path)


def test_predictions_are_those_of_the_cpu(tmp_path: Path) -> None:
    CASES.predictions_are_those_of_the_cpu(tmp_path)


def test_a_run_goes_on_with_the_same_bits_and_moves_between_devices(tmp_path: Path) -> None:
    CASES.a_run_goes_on_with_the_same_bits_and_moves_between_devices(tmp_path)


def test_out_of_memory_is_a_sentence(tmp_path: Path) -> None:
    words = ("train", MNIST, "--device", "cuda", "--runs", str(tmp_path))
    done = gradcli(*words, memory=60_000_000, free=10**9)
    assert done.returncode == 4
    assert done.stderr.partition("error[")[2].count("\n") <= 2
    assert "no memory for" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_training_has_to_fit_the_memory_of_its_device(tmp_path: Path) -> None:
    """And not that of the machine, of which there may be less: none is free here."""
    given = ("train", PENGUINS, "--runs", str(tmp_path), "--max-steps", "1", "--device")
    small = gradcli(*given, "cuda:1", memory=10_000, devices=2)
    assert small.returncode == 4, small.stderr
    assert small.stderr.startswith("error[E402] training needs ")
    # Kilobytes: of scratch for threads, which would be megabytes, there is none.
    assert " kB, device 'cuda:1' has 10.0 kB available" in small.stderr
    poor = {"STANDIN_HOST_FREE": "1000"}
    assert "this machine has 1.0 kB available" in gradcli(*given, "cpu", variables=poor).stderr
    done = gradcli(*given, "cuda", variables=poor)
    assert done.returncode in (0, 6), done.stderr


def test_the_second_gpu_trains_the_same_run(tmp_path: Path) -> None:
    words = (*SHORT, "--max-steps", "4")
    first = CASES.train(tmp_path, PENGUINS, "cuda", *words)
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
    assert "gradcheck --device cuda:1: 1 op" in done.stdout
