"""What a GPU needs of this machine: packages, the vendor's driver, a device."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

INSTALL = "pip install 'gradcli[cuda]'"
DRIVER = "libcuda.so.1"
PACKAGES = ("cuda-bindings", "nvidia-cuda-nvrtc")


def why_not_cuda() -> str:
    """Why CUDA cannot be used here: what was looked for, what was found, and the cure; or empty."""
    found = {package: _package(package) for package in PACKAGES}
    driver = _driver()
    device = _device() if found[PACKAGES[0]] and driver else "not asked for"
    if all(found.values()) and driver and device.isdigit() and int(device):
        return ""
    seen = [f"{package} ({of or 'not installed'})" for package, of in found.items()]
    seen.append(f"NVIDIA's driver {DRIVER} ({driver or 'not found'})")
    seen.append(f"a GPU ({'none' if device == '0' else device})")
    return f"it needs {', '.join(seen[:-1])} and {seen[-1]}; {_cure(all(found.values()), driver)}"


def _cure(packages: bool, driver: str) -> str:
    """What to type, or where to look."""
    if not packages:
        return f"the packages come with: {INSTALL}"
    if not driver:
        return "the driver comes from https://www.nvidia.com/drivers or your system's packages"
    return "nvidia-smi lists the GPUs that the driver has"


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
