"""PyTorch on the same GPU in the same process: what our figures are compared with, where it is."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu_device import Contender, Run
from gradcli.bench import torch_model
from gradcli.engine import Tensor

_NAMES = {"cuda": "cuda", "metal": "mps"}


@dataclass(frozen=True)
class Peer:
    """PyTorch, and its name of the device."""

    torch: Any
    device: str

    def given(self, tensor: Tensor) -> Any:
        """Our numbers, from the CPU, in its memory."""
        return torch_model.given(self.torch, tensor).to(self.device)

    def wait(self) -> None:
        """Wait for everything queued."""
        if self.device != "cpu":
            getattr(self.torch, self.device).synchronize()

    def clear(self) -> None:
        """Give memory that nobody uses back to the device."""
        if self.device != "cpu":
            getattr(self.torch, self.device).empty_cache()

    def calls(self, work: Callable[[], object]) -> Contender:
        """Calls one after another; it is waited for the last of them."""

        def ready(count: int) -> Run:
            def run() -> None:
                for _ in range(count):
                    work()
                self.wait()

            return run

        return ready


def peer(device: str) -> tuple[Peer | None, str]:
    """PyTorch with this device, computing in float32 without TF32; or why there is none."""
    if importlib.util.find_spec("torch") is None:
        return None, "torch is not installed"
    try:
        torch = importlib.import_module("torch")
        name = _NAMES[device]
        there = bool(getattr(torch.backends if name == "mps" else torch, name).is_available())
    except Exception as error:  # a library of a vendor that does not load, in whatever way
        return None, f"torch cannot be used: {error}"
    if not there:
        return None, f"torch {torch.__version__} cannot use this device"
    return exact(torch, name), ""


def exact(torch: Any, device: str) -> Peer:
    """PyTorch on a device of its own name, with TF32 off."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return Peer(torch, device)
