"""What `--device cuda` answers on machines that lack something."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError

import pytest

from gradcli.cli import main, options
from gradcli.engine.device.gpu import installed, opened
from gradcli.errors import DeviceError

Machine = Callable[[dict[str, str], str, str], None]
BOTH = {"cuda-bindings": "13.5.0", "nvidia-cuda-nvrtc": "13.5.37"}
NOTHING = (
    "it needs cuda-bindings (not installed), nvidia-cuda-nvrtc (not installed), "
    "NVIDIA's driver libcuda.so.1 (not found) and a GPU (not asked for); "
    "the packages come with: pip install 'gradcli[cuda]'"
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Say what a machine has: versions of the packages, the driver, the GPUs."""

    def has(packages: dict[str, str], driver: str, device: str) -> None:
        def version(name: str) -> str:
            if name not in packages:
                raise PackageNotFoundError(name)
            return packages[name]

        monkeypatch.setattr(installed, "version", version)
        monkeypatch.setattr(installed, "_driver", lambda: driver)
        monkeypatch.setattr(installed, "_device", lambda: device)

    return has


def test_all_that_is_looked_for_is_named_with_the_line_that_installs_it(machine: Machine) -> None:
    machine({}, "", "1")
    assert installed.why_not_cuda() == NOTHING


def test_what_was_found_is_told_beside_what_was_not(machine: Machine) -> None:
    machine({"cuda-bindings": "13.5.0"}, "found", "1")
    said = installed.why_not_cuda()
    assert "cuda-bindings (13.5.0), nvidia-cuda-nvrtc (not installed)" in said
    assert said.endswith("pip install 'gradcli[cuda]'")


def test_a_missing_driver_is_not_cured_by_pip(machine: Machine) -> None:
    machine(BOTH, "", "1")
    said = installed.why_not_cuda()
    assert "libcuda.so.1 (not found) and a GPU (not asked for)" in said
    assert "pip" not in said
    assert "https://www.nvidia.com/drivers" in said


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("0", "a GPU (none); nvidia-smi lists"),
        ("none: CUDA_ERROR_NO_DEVICE", "a GPU (none: CUDA_ERROR_NO_DEVICE); nvidia-smi lists"),
    ],
)
def test_a_driver_without_a_gpu_says_so(machine: Machine, device: str, expected: str) -> None:
    machine(BOTH, "found", device)
    assert expected in installed.why_not_cuda()


def test_a_machine_with_everything_lacks_nothing(machine: Machine) -> None:
    machine(BOTH, "found", "1")
    assert installed.why_not_cuda() == ""


def test_the_command_line_ends_with_4_and_that_sentence(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine({}, "", "1")
    assert options.why_not("cuda") == NOTHING
    assert main.run(["bench", "--device", "cuda"]) == 4
    said = capsys.readouterr()
    assert f"device 'cuda' cannot be used: {NOTHING}" in said.err
    assert said.out == ""


def test_the_library_says_the_same(machine: Machine) -> None:
    machine({}, "", "1")
    with pytest.raises(DeviceError) as caught:
        opened.device("cuda")
    assert caught.value.message == f"device 'cuda' cannot be used: {NOTHING}"
