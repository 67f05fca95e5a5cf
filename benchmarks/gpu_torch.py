"""PyTorch on the same GPU in the same process: what our figures are compared with, where it is."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcli.bench import torch_model
from gradcli.bench.launches import Contender, Run
from gradcli.engine import Tensor
from gradcli.errors import GradcliError


@dataclass(frozen=True)
class Peer:
    """PyTorch, and its name of the device."""

    torch: Any
    device: str

    def tensor_of(self, tensor: Tensor) -> Any:
        """Our numbers, from the CPU, in its memory."""
        return torch_model.as_torch(self.torch, tensor).to(self.device)

    def wait(self) -> None:
        """Wait for everything queued."""
        if self.device != "cpu":
            getattr(self.torch, self.device).synchronize()

    def clear(self) -> None:
        """Give memory that nobody uses back to the device."""
        if self.device != "cpu":
            getattr(self.torch, self.device).empty_cache()

    def rounding(self, work: Callable[[], object]) -> Callable[[], Any]:
        """The same work with TF32 in products and convolutions."""
        products, convolutions = self.torch.backends.cuda.matmul, self.torch.backends.cudnn

        def rounded() -> object:
            products.allow_tf32 = convolutions.allow_tf32 = True
            try:
                return work()
            finally:
                products.allow_tf32 = convolutions.allow_tf32 = False

        return rounded

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
        torch = torch_model.imported()
        return Peer(torch, torch_model.device(torch, device)), ""
    except GradcliError as error:
        return None, error.message.removeprefix("--compare torch: ")
