"""What a GPU needs of this machine: packages, the vendor's driver, a device."""

from __future__ import annotations

import ctypes
import os
import platform

from gradcli.devices import too_high
from gradcli.packages import version

Version = tuple[int, int]
INSTALL_METAL = "pip install 'gradcli[metal]'"
METAL_PACKAGE = "pyobjc-framework-Metal"
MACOS = 14  # the first with Metal's language 3.1
DRIVER = "libcuda.so.1"
BINDINGS = "cuda-bindings"
COMPILERS = {12: "nvidia-cuda-nvrtc-cu12", 13: "nvidia-cuda-nvrtc"}  # NVRTC of each CUDA
EXTRAS = {12: "cuda12", 13: "cuda"}
FIRST_DRIVERS = {12: "525", 13: "580"}  # older ones do not load what that NVRTC compiles
_UPDATE = "https://www.nvidia.com/drivers or your system's packages"


def cuda_unavailable_reason(index: int = 0) -> str:
    """Why this GPU cannot be used: what was looked for, what was found, and the cure; or empty."""
    driver = _driver()
    bindings = version(BINDINGS)
    major = _major(bindings) if bindings else _fitting(driver)
    compiler = version(COMPILERS[major])
    device = _device() if bindings and driver else "not asked for"
    if bindings and compiler and driver and device.isdigit() and int(device):
        return _too_old(driver, compiler) or too_high(
            index, int(device), "NVIDIA's driver"
        ) + _hidden(index, int(device))
    needs = [
        f"{BINDINGS} ({bindings or 'not installed'})",
        f"{COMPILERS[major]} ({compiler or 'not installed'})",
        f"NVIDIA's driver {DRIVER} ({_format(driver) if driver else 'not found'})",
        f"a GPU ({'none' if device == '0' else device})",
    ]
    cure = _cure(major, bool(bindings and compiler), bool(driver))
    return f"it needs {', '.join(needs[:-1])} and {needs[-1]}; {cure}"


def _too_old(driver: Version, compiler: str) -> str:
    """Why a driver does not load what the compiler makes; empty where it does."""
    major = _major(compiler)
    if driver[0] >= major:
        return ""
    fits = _fitting(driver)
    advice = f", or pip install '{_extra(fits)}', which fits this one" if fits <= driver[0] else ""
    return (
        f"NVRTC {compiler} compiles for drivers from {FIRST_DRIVERS[major]} on (CUDA {major}), and "
        f"NVIDIA's driver is one {_format(driver)}; update it from {_UPDATE}{advice}"
    )


def _fitting(driver: Version | None) -> int:
    """The CUDA whose compiler suits a driver; the newest where there is none."""
    return max((major for major in EXTRAS if driver and major <= driver[0]), default=max(EXTRAS))


def _major(of: str) -> int:
    """The CUDA that a package belongs to, as far as it is known here."""
    number = int(of.partition(".")[0])
    return min(max(number, min(EXTRAS)), max(EXTRAS))


def _extra(major: int) -> str:
    return f"gradcli[{EXTRAS[major]}]"


def _format(driver: Version) -> str:
    return f"for CUDA {driver[0]}.{driver[1]}"


def metal_unavailable_reason(index: int = 0) -> str:
    """Why Metal cannot be used here, as cuda_unavailable_reason says it."""
    machine, fits = _mac()
    package = version(METAL_PACKAGE) if fits else ""
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


def _cure(major: int, packages: bool, driver: bool) -> str:
    """What to type, or where to look."""
    if not packages:
        return f"the packages come with: pip install '{_extra(major)}'"
    if not driver:
        return f"the driver comes from {_UPDATE}"
    return "nvidia-smi lists the GPUs that the driver has" + _visible()


def _hidden(index: int, count: int) -> str:
    """What may keep a GPU from being shown, where one is missing."""
    return _visible() if index >= count else ""


def _visible() -> str:
    """The variable that chooses among GPUs; nothing where it is not set."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if visible is None else f"; CUDA_VISIBLE_DEVICES={visible!r} says which it shows"


def _driver() -> Version | None:
    """The newest CUDA that the driver knows; None where there is no driver."""
    number = ctypes.c_int()
    try:
        ctypes.CDLL(DRIVER).cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return None
    major, rest = divmod(number.value, 1000)
    return major, rest // 10


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
