"""Optimizers by name: the engine's classes, whose options are the keys."""

from __future__ import annotations

from typing import Any

from gradcli.config.row import REQUIRED, Row
from gradcli.engine import optim, zeros
from gradcli.engine.kind import Portion, Positive, Share

# What torch's optimizers take as well, and no training gets anywhere with.
_NARROWER: dict[str, Any] = {
    "momentum": Share,
    "dampening": Portion,
    "alpha": Share,
    "eps": Positive,
}

# Muon is for matrices alone: in a config it has AdamW beside it, for all other weights.
_KINDS = {name: kind for name, kind in optim.OPTIMIZERS.items() if kind is not optim.MuonAdamW}
OPTIMIZERS: dict[str, Row] = {
    name: Row(
        kind,
        skip=1,
        leave=("adamw",),
        types=_NARROWER,
        defaults={"lr": REQUIRED} if kind is optim.SGD else {},
        trial=lambda: [zeros(1, 1)],
    )
    for name, kind in (_KINDS | {"muon": optim.MuonAdamW}).items()
}
