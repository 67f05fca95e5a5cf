"""What `--device cuda` answers on machines that lack something."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.cli import main, options
from gradcli.engine.device.gpu import installed, opened
from gradcli.errors import DeviceError

Driver = tuple[int, int] | None
Machine = Callable[[dict[str, str], Driver, str], None]
NEW, OLD = (13, 0), (12, 4)  # the CUDA of a driver
BOTH = {"cuda-bindings": "13.5.0", "nvidia-cuda-nvrtc": "13.5.37"}
TWELVE = {"cuda-bindings": "12.9.10", "nvidia-cuda-nvrtc-cu12": "12.9.86"}
NOTHING = (
    "it needs cuda-bindings (not installed), nvidia-cuda-nvrtc (not installed), "
    "NVIDIA's driver libcuda.so.1 (not found) and a GPU (not asked for); "
    "the packages come with: pip install 'gradcli[cuda]'"
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Say what a machine has: versions of the packages, the driver, the GPUs."""

    def has(packages: dict[str, str], driver: Driver, device: str) -> None:
        monkeypatch.setattr(installed, "version", lambda name: packages.get(name, ""))
        monkeypatch.setattr(installed, "_driver", lambda: driver)
        monkeypatch.setattr(installed, "_device", lambda: device)

    return has


def test_all_that_is_looked_for_is_named_with_the_line_that_installs_it(machine: Machine) -> None:
    machine({}, None, "1")
    assert installed.cuda_unavailable_reason() == NOTHING


def test_what_was_found_is_told_beside_what_was_not(machine: Machine) -> None:
    machine({"cuda-bindings": "13.5.0"}, NEW, "1")
    said = installed.cuda_unavailable_reason()
    assert "cuda-bindings (13.5.0), nvidia-cuda-nvrtc (not installed)" in said
    assert said.endswith("pip install 'gradcli[cuda]'")


def test_a_missing_driver_is_not_cured_by_pip(machine: Machine) -> None:
    machine(BOTH, None, "1")
    said = installed.cuda_unavailable_reason()
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
    machine(BOTH, NEW, device)
    assert expected in installed.cuda_unavailable_reason()


def test_the_variable_that_hides_gpus_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    machine(BOTH, NEW, "none: CUDA_ERROR_NO_DEVICE")
    assert installed.cuda_unavailable_reason().endswith(
        "; CUDA_VISIBLE_DEVICES='' says which it shows"
    )
    machine(BOTH, NEW, "2")
    assert installed.cuda_unavailable_reason(1) == ""
    assert "shows 2 GPUs, numbers 0 to 1; CUDA_VISIBLE" in installed.cuda_unavailable_reason(2)


def test_a_machine_with_everything_lacks_nothing(machine: Machine) -> None:
    machine(BOTH, NEW, "1")
    assert installed.cuda_unavailable_reason() == ""


@pytest.mark.parametrize(
    ("packages", "driver", "cure"),
    [
        (BOTH, OLD, "packages, or pip install 'gradcli[cuda12]', which fits this one"),
        (BOTH, (12, 0), "packages, or pip install 'gradcli[cuda12]', which fits this one"),
        (BOTH, (11, 8), "https://www.nvidia.com/drivers or your system's packages"),
        (TWELVE, (11, 8), "https://www.nvidia.com/drivers or your system's packages"),
    ],
)
def test_a_driver_older_than_the_compiler_is_told_so(
    machine: Machine, packages: dict[str, str], driver: Driver, cure: str
) -> None:
    machine(packages, driver, "1")
    said = installed.cuda_unavailable_reason()
    compiler = list(packages.values())[-1]
    assert driver is not None
    assert f"NVRTC {compiler} compiles for drivers from 5" in said
    assert f"NVIDIA's driver is one for CUDA {driver[0]}.{driver[1]}; update it from" in said
    assert said.endswith(cure)


@pytest.mark.parametrize("driver", [OLD, NEW, (14, 1)])
def test_the_compiler_of_cuda_12_serves_newer_drivers_too(machine: Machine, driver: Driver) -> None:
    machine(TWELVE, driver, "1")
    assert installed.cuda_unavailable_reason() == ""


def test_the_compiler_must_be_of_the_cuda_of_the_bindings(machine: Machine) -> None:
    machine({"cuda-bindings": "13.5.0", "nvidia-cuda-nvrtc-cu12": "12.9.86"}, NEW, "1")
    assert "nvidia-cuda-nvrtc (not installed)" in installed.cuda_unavailable_reason()
    machine({"cuda-bindings": "12.9.10", "nvidia-cuda-nvrtc": "13.5.37"}, NEW, "1")
    assert "nvidia-cuda-nvrtc-cu12 (not installed)" in installed.cuda_unavailable_reason()


@pytest.mark.parametrize(("driver", "extra"), [(None, "cuda"), (NEW, "cuda"), (OLD, "cuda12")])
def test_the_extra_that_is_offered_fits_the_driver(
    machine: Machine, driver: Driver, extra: str
) -> None:
    machine({}, driver, "1")
    assert installed.cuda_unavailable_reason().endswith(f"pip install 'gradcli[{extra}]'")


def test_the_extras_are_those_of_the_package() -> None:
    """Each installs the compiler of its CUDA, and the bindings that look for it."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    for major, extra in installed.EXTRAS.items():
        names = {re.split("[>=<]", one)[0]: one for one in extras[extra]}
        assert set(names) == {installed.BINDINGS, installed.COMPILERS[major]}
        assert all(f">={major}." in one for one in names.values())


def test_the_command_line_ends_with_4_and_that_sentence(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine({}, None, "1")
    assert options.unavailable("cuda") == NOTHING
    assert main.run(["bench", "--device", "cuda"]) == 4
    said = capsys.readouterr()
    assert f"device 'cuda' cannot be used: {NOTHING}" in said.err
    assert said.out == ""


def test_the_library_says_the_same(machine: Machine) -> None:
    machine({}, None, "1")
    with pytest.raises(DeviceError) as caught:
        opened.device("cuda")
    assert caught.value.message == f"device 'cuda' cannot be used: {NOTHING}"
