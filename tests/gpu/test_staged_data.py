"""Data that is too large for a GPU stays on the host: the bits are those of data that lies there.

The driver here runs nothing before somebody waits: all batches are gathered before the first step.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pytest
from on_host import gpu  # noqa: F401

from gradcli import engine
from gradcli.config import load
from gradcli.config.build import build
from gradcli.data import staging, waiting
from gradcli.data.own import _Indices
from gradcli.data.samples import Samples, Windows, imagined
from gradcli.engine.device.gpu.device import GPU, MOST_COUNTED
from gradcli.train.evaluate import Evaluation
from gradcli.train.job import Job, steps_per_epoch
from gradcli.train.order import order_in
from gradcli.train.state import weights_sha256
from gradcli.train.step import TrainingStep

pytestmark = pytest.mark.usefixtures("gpu")
ROOT = Path(__file__).parents[2]
SIZE = 6  # steps
TABLE = """
gradcli: 1
name: table
data:
  name: csv
  file: {root}/datasets/penguins/penguins.csv
  target: species
  numeric: [bill_length_mm, bill_depth_mm]
  category: [island]
  missing: drop
  split: {{train: 80%, val: 20%{how}}}
model: [{{linear: 8}}, relu, {{linear: $data.classes}}]
loss: cross_entropy
metrics: [accuracy]
optim: {{name: sgd, lr: 0.1}}
train: {{epochs: 1, batch: 20, seed: 1, log_every: 1{train}}}
"""
PICTURES = """
gradcli: 1
name: pictures
data:
  name: mnist
  dir: {root}/datasets/mnist
  augment: [{{crop: {{padding: 2}}}}, {{mixup: 0.2}}]
