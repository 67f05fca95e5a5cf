"""A training of a few milliseconds for tests: 42 points and a two-layer net."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.train.directory import RunDirectory
from gradcli.train.job import Job, TrainSettings
from gradcli.train.launch import resume, start
from gradcli.train.metrics import METRICS
from gradcli.train.report import Reporter
from gradcli.train.run_context import RunContext
from gradcli.train.signals import Signals

HERE = RunContext(argv=["test"], device="cpu", threads=1, config_sha256="0" * 64)


class Silent(Reporter):
    """A reporter that shows nothing: the bodies of the protocol do nothing."""


@dataclass
class TinySplit:
    """`size` points in the plane; the class is a sign. `on_batch` is called with each batch."""

    size: int
    seed: int
    on_batch: Any = None
    poison: int = -1

    def batch(self, indices: Any) -> tuple[Any, Any]:
        wanted = indices.tolist()
        if self.on_batch is not None:
            self.on_batch(wanted)
        points = [_point(self.seed, index) for index in wanted]
        labels = [int(x * y > 0) for x, y in points]
        if self.poison in wanted:
            points[wanted.index(self.poison)] = (float("nan"), 0.0)
        inputs = engine.tensor(points, dtype=engine.float32)
        return inputs, engine.tensor(labels, dtype=engine.int64)


def _point(seed: int, index: int) -> tuple[float, float]:
    digest = hashlib.sha256(f"{seed}/{index}".encode()).digest()
    return digest[0] / 128 - 1, digest[1] / 128 - 1


@dataclass
class TinyData:
    splits: dict[str, TinySplit]
    sha256: dict[str, str] = field(default_factory=lambda: {"points": "00"})
    state: dict[str, Any] = field(default_factory=dict)
    facts: Any = None
    source: Any = None
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Falling(optim.schedule.Schedule):
    """A rate that falls with the step, so that a wrong step shows in the weights."""

    def factor(self, step: int) -> float:
        return 1.0 / (1 + step)


def tiny_job(optimizer: str = "adam", **changes: Any) -> Job:
    settings = {"batch": 8, "seed": 5, "epochs": 3, "log_every": 1, **changes.pop("settings", {})}
    engine.manual_seed(settings["seed"])
    model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.2), nn.Linear(8, 2))
    kinds = {
        "adam": lambda: optim.Adam(model.parameters(), lr=0.05),
        "sgd": lambda: optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    }
    values: dict[str, Any] = {
        "name": "tiny",
        "model": model,
        "loss": nn.CrossEntropyLoss(),
        "metrics": {"accuracy": METRICS["accuracy"]()},
        "optimizer": kinds[optimizer](),
        "optimizer_name": optimizer,
        "schedule": Falling(total=18),
        "dataset": TinyData(
            {"train": TinySplit(42, 1), "val": TinySplit(20, 2), "test": TinySplit(12, 3)}
        ),
        "settings": TrainSettings(**settings),
        "resolved": {"optim": {"name": optimizer}, "train": asdict(TrainSettings(**settings))},
        "sources": [(Path("tiny.yaml"), "name: tiny\n")],
        "model_layers": ["linear", "dropout", "linear"],
    }
    return Job(**{**values, **changes})


def train(runs: Path, job: Job | None = None, **options: Any) -> Any:
    with Signals() as signals:
        reporter = options.pop("reporter", Silent())
        return start(job or tiny_job(), runs, HERE, reporter, signals, **options)


def go_on(run: Path | str, job: Job | None = None, **options: Any) -> Any:
    with Signals() as signals, RunDirectory(Path(run)) as directory:
        reporter = options.pop("reporter", Silent())
        return resume(job or tiny_job(), directory, reporter, signals, **options)


def records(run: Path | str) -> list[dict[str, Any]]:
    lines = (Path(run) / "log.jsonl").read_text().splitlines()
    return [json.loads(line, parse_constant=_refuse) for line in lines]


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} in a log")


def status(run: Path | str) -> Any:
    return SimpleNamespace(**json.loads((Path(run) / "status.json").read_text()))


def only_run(runs: Path) -> Path:
    (run,) = (runs / "tiny").iterdir()
    return run


def main() -> None:
    """`python tiny.py train RUNS` or `resume RUN`: for tests that kill it."""
    command, where = sys.argv[1:3]
    job = tiny_job(settings={"epochs": 6, "checkpoint_every": 2})
    result = train(Path(where), job) if command == "train" else go_on(where, job)
    sys.stdout.write(result.weights_sha256)


if __name__ == "__main__":
    main()
