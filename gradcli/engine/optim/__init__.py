"""Optimizers, schedules of the learning rate, and clipping of gradients. torch.optim's names."""

from gradcli.engine.optim import schedule
from gradcli.engine.optim.adam import Adam, AdamW
from gradcli.engine.optim.clip import clip_grad_norm_
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.engine.optim.sgd import SGD

OPTIMIZERS: dict[str, type[Optimizer]] = {
    "sgd": SGD,
    "adam": Adam,
    "adamw": AdamW,
}

__all__ = ["Adam", "AdamW", "OPTIMIZERS", "Optimizer", "SGD", "clip_grad_norm_", "schedule"]
