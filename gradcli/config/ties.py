"""Layers that share a weight: `linear: {tied: NAME}` takes that of the embed layer NAME."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradcli.config.signal import Fitted, Signal
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn


@dataclass
class _Embed:
    """An embed layer that has a name, and its module once a model is being built."""

    rows: int
    dim: int
    made: nn.Module | None = None


@dataclass
class Ties:
    """The named embed layers so far; of several turns of one, the latest."""

    embeds: dict[str, _Embed] = field(default_factory=dict)

    def tie(
        self, kind: str, name: str, values: dict[str, Any], x: Signal, fitted: Fitted
    ) -> Fitted:
        """The layer itself, remembered if it can be tied to, tied if it asks for that."""
        if kind == "embed" and name:
            embed = self.embeds[name] = _Embed(x.vocab or 0, fitted.output.shape[-1])
            return fitted._replace(make=_remembering(fitted, embed))
        if values.get("tied") is None:
            return fitted
        return self._tied(values["tied"], x.shape[-1], fitted)

    def _tied(self, name: str, features: int, fitted: Fitted) -> Fitted:
        embed = self.embeds.get(name)
        if embed is None:
            known = ", ".join(self.embeds) or "none"
            raise ShapeError(f"tied: no embed layer above is named '{name}'; named ones: {known}")
        out = fitted.output.shape[-1]
        if (out, features) != (embed.rows, embed.dim):
            raise ShapeError(
                f"tied to '{name}', which has {embed.rows} rows of {embed.dim}: needs "
                f"{embed.dim} features and out {embed.rows}, got {features} and {out}"
            )

        def make() -> nn.Module:
            made = fitted.make()
            assert embed.made is not None, "layers are made in order"
            made.weight = embed.made.weight
            return made

        return fitted._replace(parameters=fitted.parameters - out * features, make=make)


def _remembering(fitted: Fitted, embed: _Embed) -> Any:
    def make() -> nn.Module:
        embed.made = fitted.make()
        return embed.made

    return make
