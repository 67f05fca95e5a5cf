"""What `--device metal` answers on machines that lack something."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from gradcli.cli import main, options
from gradcli.engine.device.gpu import installed, opened
from gradcli.errors import DeviceError

Machine = Callable[..., None]
NO_PACKAGE = (
    "it needs pyobjc-framework-Metal (not installed) and a GPU of an M1 or newer (not asked for); "
    "the package comes with: pip install 'gradcli[metal]'"
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Say what a machine is, and what it has: pyobjc, and what Metal calls its device."""

    def has(
        system: str = "Darwin",
        processor: str = "arm64",
        release: str = "14.5",
        package: str = "",
        device: object = None,
    ) -> None:
        monkeypatch.setattr(platform, "system", lambda: system)
        monkeypatch.setattr(platform, "machine", lambda: processor)
        monkeypatch.setattr(platform, "mac_ver", lambda: (release, ("", "", ""), processor))
        monkeypatch.setattr(installed, "version", lambda name: package)
        metal = SimpleNamespace(
            MTLCreateSystemDefaultDevice=lambda: device, MTLGPUFamilyApple7=1007
        )
        monkeypatch.setitem(sys.modules, "Metal", metal if device != "nothing" else None)

    return has


def gpu(family: int) -> object:
    return SimpleNamespace(
        supportsFamily_=lambda wanted: wanted <= family, name=lambda: "Apple Paravirtual device"
    )


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"system": "Linux", "processor": "x86_64"}, "this is Linux x86-64"),
        ({"processor": "x86_64"}, "this is macOS 14.5 x86-64"),
        ({"release": "13.7"}, "this is macOS 13.7 arm64"),
        ({"release": ""}, "this is macOS  arm64"),
    ],
)
def test_a_machine_that_has_no_such_metal_is_told_so(
    machine: Machine, what: dict[str, str], expected: str
) -> None:
    machine(**what, package="12.2.2", device=gpu(1007))
    said = installed.metal_unavailable_reason()
    assert said == f"it needs macOS 14 or newer on Apple silicon, {expected}"


def test_the_line_that_installs_the_package_is_given(machine: Machine) -> None:
    machine()
    assert installed.metal_unavailable_reason() == NO_PACKAGE


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (None, "a GPU of an M1 or newer (none); system_profiler"),
        (gpu(1005), "a GPU of an M1 or newer (older: Apple Paravirtual device); system_profiler"),
        ("nothing", "(pyobjc-framework-Metal cannot be imported: import of Metal halted"),
    ],
)
def test_a_mac_without_a_gpu_that_will_do_says_so(
    machine: Machine, device: object, expected: str
) -> None:
    machine(package="12.2.2", device=device)
    said = installed.metal_unavailable_reason()
    assert said.startswith("it needs pyobjc-framework-Metal (12.2.2) and ")
    assert expected in said
    assert "pip" not in said


def test_a_mac_with_everything_lacks_nothing(machine: Machine) -> None:
    machine(package="12.2.2", device=gpu(1007))
    assert installed.metal_unavailable_reason() == ""


def test_a_mac_has_one_gpu(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine(package="12.2.2", device=gpu(1007))
    expected = "device 'metal:1' cannot be used: there is no GPU 1: Metal shows 1 GPU, number 0"
    with pytest.raises(DeviceError) as caught:
        opened.device("metal:1")
    assert caught.value.message == expected
    assert main.run(["bench", "--device", "metal:1"]) == 4
    assert expected in capsys.readouterr().err


def test_the_command_line_ends_with_4_and_that_sentence(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine()
    assert options.unavailable("metal") == NO_PACKAGE
    assert main.run(["bench", "--device", "metal"]) == 4
    said = capsys.readouterr()
    assert f"device 'metal' cannot be used: {NO_PACKAGE}" in said.err
    assert said.out == ""


def test_the_library_says_the_same(machine: Machine) -> None:
    machine()
    with pytest.raises(DeviceError) as caught:
        opened.device("metal")
    assert caught.value.message == f"device 'metal' cannot be used: {NO_PACKAGE}"
