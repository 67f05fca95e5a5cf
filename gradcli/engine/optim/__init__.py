"""Optimizers, schedules of the learning rate, and clipping of gradients. torch.optim's names."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from gradcli.engine.optim import schedule
from gradcli.engine.optim.adam import Adam, AdamW, NAdam, RAdam
from gradcli.engine.optim.adaptive import Adadelta, Adagrad, RMSprop
from gradcli.engine.optim.clip import clip_grad_norm_, clip_grad_value_
from gradcli.engine.optim.lion import Lion
from gradcli.engine.optim.muon import Muon, MuonAdamW
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.engine.optim.sgd import SGD

if TYPE_CHECKING:
    from gradcli.engine.optim import lr_scheduler as lr_scheduler
else:

    def __getattr__(name: str) -> ModuleType:
        """lr_scheduler is imported when it is first asked for: a training by config has none."""
        if name != "lr_scheduler":
            raise AttributeError(f"gradcli.engine.optim has no '{name}'")
        return import_module(f"{__name__}.{name}")


_KINDS = (SGD, Adam, AdamW, NAdam, RAdam, RMSprop, Adagrad, Adadelta, Lion, Muon, MuonAdamW)
OPTIMIZERS: dict[str, type[Optimizer]] = {kind.__name__.lower(): kind for kind in _KINDS}

__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Muon",
    "MuonAdamW",
    "NAdam",
    "OPTIMIZERS",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "SGD",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
    "schedule",
]
