"""The memory of a training on a GPU whose data stays on the host: batches count in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.config import load
from gradcli.config.memory import program_memory
from gradcli.config.rehearsal import rehearse
from gradcli.config.room import Room
from gradcli.data import staging
from gradcli.engine.device import meta
from gradcli.errors import ErrorGroup

MNIST = Path(__file__).parents[2] / "configs" / "mnist.yaml"


def test_data_that_stays_is_not_counted() -> None:
    config = load(MNIST, room=None)
    data = staging.nbytes(config.data.outline(config.facts))
    most = 3 * data  # so that the data is more than a quarter of it
    there, here = (program_memory(config, device="cuda", free=free) for free in (None, most))
    assert there.mapped == 0 and here.mapped == data
    assert there.persistent - here.persistent == data
    whole, rest = (rehearse(config, device="cuda", free=free) for free in (None, most))
    assert (whole.mapped, rest.mapped) == (0, data)
    assert data * 0.9 < whole.train.most - rest.train.most <= data
    assert whole.eval is not None and rest.eval is not None
    assert data * 0.9 < whole.eval.most - rest.eval.most <= data
    assert meta.DEVICE.allocated == meta.DEVICE.mapped == 0


def test_a_training_fits_whose_data_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room("device 'cuda'", lambda: 30_000_000, device="cuda")
    config = load(MNIST, room=room)
    assert config.memory is not None and config.memory.total < 30_000_000
    monkeypatch.setattr(staging, "SHARE", 2.0)
    with pytest.raises(ErrorGroup, match="training needs "):
        load(MNIST, room=room)
