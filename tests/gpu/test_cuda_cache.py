"""Compiling for a device, and what is kept on disk of it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="needs the extra 'cuda'")

from gradcli.engine.device.gpu import nvrtc
from gradcli.errors import DeviceError

KERNEL = 'extern "C" __global__ void fill(float *y) {\n  y[threadIdx.x] = 1.0f;\n}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache lies."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gradcli" / "cuda"


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the compiler was asked for."""
    asked: list[str] = []
    compile_text = nvrtc.compile_text

    def counted(name: str, source: str, architecture: str) -> nvrtc.CompiledModule:
        asked.append(architecture)
        return compile_text(name, source, architecture)

    monkeypatch.setattr(nvrtc, "compile_text", counted)
    return asked


def test_a_module_is_compiled_once(folder: Path, times: list[str]) -> None:
    first = nvrtc.compiled("fill", KERNEL, "sm_90")
    again = nvrtc.compiled("fill", KERNEL, "sm_90")
    assert times == ["sm_90"]
    assert first.image == again.image
    assert first.image.startswith(b"\x7fELF")
    assert [path.suffix for path in folder.iterdir()] == [".bin"]


@pytest.mark.parametrize("what", ["source", "architecture", "options", "version"])
def test_whatever_may_change_a_module_has_its_own_place(
    folder: Path, times: list[str], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    nvrtc.compiled("fill", KERNEL, "sm_80")
    if what == "options":
        monkeypatch.setattr(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, "--use_fast_math"))
    if what == "version":
        monkeypatch.setattr(nvrtc, "version", lambda: (12, 0))
    source = KERNEL.replace("1.0f", "2.0f") if what == "source" else KERNEL
    nvrtc.compiled("fill", source, "sm_90" if what == "architecture" else "sm_80")
    assert len(times) == len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"x", bytes(2000)], ids=["empty", "short", "zeros"])
def test_a_damaged_file_is_compiled_anew(folder: Path, times: list[str], damage: bytes) -> None:
    made = nvrtc.compiled("fill", KERNEL, "sm_90").image
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert nvrtc.compiled("fill", KERNEL, "sm_90").image == made
    assert kept.read_bytes() == whole
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert nvrtc.compiled("fill", KERNEL, "sm_90").image == made
    assert len(times) == 3


def test_without_a_place_for_the_cache_a_module_is_compiled_each_time(
    folder: Path, times: list[str]
) -> None:
    folder.parent.parent.mkdir(exist_ok=True)
    folder.parent.write_text("no folder")
    for _ in range(2):
        assert nvrtc.compiled("fill", KERNEL, "sm_90").image
    assert len(times) == 2


def test_a_user_without_a_home_has_no_cache(
    times: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    for _ in range(2):
        assert nvrtc.compiled("fill", KERNEL, "sm_90").image
    assert len(times) == 2


def test_a_write_that_fails_leaves_nothing(
    folder: Path, times: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert nvrtc.compiled("fill", KERNEL, "sm_90").image
    assert list(folder.iterdir()) == []


def test_a_module_carries_the_hash_of_its_source() -> None:
    for architecture in ("sm_80", "sm_90", "compute_90"):
        made = nvrtc.compile_text("fill", nvrtc.keyed(KERNEL), architecture)
        assert f"gc_key_{nvrtc.source_key(KERNEL)}".encode() in made.image


def test_a_module_that_does_not_compile_says_where(folder: Path) -> None:
    with pytest.raises(DeviceError) as caught:
        nvrtc.compiled("fill", KERNEL.replace("1.0f", "one"), "sm_90")
    said = caught.value
    assert said.message == (
        "cuda: module 'fill' does not compile: fill.cu(2): error: identifier \"one\" is undefined"
    )
    assert said.notes == ("y[threadIdx.x] = one;",)
    assert said.exit_code == 4
    assert not folder.exists()


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [((7, 5), "sm_75"), ((8, 0), "sm_80"), ((8, 4), "sm_80"), ((9, 0), "sm_90"), ((9, 9), "sm_90")],
)
def test_a_device_gets_code_of_its_own_architecture(
    capability: tuple[int, int], architecture: str
) -> None:
    assert nvrtc.target_for(capability) == nvrtc.Target(architecture)


def test_a_device_that_the_compiler_does_not_know_gets_ptx_and_a_note() -> None:
    found = nvrtc.target_for((99, 0))
    assert found.architecture.startswith("compute_")
    assert "compute capability 99.0 is newer than NVRTC" in found.note
    assert "pip install -U 'gradcli[cuda]'" in found.note
    made = nvrtc.compile_text("fill", KERNEL, found.architecture)
    assert b".entry fill" in made.image


def test_a_device_that_the_compiler_has_given_up_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"compute capability 3\.5, and NVRTC .* and newer"):
        nvrtc.target_for((3, 5))
