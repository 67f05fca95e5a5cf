"""`gradcli ... --device metal` from config to checkpoint, over the stand-in for pyobjc's Metal."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import metal_standin
import pytest
from train_cases import MNIST, TrainCases


@pytest.fixture(params=["encoded", "indirect"])
def replay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which a recorded step is replayed."""
    monkeypatch.setenv("GRADCLI_METAL_REPLAY", request.param)


def gradcli(*words: str, **settings: object) -> CompletedProcess[str]:
    return metal_standin.run("gradcli", *words, **settings)


CASES = TrainCases("metal", gradcli)


@pytest.mark.usefixtures("replay")
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


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"memory": 94_000_000, "free": 10**9}, "no memory for"),
        ({"fails": "matmul"}, "Caused GPU Address Fault Error"),
    ],
)
def test_what_fails_on_the_device_is_a_sentence(
    tmp_path: Path, settings: dict[str, object], expected: str
) -> None:
    words = ("--runs", str(tmp_path), "--max-steps", "2")
    done = gradcli("train", MNIST, "--device", "metal", *words, **settings)
    assert done.returncode == 4
    assert done.stderr.partition("error[")[2].count("\n") <= 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
