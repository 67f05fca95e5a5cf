"""`lora:` thin matrices beside the linear layers that patterns name; all other weights stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Annotated

from gradcli.config.selection import Patterns, Some, among, paths, select
from gradcli.dataclass import dataclass
from gradcli.engine import nn
from gradcli.engine.kind import Count, Positive, Share
from gradcli.engine.nn.lora import add_lora
from gradcli.errors import ConfigError


@dataclass(frozen=True)
class Lora:
    """Low-rank adaptation (Hu et al. 2021): y = W x + (alpha / rank) B A x, A and B are trained."""

    match: Annotated[Some, "patterns of the linear layers that get A and B"]
    rank: Annotated[Count, "rows of A and columns of B"] = 8
    alpha: Annotated[Positive, "with `rank` the factor of B A"] = 16.0
    dropout: Annotated[Share, "the share of x that B A x does not see in training"] = 0.0
    train: Annotated[Patterns, "patterns of weights that are trained too, such as head"] = field(
        default_factory=list
    )


def adapt(model: nn.Module, lora: Lora | None) -> None:
    """Add the matrices, and freeze all other weights but those that `train` names."""
    if lora is None:
        return
    trainable = select(model, lora.train, "lora.train")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trainable)
    weights = select_linear(model, lora.match, "lora.match")
    _check_rank(model, weights, lora.rank)
    layers = sorted(name.rpartition(".")[0] for name in weights)
    add_lora(model, layers, lora.rank, lora.alpha, lora.dropout)


def _check_rank(model: nn.Module, weights: Collection[str], rank: int) -> None:
    """Refuse two matrices that are larger than what they stand beside."""
    name = min(sorted(weights), key=lambda name: min(model.get_parameter(name).shape))
    least = min(model.get_parameter(name).shape)
    if rank > least:
        layer = name.rpartition(".")[0]
        raise ConfigError(
            f"lora.rank is {rank}, and the narrower side of layer {layer} is {least}; a rank of "
            f"{least} can learn anything there",
            code="E104",
        )


def select_linear(model: nn.Module, patterns: Sequence[str], where: str) -> set[str]:
    """The weights of linear layers that a pattern matches; none that another layer shares."""
    layers = {name for name, module in model.named_modules() if type(module) is nn.Linear}
    owners: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name)
    alone = [names[0] for names in owners.values() if len(names) == 1]
    weights = [
        name for name in alone if name.endswith("weight") and name.rpartition(".")[0] in layers
    ]
    return among(paths(model, weights), patterns, where, "linear layer")
