"""LoRALinear: a linear layer that stays as it is, with a product of two thin matrices beside it."""

from __future__ import annotations

__all__ = ["LoRALinear", "merge_lora"]

from collections.abc import Iterable

from gradcli.engine import graph
from gradcli.engine.kind import Count, Portion, Positive
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.linear import Linear
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.steps import step_by_step, unless_random
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

_ADAPTERS = ("lora_A", "lora_B")
_OWN = ("rank", "alpha", "dropout")


def _obstacle(layer: LoRALinear) -> str:
    return unless_random(layer, layer.dropout)


class LoRALinear(Linear):
    """x W^T + bias + (alpha / rank) (x A^T) B^T, for (..., in_features) to (..., out_features).

    W and bias are those of `linear`, and are not trained any more: A and B are (Hu et al. 2021).
    B begins at 0, so the layer begins as `linear`. Dropout acts on the x of the second product.
    torch has none; the names are those of PEFT.

    Args:
        linear: the layer that it takes the place of; parameters are shared with it.
        rank: rows of A, columns of B.
    """

    _repr_format = Linear._repr_format + ", rank={0.rank}, alpha={0.alpha}"
    lora_A: Parameter  # noqa: N815 -- PEFT's names
    lora_B: Parameter  # noqa: N815

    def __init__(
        self, linear: Linear, rank: Count, alpha: Positive = 16.0, dropout: Portion = 0.0
    ) -> None:
        Module.__init__(self)
        self._take(linear.weight, linear.bias)
        self.rank, self.alpha, self.dropout = rank, alpha, dropout
        for frozen in linear.parameters(recurse=False):
            frozen.requires_grad_(False)
        dtype, device = linear.weight.dtype, linear.weight.device
        self.lora_A = Parameter(empty(rank, self.in_features, dtype=dtype, device=device))
        self.lora_B = Parameter(empty(self.out_features, rank, dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """A evenly spread within 1 / sqrt(in_features), B all 0; W and bias stay."""
        init.weight_and_bias_(self.lora_A, None)
        init.zeros_(self.lora_B)

    @step_by_step(unless=_obstacle)
    def forward(self, input: Tensor) -> Tensor:
        """The affine map of `linear`, and what is learnt beside it."""
        x = F.dropout(input, self.dropout, self.training) if self.dropout else input
        thin = F.linear(x, self.lora_A) * (self.alpha / self.rank)
        return F.linear(input, self.weight, self.bias) + F.linear(thin, self.lora_B)

    def merged(self) -> Linear:
        """A plain layer with the weight W + (alpha / rank) B A; the bias is shared with it."""
        with graph.no_grad():
            weight = self.weight + (self.lora_B @ self.lora_A) * (self.alpha / self.rank)
        return Linear.of(Parameter(weight, requires_grad=False), self.bias)


def is_adapter(name: str) -> bool:
    """Whether a parameter of this name is the A or B of a LoRALinear."""
    return name.rpartition(".")[2] in _ADAPTERS


def add_lora(model: Module, names: Iterable[str], rank: int, alpha: float, dropout: float) -> None:
    """Put a LoRALinear in the place of each linear layer of a model that `names` has."""
    for name in names:
        layer = model.get_submodule(name)
        if type(layer) is not Linear:
            raise OptionError(f"add_lora: '{name}' is a {type(layer).__name__}, expected a Linear")
        _replace(model, name, LoRALinear(layer, rank, alpha, dropout))


def merge_lora(model: Module) -> int:
    """Put a plain Linear in the place of each LoRALinear of a model; gives how many there were."""
    layers = {
        name: module for name, module in model.named_modules() if isinstance(module, LoRALinear)
    }
    for name, layer in layers.items():
        _replace(model, name, layer.merged())
    return len(layers)


def _replace(model: Module, name: str, layer: Module) -> None:
    """Another layer under a name; what was set on the one before, as hooks are, goes with it."""
    owner, _, last = name.rpartition(".")
    for key, value in vars(model.get_submodule(name)).items():
        if key in ("_hooks", "training") or not (key in _OWN or key in vars(layer)):
            setattr(layer, key, value)
    model.get_submodule(owner).register_module(last, layer)
