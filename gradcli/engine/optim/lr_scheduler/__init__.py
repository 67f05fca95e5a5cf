"""torch.optim.lr_scheduler: objects that set the learning rate of an optimizer at each step."""

from gradcli.engine.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from gradcli.engine.optim.lr_scheduler.factors import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from gradcli.engine.optim.lr_scheduler.one_cycle import OneCycleLR
from gradcli.engine.optim.lr_scheduler.plateau import ReduceLROnPlateau
from gradcli.engine.optim.lr_scheduler.scheduler import LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
