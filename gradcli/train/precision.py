"""`train: {precision: ...}`: in which precision a job's model and loss are computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from gradcli import engine
from gradcli.devices import kind_of

if TYPE_CHECKING:
    from gradcli.train.job import Job, TrainSettings

T = TypeVar("T")


@contextmanager
def products(settings: TrainSettings) -> Iterator[None]:
    """Products inside a `with` block may round to TF32 where the settings allow it."""
    before = engine.get_float32_matmul_precision()
    engine.set_float32_matmul_precision("high" if settings.precision == "tf32" else "highest")
    try:
        yield
    finally:
        engine.set_float32_matmul_precision(before)


@contextmanager
def forward(settings: TrainSettings) -> Iterator[None]:
    """The same for the model and the loss, which bf16 computes under autocast; not for backward."""
    with products(settings), engine.autocast(enabled=settings.precision == "bf16"):
        yield


def each(settings: TrainSettings, pieces: Iterator[T]) -> Iterator[T]:
    """The pieces that a model yields, each computed in the settings' precision."""
    while True:
        with forward(settings):
            try:
                piece = next(pieces)
            except StopIteration:
                return
        yield piece


def note(job: Job) -> str:
    """A note if the precision has no effect on the job's device, else empty."""
    device = next((parameter.device for parameter in job.model.parameters()), "cpu")
    if job.settings.precision != "tf32" or kind_of(device) == "cuda":
        return ""
    return f"precision tf32: {device} computes products in float32, which is more precise"