model: [flatten, {{linear: 10}}]
loss: cross_entropy
metrics: [accuracy]
optim: {{name: sgd, lr: 0.1}}
train: {{epochs: 1, batch: 96, seed: 1, sampler: balanced}}
"""
TEXT = """
gradcli: 1
name: text
data: {{name: text, file: {folder}/text.txt, context: 8}}
model: [{{embed: 8}}, {{linear: $data.vocab}}]
loss: cross_entropy
metrics: [accuracy]
optim: {{name: sgd, lr: 0.1}}
train: {{epochs: 1, batch: 16, seed: 1}}
"""
TOKENS = TEXT.replace(
    "name: text, file: {folder}/text.txt", "name: tokens, file: {folder}/tokens.bin, vocab: 300"
)
SERIES = """
gradcli: 1
name: series
data: {{name: csv, file: {folder}/series.csv, target: y, task: regression, window: 6}}
model: [flatten, {{linear: 1}}]
loss: mse
metrics: [mae]
optim: {{name: sgd, lr: 0.01}}
train: {{epochs: 1, batch: 16, seed: 1}}
"""
CONFIGS = {
    "table": TABLE.format(root=ROOT, how="", train=""),
    "parts": TABLE.format(root=ROOT, how="", train=", micro_batch: 8"),
    "rows": TABLE.format(root=ROOT, how=", stratify: true", train=""),
    "eager": TABLE.format(root=ROOT, how="", train=", capture: false"),
    "pictures": PICTURES.format(root=ROOT),
    "text": TEXT,
    "tokens": TOKENS,
    "series": SERIES,
}


def config_of(kind: str, folder: Path) -> Any:
    (folder / "text.txt").write_text("".join(chr(97 + i * i % 23) for i in range(3000)))
    (folder / "tokens.bin").write_bytes(struct.pack("<3000H", *(i * i % 300 for i in range(3000))))
    rows = "".join(f"{math.sin(i):.3f},{math.cos(i / 3):.3f}\n" for i in range(300))
    (folder / "series.csv").write_text("x,y\n" + rows)
    text = CONFIGS[kind]
    path = folder / "config.yaml"
    path.write_text(text.format(folder=folder) if "{folder}" in text else text)
    return load(path, room=None)


def made(job: Job) -> tuple[object, ...]:
    """What some steps and an evaluation give."""
    split = job.dataset.splits["train"]
    step = TrainingStep(job, split, pytest.fail)
    order = order_in(job.settings, split, steps_per_epoch(job.settings, split.size))
    losses = [*step.run(1, order.rows(0, 1)).losses, *step.run(2, order.rows(1, SIZE)).losses]
    assert len(losses) == 1 + SIZE
    name = next(name for name in job.dataset.splits if name != "train")
    figures = Evaluation(job, job.dataset.splits[name], name).run(limit=200)
    return losses, figures, weights_sha256(job.model)


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_bits_are_those_of_data_on_the_gpu(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(kind, tmp_path)
    there = build(config).to("cuda")
    assert {one.device for one in staging.all_stored(there.dataset.splits)} == {"cuda"}
    monkeypatch.setattr(staging, "SHARE", 0.0)
    here = build(config).to("cuda")
    assert {one.device for one in staging.all_stored(here.dataset.splits)} == {"cpu"}
    assert made(here) == made(there)
    assert len(here.dataset.notes) == len(there.dataset.notes) + 1
    assert "the data stays in the host's memory: it would take " in here.dataset.notes[-1]


def test_what_a_user_measures_with_own_indices_is_gathered_too() -> None:
    numbers = engine.arange(12).reshape(6, 2)
    places = engine.tensor([4, 0])
    split: Any = _Indices(numbers, numbers).staged("cuda")
    for one in split.batch(places):
        assert (one.device, one.tolist()) == ("cuda", [[8, 9], [0, 1]])


@pytest.mark.parametrize("staged", [True, False])
def test_samples_are_padded_on_the_gpu(staged: bool) -> None:
    images = engine.arange(3 * 4, dtype=engine.float32).reshape(3, 1, 2, 2)
    split = Samples(images, engine.arange(3), frame=(1, 4, 4))
    inputs, _ = (split.staged("cuda") if staged else split.to("cuda")).batch(engine.tensor([2]))
    assert inputs.device == "cuda"
    assert inputs[0, 0].tolist() == [[0] * 4, [0, 8, 9, 0], [0, 10, 11, 0], [0] * 4]


@pytest.mark.parametrize("busy", [True, False])
def test_a_step_waits_for_samples_where_the_gpu_has_nothing_left_to_do(
    busy: bool,
    gpu: GPU,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = engine.rand(20_000, 8)
    split: Any = Samples(stored, engine.arange(20_000)).staged("cuda")

    def step(indices: Any) -> Any:
        with waiting.gathering():
            inputs, _ = split.batch(indices)
        return inputs.sum()

    captured = engine.capture(step, on_fallback=pytest.fail)
    rows = engine.randperm(20_000)[:600].reshape(6, 100)
    sums = captured.steps(rows[:3]).outputs.tolist()
    monkeypatch.setattr(gpu.driver, "at_work", lambda: busy)
    (program,) = captured.programs
    before = program.sampling_seconds
    sums += captured.steps(rows[3:]).outputs.tolist()
    assert (program.sampling_seconds == before) is busy
    expected = [engine.index_select(stored, 0, row).sum().item() for row in rows.unbind(0)]
    assert sums == pytest.approx(expected)


def test_more_elements_than_kernels_count_stay_on_the_host() -> None:
    tokens = imagined((MOST_COUNTED + 1,), engine.uint8, mapped=True)
    splits: Any = {"train": Windows(tokens, 8, 8)}
    assert "its kernels count no more than 2,147,483,648" in staging.staging_reason(splits, 10**12)
    assert "more than 25% of the 4.0 GB" in staging.staging_reason(splits, 4 * 10**9)
    splits = {"train": Windows(tokens[1:], 8, 8)}
    assert not staging.staging_reason(splits, 10**12)


def test_no_more_is_used_than_is_allowed(tmp_path: Path) -> None:
    data = build(config_of("table", tmp_path)).dataset
    size = staging.nbytes(data.splits)
    assert len(data.to("cuda", 4 * size).notes) == len(data.notes)
    assert len(data.to("cuda", 4 * size - 4).notes) == len(data.notes) + 1
