"""docs/parity.md names everything that torch has too; what it lacks stands here with its reason."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gradcli.engine import nn, optim
from gradcli.engine.nn import functional, init
from gradcli.engine.optim import lr_scheduler
from gradcli.engine.table import OPS

TABLE = Path(__file__).parent.parent / "docs" / "parity.md"
# test_nn_positions.py, test_nn_attention.py, test_nn_lora.py and test_softcap.py of tests/engine
# hold them to their papers' formulas, test_nn_key_value_cache.py states to whole sequences.
NOT_IN_TORCH = {
    "LoRALinear",
    "Positions",
    "RotaryEmbedding",
    "SelfAttention",
    "SoftCap",
    "TransformerBlock",
    "affine",
    "lerp_number",  # and lerp itself has a row
    "over_rms",  # of rms_norm
    "rotary_embedding",
    "softcap",
}
# The numbers drawn are our own; test_random.py and test_parity_ranked.py look at how they spread.
DRAWN = {
    "bernoulli",
    "bernoulli_",
    "multinomial",
    "normal",
    "rand",
    "rand_at",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "get_rng_state",
    "set_rng_state",
}
# Memory without contents, checks that give no tensor, other libraries' arrays, and parts of ops.
NO_VALUES = {
    "allclose",
    "empty_like",
    "equal",
    "flat_index",
    "format",
    "new_empty",
    "nonzero_places",
    "numpy",
    "require_finite",
    "with_part",
}


def rows() -> set[str]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {line.split("`")[1] for line in lines if line.startswith("| `")}


def classes(module: Any, of: type) -> list[str]:
    found = (getattr(module, name) for name in dir(module) if not name.startswith("_"))
    return sorted({c.__name__ for c in found if inspect.isclass(c) and issubclass(c, of)})


def lacking(prefix: str, names: Iterable[str], without: set[str]) -> list[str]:
    table = rows()
    return [name for name in names if f"{prefix}{name}" not in table and name not in without]


def test_every_layer_and_loss_has_a_row() -> None:
    assert lacking("nn.", nn.LAYERS, NOT_IN_TORCH) == []


def test_every_optimizer_and_schedule_has_a_row() -> None:
    assert lacking("optim.", classes(optim, optim.Optimizer), {"Optimizer"}) == []
    every = classes(lr_scheduler, lr_scheduler.LRScheduler)
    assert lacking("schedule.", every, {"LRScheduler"}) == []


def test_every_initialisation_has_a_row() -> None:
    names = [n for n in dir(init) if n.endswith("_") and not n.startswith("_")]
    # Layers call this one; it is kaiming_uniform_ and a uniform bias.
    assert lacking("init.", names, {"weight_and_bias_"}) == []


def test_every_function_and_op_has_a_row() -> None:
    table = rows()
    names = {name for name in (*OPS, *dir(functional)) if not name.startswith("_")}
    booked = {row.rpartition(".")[2] for row in table}
    assert sorted(names - booked - DRAWN - NO_VALUES - NOT_IN_TORCH) == []


def test_no_exception_is_stale() -> None:
    booked = {row.rpartition(".")[2] for row in rows()}
    assert sorted((DRAWN | NO_VALUES | NOT_IN_TORCH) & booked) == []
