"""Statistics of batches, collected for whoever lets layers learn them later and in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn.batch_norm import collect_statistics
from gradcli.engine.recompute import checkpoint

LAYERS: dict[str, Callable[[], Any]] = {
    "batch": lambda: nn.BatchNorm2d(3),
    "average": lambda: nn.BatchNorm2d(3, momentum=None),
    "instance": lambda: nn.InstanceNorm2d(3, track_running_stats=True),
}


def batches() -> list[Any]:
    engine.manual_seed(1)
    return [engine.randn(4, 3, 5, 5) * (i + 1) + i for i in range(3)]


def buffers(layer: Any) -> list[list[float]]:
    return [buffer.reshape(-1).tolist() for buffer in layer.buffers()]


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_noted_and_learnt_in_order_is_what_the_layer_learns(name: str) -> None:
    layer, other = LAYERS[name](), LAYERS[name]()
    fresh, notes, outputs = buffers(layer), [], []
    for batch in reversed(batches()):
        with collect_statistics() as statistics:
            outputs.append(layer(batch).tolist())
        notes.append(*statistics)
    assert buffers(layer) == fresh
    assert outputs == [other(batch).tolist() for batch in reversed(batches())]
    other.reset_running_stats()
    for batch, one in zip(batches(), reversed(notes), strict=True):
        other(batch)
        assert one.layer is layer
        layer.learn(one.mean, one.var)
    for mine, its in zip(buffers(layer), buffers(other), strict=True):
        assert mine == pytest.approx(its, rel=1e-6)
    assert buffers(layer) != fresh


def test_layers_that_learn_nothing_note_nothing() -> None:
    layer, bare = nn.BatchNorm2d(3), nn.BatchNorm2d(3, track_running_stats=False)
    layer.eval()
    with collect_statistics() as statistics:
        layer(batches()[0])
        bare(batches()[0])
    assert statistics == []


def test_a_part_that_runs_again_on_the_way_back_notes_once() -> None:
    layer = nn.BatchNorm2d(3)
    with collect_statistics() as statistics:
        checkpoint(layer, batches()[0].requires_grad_()).sum().backward()
    assert len(statistics) == 1
