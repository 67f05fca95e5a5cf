"""`python shortened_driver.py COMMAND FOLDER JSON`: reads a mapped file that changes meanwhile.

JSON says behind which step what happens to it: {"shorten": 9}. One line of JSON is the answer.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tiny import Silent, TinyData, go_on, tiny_job, train

from gradcli import engine
from gradcli.data.prepared.mapped import map_file
from gradcli.data.samples import Samples
from gradcli.engine import nn, optim
from gradcli.errors import GradcliError
from gradcli.train.evaluate import Evaluation
from gradcli.train.predict import Predictor

SAMPLES, WIDTH = 4096, 64


def write(path: Path) -> None:
    numbers = ((i * 7919 % 2003) / 1000 - 1 for i in range(SAMPLES * WIDTH))
    path.write_bytes(array("f", numbers).tobytes())
    os.utime(path, (1e9, 1e9))


def change(path: Path, how: str) -> None:
    if how == "shorten":
        os.truncate(path, 4096)
    elif how == "overwrite":
        with path.open("r+b") as file:
            file.write(bytes(4096))
    elif how == "unlink":
        path.unlink()
    elif how == "replace":
        path.with_suffix(".new").write_bytes(bytes(12))
        path.with_suffix(".new").rename(path)


class Changing(Silent):
    def __init__(self, path: Path, when: dict[str, int]) -> None:
        self.path, self.when, self.losses = path, when, list[float]()

    def on_step(self, step: int, loss: float, rate: float) -> None:
        self.losses.append(loss)
        for how, at in self.when.items():
            if step == at:
                change(self.path, how)


def job_on(path: Path) -> Any:
    inputs = map_file(path, engine.float32, (SAMPLES, WIDTH), 0)
    targets = engine.tensor([i * 31 % 17 % 2 for i in range(SAMPLES)])
    engine.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, 2))
    settings = {"steps": 20, "epochs": None, "batch": 256, "checkpoint_every": 4, "log_every": 5}
    return replace(
        tiny_job(settings=settings),
        model=model,
        optimizer=optim.Adam(model.parameters(), lr=0.01),
        model_layers=["linear"],
        dataset=TinyData({"train": Samples(inputs, targets)}),
    )


def answer(command: str, folder: Path, when: dict[str, int]) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "points.f32"
    write(path)
    job, reporter = job_on(path), Changing(path, when)
    found: dict[str, Any] = {"exit": 0, "error": "", "losses": reporter.losses, "answers": 0}
    try:
        if command == "train":
            found["sha256"] = train(folder / "runs", job, reporter=reporter).weights_sha256
        elif command == "resume":
            (run,) = (folder / "runs" / "tiny").iterdir()
            found["sha256"] = go_on(run, job, reporter=reporter).weights_sha256
        elif command == "evaluate":
            change(path, "shorten")
            Evaluation(job, job.dataset.splits["train"], "train").run()
        else:
            change(path, "shorten")
            inputs = job.dataset.splits["train"].inputs
            job.dataset.facts = SimpleNamespace(classes=None, input_kind="number", values=())
            for _ in Predictor(job).predictions(inputs, 1, "points", range(SAMPLES)):
                found["answers"] += 1
    except GradcliError as error:
        found |= {"exit": error.exit_code, "error": str(error)}
    for run in (folder / "runs" / "tiny").glob("*"):
        found["step"] = json.loads((run / "status.json").read_text())["step"]
        found["saved"] = sorted(one.name for one in (run / "checkpoints").iterdir())
    return found


if __name__ == "__main__":
    reply = answer(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
    sys.stdout.write(json.dumps(reply))
