"""Layers that share a weight: `linear: {tied: NAME}` takes that of the embed layer NAME."""

from __future__ import annotations

from dataclasses import field
from typing import Any
from weakref import ref

from gradcli.config.layer import Make, Trial
from gradcli.config.tensor_spec import TensorSpec
from gradcli.dataclass import dataclass
from gradcli.engine import nn
from gradcli.errors import ShapeError
from gradcli.wording import quantity


@dataclass
class _Embed:
    """An embed layer that has a name, and its module while a model is being built."""

    rows: int
    dim: int
    module: ref[nn.Module] | None = None


@dataclass
class Ties:
    """The named embed layers so far; of several turns of one, the latest."""

    embeds: dict[str, _Embed] = field(default_factory=dict)

    def tie(
        self, kind: str, name: str, values: dict[str, Any], x: TensorSpec, make: Make, trial: Trial
    ) -> tuple[Make, int]:
        """What makes the layer, and how many parameters are its own.

        An embed layer with a name is remembered; a layer that asks for it has its weight.
        """
        if kind == "embed" and name:
            embed = self.embeds[name] = _Embed(x.vocab or 0, trial.output.shape[-1])
            return _remembering(make, embed), trial.parameters
        if values.get("tied") is None:
            return make, trial.parameters
        embed, out = self._embed(values["tied"], x.shape[-1], trial), trial.output.shape[-1]
        return _tied(make, embed), trial.parameters - out * x.shape[-1]

    def _embed(self, name: str, features: int, trial: Trial) -> _Embed:
        embed = self.embeds.get(name)
        if embed is None:
            names = ", ".join(self.embeds) or "none"
            raise ShapeError(f"tied: no embed layer above is named '{name}'; named ones: {names}")
        out = trial.output.shape[-1]
        if (out, features) != (embed.rows, embed.dim):
            raise ShapeError(
                f"tied to '{name}', which has {quantity(embed.rows, 'row')} of {embed.dim}: needs "
                f"{quantity(embed.dim, 'feature')} and out {embed.rows}, got {features} and {out}"
            )
        return embed


def _tied(make: Make, embed: _Embed) -> Make:
    def make_tied() -> nn.Module:
        module = make()
        source = embed.module() if embed.module else None
        assert source is not None, "layers are made in order"
        module.weight = source.weight
        return module

    return make_tied


def _remembering(make: Make, embed: _Embed) -> Make:
    def make_remembered() -> nn.Module:
        module = make()
        embed.module = ref(module)
        return module

    return make_remembered
