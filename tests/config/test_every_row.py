"""Every loss, optimizer, schedule, init and metric of YAML: what `check` accepts also trains."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from gradcli.bench.step import TrainingSteps
from gradcli.config import build, load
from gradcli.config.inits import INITS
from gradcli.config.losses import LOSSES
from gradcli.config.optimizers import OPTIMIZERS
from gradcli.config.schedules import SCHEDULES
from gradcli.config.schema import schema_of
from gradcli.errors import ErrorGroup
from gradcli.train.evaluate import Evaluation
from gradcli.train.metrics import METRICS

# Keys without a default, and those of which one must be given.
NEEDED: dict[str, Any] = {
    "lr": 0.01,
    "val": 0.1,
    "sparsity": 0.5,
    "at": [2],
    "factor": 0.5,
    "parts": ["linear", "cosine"],
}
BEFORE = {"nll": ["log_softmax"], "kl": ["logsigmoid"], "bce": ["sigmoid"]}  # the loss


def values(make: Callable[..., Any], also: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a row needs, by key."""
    schema = schema_of(make)
    required = [key for key, field in schema.model.model_fields.items() if field.is_required()]
    return {key: NEEDED[key] for key in (*required, *also)}


def variants(table: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """Each row as it is, and with each of its choices made otherwise."""
    rows = []
    for name, make in table.items():
        first = {"name": name, **values(make, ("at",) if name == "step" else ())}
        rows.append(pytest.param(first, id=name))
        for key, hint in schema_of(make).hints.items():
            default = schema_of(make).model.model_fields[key].default
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            others = [not default] if isinstance(default, bool) else choices
            for other in (other for other in others if other != default):
                rows.append(pytest.param({**first, key: other}, id=f"{name}-{key}-{other}"))
    return rows


def trains(folder: Path, task: str = "classification", **sections: Any) -> bool:
    """Two steps and an evaluation of a config that `check` accepts; False for one it refuses."""
    rows = [f"{x},{1 - x},{x}" for x in (0, 1) * 6]
    (folder / "data.csv").write_text("\n".join(["a,b,y", *rows]))
    data = {"name": "csv", "file": "data.csv", "numeric": ["a", "b"], "target": "y", "task": task}
    config = {
        "gradcli": 1,
        "data": {**data, "split": {"train": 8, "val": 4}, "standardize": False},
        "loss": "cross_entropy" if task == "classification" else "mse",
        "model": [{"linear": 2 if task == "classification" else 1}],
        "optim": {"name": "sgd", "lr": 0.01},
        "train": {"batch": 4, "steps": 6, "capture": False},
        **sections,
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))
    try:
        job = build(load(path))
    except ErrorGroup:
        return False
    rate = [job.schedule.factor(step) for step in range(6)]
    loss = TrainingSteps(job, captured=False).run(2)
    figures = Evaluation(job, job.dataset.splits["val"], "val").run()
    job.schedule.watch(figures)
    assert all(map(math.isfinite, (*rate, loss, *figures.values())))
    return True


@pytest.mark.parametrize("loss", variants(LOSSES))
def test_every_loss(tmp_path: Path, loss: dict[str, Any]) -> None:
    made = LOSSES[loss["name"]]()
    end = BEFORE.get(loss["name"], [])
    tasks = {"labels": "classification", "values": "regression"}
    for kind in made.targets:
        out = 1 if made.binary or kind == "values" else 2
        assert trains(tmp_path, tasks[kind], loss=loss, model=[{"linear": out}, *end])


@pytest.mark.parametrize("optim", variants(OPTIMIZERS))
def test_every_optimizer(tmp_path: Path, optim: dict[str, Any]) -> None:
    alone = optim["name"] == "muon" or optim.get("nesterov") is not True  # it needs a momentum
    assert trains(tmp_path, optim=optim) is alone
    assert trains(tmp_path, optim={**optim, "no_decay": ["bias"]}) is alone


@pytest.mark.parametrize("schedule", variants(SCHEDULES))
def test_every_schedule(tmp_path: Path, schedule: dict[str, Any]) -> None:
    assert trains(tmp_path, schedule=schedule)
    assert trains(tmp_path, schedule={**schedule, "warmup": "20%"})


@pytest.mark.parametrize("init", variants(INITS))
def test_every_init(tmp_path: Path, init: dict[str, Any]) -> None:
    if init["name"] == "dirac":  # for convolutions alone
        filled = {"conv1d": {"out": 2, "kernel": 1, "init": init}}
        assert trains(tmp_path, model=[{"reshape": [1, 2]}, filled, "flatten", {"linear": 2}])
    else:
        assert trains(tmp_path, model=[{"linear": {"out": 2, "init": init}}])


@pytest.mark.parametrize("metric", variants(METRICS))
def test_every_metric(tmp_path: Path, metric: dict[str, Any]) -> None:
    kind, keys = metric["name"], {key: metric[key] for key in metric if key != "name"}
    written: Any = {kind: keys} if keys else kind
    if METRICS[kind].targets == "values":
        assert trains(tmp_path, "regression", metrics=[written])
    elif issubclass(METRICS[kind], METRICS["perplexity"]):
        (tmp_path / "text.txt").write_text("to be or not to be, " * 40)
        text = {"name": "text", "file": "text.txt", "context": 8}
        model = [{"embed": 4}, {"linear": 8}]
        assert trains(tmp_path, data=text, model=model, metrics=[written])
    elif kind == "top_k":  # there are two classes
        assert not trains(tmp_path, metrics=[written])
        assert trains(tmp_path, metrics=[{"top_k": 1}])
    else:
        assert trains(tmp_path, metrics=[written])
