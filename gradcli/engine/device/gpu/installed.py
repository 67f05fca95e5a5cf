"""What a GPU needs of this machine: packages, the vendor's driver, a device."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from gradcli.devices import too_high

INSTALL = "pip install 'gradcli[cuda]'"
INSTALL_METAL = "pip install 'gradcli[metal]'"
METAL_PACKAGE = "pyobjc-framework-Metal"
MACOS = 14  # the first with Metal's language 3.1
DRIVER = "libcuda.so.1"
PACKAGES = ("cuda-bindings", "nvidia-cuda-nvrtc")


def why_not_cuda(index: int = 0) -> str:
    """Why this GPU cannot be used: what was looked for, what was found, and the cure; or empty."""
    found = {package: _package(package) for package in PACKAGES}
    driver = _driver()
    device = _device() if found[PACKAGES[0]] and driver else "not asked for"
    if all(found.values()) and driver and device.isdigit() and int(device):
        return too_high(index, int(device), "NVIDIA's driver") + _hidden(index, int(device))
    seen = [f"{package} ({of or 'not installed'})" for package, of in found.items()]
    seen.append(f"NVIDIA's driver {DRIVER} ({driver or 'not found'})")
    seen.append(f"a GPU ({'none' if device == '0' else device})")
    return f"it needs {', '.join(seen[:-1])} and {seen[-1]}; {_cure(all(found.values()), driver)}"


def why_not_metal(index: int = 0) -> str:
    """Why Metal cannot be used here, as why_not_cuda says it."""
    machine, fits = _mac()
    package = _package(METAL_PACKAGE) if fits else ""
    device = _metal_device() if package else "not asked for"
    if device == "found":
        return too_high(index, 1, "Metal")
    if not fits:
        return f"it needs macOS {MACOS} or newer on Apple silicon, this is {machine}"
    return (
        f"it needs {METAL_PACKAGE} ({package or 'not installed'}) and a GPU of an M1 or newer "
        f"({device}); "
        + (
            "system_profiler SPDisplaysDataType shows what the Mac has"
            if package
            else f"the package comes with: {INSTALL_METAL}"
        )
    )


def _mac() -> tuple[str, bool]:
    """This machine in words, and whether Metal may be expected of it."""
    names = {"x86_64": "x86-64", "AMD64": "x86-64"}
    processor = names.get(platform.machine(), platform.machine())
    system = platform.system()
    if system != "Darwin":
        return f"{system} {processor}", False
    release = platform.mac_ver()[0]
    new_enough = int(release.partition(".")[0] or 0) >= MACOS
    return f"macOS {release} {processor}", new_enough and processor == "arm64"


def _metal_device() -> str:
    """`found`, or what there is instead of a GPU that will do."""
    try:
        import Metal
    except ImportError as error:
        return f"{METAL_PACKAGE} cannot be imported: {error}"
    device = Metal.MTLCreateSystemDefaultDevice()
    if device is None:
        return "none"
    if not device.supportsFamily_(Metal.MTLGPUFamilyApple7):
        return f"older: {device.name()}"
    return "found"


def _cure(packages: bool, driver: str) -> str:
    """What to type, or where to look."""
    if not packages:
        return f"the packages come with: {INSTALL}"
    if not driver:
        return "the driver comes from https://www.nvidia.com/drivers or your system's packages"
    return "nvidia-smi lists the GPUs that the driver has" + _visible()


def _hidden(index: int, count: int) -> str:
    """What may keep a GPU from being shown, where one is missing."""
    return _visible() if index >= count else ""


def _visible() -> str:
    """The variable that leaves GPUs out; nothing where it is not set."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if chosen is None else f", of which CUDA_VISIBLE_DEVICES={chosen!r} leaves some out"


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _driver() -> str:
    """How the driver was found; empty where it was not."""
    from cffi import FFI

    try:
        FFI().dlopen(DRIVER)
    except OSError:
        return ""
    return "found"


def _device() -> str:
    """The number of GPUs, or why there is none."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        return f"cuda-bindings cannot be imported: {error}"
    status = driver.cuInit(0)[0]
    if not status.value:
        status, count = driver.cuDeviceGetCount()
        if not status.value:
            return str(count)
    return f"none: {status.name}"
