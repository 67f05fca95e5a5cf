"""A run whose directory and screen are those of rank 0: on other ranks nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gradcli.train.checkpoint import Checkpoint, CheckpointMeta
from gradcli.train.directory import RunDirectory
from gradcli.train.report import Result
from gradcli.train.safetensors_file import RawTensor


class DirectoryElsewhere(RunDirectory):
    """Knows where the run is, and writes and reads nothing there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"

    def close(self) -> None:
        """Nothing is open, and nothing locked."""

    def write_config(
        self,
        sources: Sequence[tuple[Path, str]],
        resolved: Mapping[str, object],
        code: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Rank 0 writes."""

    def write_json(self, name: str, value: Mapping[str, object], *, flush: bool = True) -> None:
        """Rank 0 writes."""

    def write_evaluation(
        self, record: Mapping[str, object], tensors: Sequence[bytes | memoryview]
    ) -> None:
        """Rank 0 writes."""

    def discard_evaluation(self) -> None:
        """Rank 0 discards."""

    def write_fork(self, step: int, manifest: Mapping[str, object]) -> None:
        """Rank 0 writes."""

    def log(self, record: dict[str, object]) -> None:
        """Rank 0 writes."""

    def status(self, record: dict[str, Any]) -> None:
        """Rank 0 writes."""

    def save(
        self,
        meta: CheckpointMeta,
        tensors: Mapping[str, RawTensor],
        keep: int,
        note: Callable[[str], None] | None = None,
    ) -> Path:
        """Where rank 0 saves."""
        return self.checkpoints

    def recover(self) -> tuple[str, Checkpoint, list[str]]:
        """Rank 0 recovers, and sends what there is."""
        raise AssertionError("a rank other than 0 recovers a run")

    def recover_start(self) -> list[str]:
        """Rank 0 recovers."""
        return []

    def discard_if_empty(self) -> None:
        """Rank 0 discards."""


class SilentReporter:
    """A reporter of a rank that nobody watches."""

    def on_start(self, run: str, step: int, total: int, per_epoch: int) -> None:
        """Nothing."""

    def on_step(self, step: int, loss: float, rate: float) -> None:
        """Nothing."""

    def on_skip(self, step: int, reason: str) -> None:
        """Nothing."""

    def on_evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Nothing."""

    def on_sample(self, step: int, prompt: str, text: str) -> None:
        """Nothing."""

    def on_save(self, step: int, path: str) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def on_finish(self, result: Result) -> None:
        """Nothing."""
