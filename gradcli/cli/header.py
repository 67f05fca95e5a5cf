"""What stands above the bar of a training: what is trained, on what, by what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradcli.dataclass import dataclass
from gradcli.engine import distributed, nn
from gradcli.engine.device import cpu
from gradcli.engine.device.gpu import opened
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.train.job import Job


@dataclass(frozen=True)
class TrainingHeader:
    """A job, and what computes it."""

    job: Job
    device: str
    threads: int

    def rows(self, run: str, step: int, total: int, per_epoch: int) -> Iterator[tuple[str, str]]:
        """A label and a text for each line, of a run that stands at a step."""
        yield "run", run
        if step:
            yield "resumed", f"from step {step} of {total}"
        yield "model", self._model()
        yield "data", self._data()
        yield "training", self._training(total, per_epoch)
        yield "computing", self._computing()

    def _model(self) -> str:
        parameters = list(self.job.model.parameters())
        frozen = sum(parameter.numel() for parameter in parameters if not parameter.requires_grad)
        total = sum(parameter.numel() for parameter in parameters)
        layers = quantity(_layers(self.job.model), "layer")
        text = f"{layers}, {quantity(total, 'parameter', form=',')}"
        return text + (f", {frozen:,} of them frozen" if frozen else "")

    def _data(self) -> str:
        splits = self.job.dataset.splits.items()
        sizes = ", ".join(f"{split.size:,} {name}" for name, split in splits)
        return f"{_name(self.job.resolved.get('data'))}: {sizes}"

    def _training(self, total: int, per_epoch: int) -> str:
        settings = self.job.settings
        if settings.steps is None:
            epochs = quantity(settings.epochs or 0, "epoch")
            length = f"{epochs} of {quantity(per_epoch, 'step')}"
        else:
            length = f"{quantity(total, 'step')}, {per_epoch} an epoch"
        parts = f", micro_batch {settings.micro_batch}" if settings.micro_batch else ""
        return f"{length}, batch {settings.batch}{parts}"

    def _computing(self) -> str:
        gpu = opened.device(self.device)
        if gpu is None:
            where = f"{cpu.isa()}, {quantity(self.threads, 'thread')}"
        else:
            where = gpu.driver.describe().partition(",")[0]  # its name
        ranks = (
            f"{quantity(distributed.size(), 'rank')}, each on " if distributed.size() > 1 else ""
        )
        settings = self.job.settings
        return f"{ranks}{self.device} ({where}), {settings.precision}, seed {settings.seed}"


def _name(data: Any) -> str:
    """What the config calls the kind of its data."""
    return str(data.get("name", "data")) if isinstance(data, dict) else "data"


def _layers(model: nn.Module) -> int:
    """Count the layers of a config's model; a layer that only holds others does not count."""
    layers = [layer for layer in model.modules() if "layer_title" in vars(layer)]
    return sum(
        not any("layer_title" in vars(inner) for inner in list(layer.modules())[1:])
        for layer in layers
    )
