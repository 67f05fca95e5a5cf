"""Muon: momentum whose matrix is made nearly orthogonal before the step."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import sqrt
from typing import Annotated, Any, Literal

from gradcli.engine import table
from gradcli.engine.array import Array, copy_into, run
from gradcli.engine.graph import no_grad
from gradcli.engine.kind import Kind, NotNegative, within
from gradcli.engine.optim.adam import AdamW
from gradcli.engine.optim.declared import Betas, DeclaredOptimizer
from gradcli.engine.optim.optimizer import Group
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError

COEFFICIENTS = (3.4445, -4.775, 2.0315)

Steps = Annotated[int, within("a whole number from 0 to 99", ge=0, le=99)]


class Muon(DeclaredOptimizer):
    """w -= lr (ratio O + weight_decay w), O nearly orthogonal to the momentum (Jordan 2024).

    m = momentum m + (1 - momentum) g; O comes of m, or with nesterov of momentum m +
    (1 - momentum) g, by ns_steps of Newton and Schulz: its singular values, first scaled to at
    most 1, go through a s + b s^3 + c s^5. `ratio` is sqrt(max(1, rows / columns)), or 0.2
    sqrt(max(rows, columns)) where adjust_lr_fn is "match_rms_adamw". For matrices only. All is
    done in the parameter's own precision, where torch computes O in bfloat16.
    """

    state_names = ("momentum_buffer",)

    lr: NotNegative = 1e-3
    weight_decay: NotNegative = 0.1
    momentum: NotNegative = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = COEFFICIENTS
    eps: NotNegative = 1e-7
    ns_steps: Steps = 5
    adjust_lr_fn: Literal["original", "match_rms_adamw"] | None = None

    def _check_parameter(self, group: Group, parameter: Any, owned: Set[int]) -> None:
        super()._check_parameter(group, parameter, owned)
        if parameter.ndim != 2 and not group.get("adamw"):
            raise ShapeError(
                f"{self._name}: a parameter must be a matrix, got shape {parameter.shape}; "
                "give the others to AdamW"
            )

    @no_grad()
    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter; sgd_step does w -= lr (g + decay w)."""
        g, m, momentum = Tensor(grad), Tensor(state[0]), group["momentum"]
        average = m + (1 - momentum) * (g - m)
        copy_into(state[0], average.array)
        aim = g + momentum * (average - g) if group["nesterov"] else average
        step = orthogonal(aim, group["ns_coefficients"], group["ns_steps"], group["eps"])
        step = (step * _ratio(group["adjust_lr_fn"], *grad.shape)).contiguous()
        run("sgd_step", step.array, hyper, parameter, options=(group["weight_decay"],))


class MuonAdamW(Muon):
    """Muon for the matrices inside a model, AdamW for all other parameters (Jordan 2024).

    Those are in groups with adamw=True, whose lr, weight_decay and eps are AdamW's and begin as
    adamw_lr, adamw_weight_decay and adamw_eps; betas are AdamW's alone.
    """

    betas: Betas = (0.9, 0.999)
    adamw_lr: NotNegative = 1e-3
    adamw_weight_decay: NotNegative = 1e-2
    adamw_eps: NotNegative = 1e-8
    adamw: bool = False

    def add_param_group(self, param_group: Mapping[str, object]) -> None:
        """Add parameters, with options of their own where given; adamw=True for those of AdamW."""
        if isinstance(param_group, Mapping):
            adamw = param_group.get("adamw", self.defaults["adamw"])
            if Kind.of(bool).convert_argument(self._name, "adamw", adamw):
                names = ("lr", "weight_decay", "eps")
                own = {name: self.defaults[f"adamw_{name}"] for name in names}
                param_group = {**own, **param_group}
        super().add_param_group(param_group)

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """Of a matrix its momentum, else AdamW's averages."""
        return AdamW.state_names if group["adamw"] else self.state_names

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        if not group["adamw"]:
            super().update(group, grad, hyper, parameter, state)
            return
        options = (group["weight_decay"], *group["betas"], group["eps"], AdamW.decoupled)
        run("adam_step", grad, hyper, parameter, *state, options=options)


def orthogonal(
    x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """A matrix with nearly the singular vectors of x, and singular values near 1."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    y = x.t() if tall else x
    y = y / table.clamp(table.sqrt((y * y).sum()), min=eps)
    for _ in range(steps):
        gram = y @ y.t()
        y = a * y + (b * gram + c * (gram @ gram)) @ y
    return y.t() if tall else y


def _ratio(adjust: str | None, rows: int, columns: int) -> float:
    """How much longer the step of a matrix is, so that rates suit all shapes."""
    if adjust == "match_rms_adamw":
        return 0.2 * sqrt(max(rows, columns))
    return sqrt(max(1, rows / columns)) if columns else 1.0
