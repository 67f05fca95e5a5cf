"""A close look: the most wrong of all samples, evenly spaced outputs, and nothing where unusual."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rank_threads import on_ranks
from tiny import Silent, TinyData, tiny_job, train

from gradcli import engine
from gradcli.config.losses import LOSSES
from gradcli.data import DataSpec
from gradcli.data.samples import Samples
from gradcli.engine import nn, optim
from gradcli.train import close_look
from gradcli.train.close_look import CloseLook, Sight
from gradcli.train.evaluate import Evaluation
from gradcli.train.job import Job
from gradcli.train.metrics import METRICS
from gradcli.train.tensor_files import load_tensors

SIZE = 10_001
FACTS = DataSpec((2,), "float", (), 2, None, ("no", "yes"), {"train": 40, "test": SIZE})


def job_of(
    facts: DataSpec, targets: Any, outputs: int, name: str = "cross_entropy", **changes: Any
) -> Job:
    """A job on random points with these targets; the test split has as many as there are."""
    engine.manual_seed(4)
    size = targets.shape[0]
    points = engine.randn(size, *facts.input)
    split = Samples(points, targets)
    model = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(facts.input), outputs))
    chosen = LOSSES[name]()
    kind = "labels" if facts.classes else "values"
    splits: Any = {"train": split.part(range(40)), "test": split}
    given = {
        "model": model,
        "loss": chosen.make(),
        "postprocess": chosen.postprocess.get(kind, lambda outputs: outputs),
        "metrics": {},
        "optimizer": optim.SGD(model.parameters(), lr=0.1),
        "optimizer_name": "sgd",
        "dataset": TinyData(splits, facts=facts),
        "settings": {"batch": 64, "epochs": 1},
    }
    return replace(tiny_job(settings=given.pop("settings")), **{**given, **changes})


def labels(size: int = SIZE, classes: int = 2) -> Any:
    return engine.arange(size, dtype=engine.int64) % classes


def seen(job: Job, group: Any = None) -> Sight:
    """What an evaluation of the test split sees."""
    split = job.dataset.splits["test"]
    look = CloseLook(job, split, "test")
    Evaluation(job, split, "test", group, look=look).run()
    job.model.eval()
    return look.finish()


def files_of(job: Job, runs: Path) -> tuple[Any, Any]:
    """evaluation.json and its tensors of a whole training."""
    run = Path(train(runs, job).run)
    record = json.loads((run / "evaluation.json").read_text(), parse_constant=pytest.fail)
    tensors = run / "evaluation.safetensors"
    return record, load_tensors(tensors) if tensors.exists() else {}


def test_all_samples_count_and_some_outputs_are_kept() -> None:
    job = job_of(FACTS, labels(), 2, metrics={"confusion": METRICS["confusion"]()})
    sight = seen(job)
    split = job.dataset.splits["test"]
    inputs, targets = split.batch(engine.arange(SIZE, dtype=engine.int64))
    with engine.no_grad():
        scores = job.model(inputs)
        losses = nn.functional.cross_entropy(scores, targets, reduction="none").tolist()
    order = sorted(range(SIZE), key=lambda i: (-losses[i], i))[: close_look.WORST]
    assert [index for index, _ in sight.worst] == order
    assert [loss for _, loss in sight.worst] == pytest.approx([losses[i] for i in order], rel=1e-5)
    evaluation = Evaluation(job, split, "test")
    evaluation.run()
    assert sight.confusion.tolist() == evaluation.tables["test.confusion"]
    assert len(sight.index) == close_look.ROWS
    assert sight.index[0] == 0
    assert {b - a for a, b in zip(sight.index, sight.index[1:], strict=False)} == {2, 3}
    assert sight.targets.tolist() == [i % 2 for i in sight.index]
    kept = [scores[i].tolist() for i in sight.index[:50]]
    assert sight.outputs[:50].tolist() == [pytest.approx(row, rel=1e-5) for row in kept]


def test_ranks_see_what_one_sees() -> None:
    alone = seen(job_of(FACTS, labels(), 2))
    jobs = iter([job_of(FACTS, labels(), 2) for _ in range(3)])
    for sight in on_ranks(3, lambda group: seen(next(jobs), group), timeout=60):
        assert sight.worst == alone.worst
        assert sight.index == alone.index
        for name in ("confusion", "outputs", "targets", "inputs", "predictions"):
            assert getattr(sight, name).tolist() == getattr(alone, name).tolist()


def test_one_output_for_two_classes_is_scores_of_both(tmp_path: Path) -> None:
    record, tensors = files_of(job_of(FACTS, labels(), 1, "bce_with_logits"), tmp_path)
    assert record["task"] == "classes"
    assert sum(map(sum, record["confusion"])) == SIZE
    assert tensors["outputs"].shape == (close_look.ROWS, 2)
    assert {one["truth"] for one in record["worst"]} <= {0, 1}
    assert all(0.5 <= one["certainty"] <= 1 for one in record["worst"])


def test_several_labels_at_once_are_values_from_0_to_1(tmp_path: Path) -> None:
    facts = replace(FACTS, classes=None, labels=(), target=(3,), values=("a", "b", "c"))
    targets = (engine.randn(500, 3) > 0).float()
    record, tensors = files_of(job_of(facts, targets, 3, "bce_with_logits"), tmp_path)
    assert (record["task"], record["outputs"], record["rows"]) == ("values", ["a", "b", "c"], 500)
    flat = [number for row in tensors["outputs"].tolist() for number in row]
    assert 0 <= min(flat) < max(flat) <= 1
    first = record["worst"][0]
    assert (len(first["truth"]), len(first["guess"]), first["certainty"]) == (3, 3, None)


def test_more_than_1000_classes_have_no_matrix(tmp_path: Path) -> None:
    facts = replace(FACTS, classes=1001, labels=())
    record, tensors = files_of(job_of(facts, labels(1200, 1001), 1001), tmp_path)
    assert "confusion" not in record
    assert record["classes"] is None
    assert record["rows"] == tensors["outputs"].shape[0] == (4 << 20) // (4 * 1001 + 8)
    assert len(record["worst"]) == close_look.WORST


def test_a_label_for_each_place_has_figures_alone(tmp_path: Path) -> None:
    facts = replace(FACTS, target=(3,))
    model = nn.Sequential(nn.Linear(2, 6), nn.Unflatten(1, (3, 2)))
    changes = {"model": model, "optimizer": optim.SGD(model.parameters(), lr=0.1)}
    targets = engine.zeros(50, 3, dtype=engine.int64)
    record, tensors = files_of(job_of(facts, targets, 6, **changes), tmp_path)
    assert (record["task"], record["samples"], record["rows"]) == ("classes", 50, 0)
    assert (record["worst"], record["pictures"], tensors) == ([], False, {})
    assert set(record["metrics"]) == {"test.loss"}


def test_outputs_that_fit_no_target_are_left_out(tmp_path: Path) -> None:
    def own(outputs: Any, targets: Any) -> Any:
        return (outputs.mean(1) - targets.reshape(-1)).square().mean()

    facts = replace(FACTS, classes=None, labels=(), target=(1,))
    record, tensors = files_of(job_of(facts, engine.randn(80, 1), 5, "mse", loss=own), tmp_path)
    assert (record["task"], record["rows"], record["worst"], tensors) == ("values", 0, [], {})


def test_large_outputs_are_not_kept_but_the_worst_are(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(close_look, "STRETCH_BYTES", 100)
    facts = replace(FACTS, classes=None, labels=(), target=(1, 4, 4), input=(1, 4, 4))
    record, tensors = files_of(job_of(facts, engine.rand(90, 1, 4, 4), 16, "mse"), tmp_path)
    assert (record["task"], record["rows"], len(record["worst"])) == ("images", 0, 24)
    assert set(tensors) == {"worst_inputs", "worst_outputs", "worst_targets"}
    assert tensors["worst_outputs"].shape == (24, 1, 4, 4)


def test_a_loss_that_is_not_finite_comes_first_and_is_null(tmp_path: Path) -> None:
    facts = replace(FACTS, classes=None, labels=(), target=(1,))
    targets = engine.randn(90, 1)
    targets[70] = math.inf
    record, _ = files_of(job_of(facts, targets, 1, "l1"), tmp_path)
    first = record["worst"][0]
    assert (first["index"], first["loss"], first["truth"]) == (70, None, None)
    assert record["metrics"]["nonfinite"] == {"test.loss": "inf"}


def test_labels_that_an_own_loss_leaves_out_are_neither_wrong_nor_counted(tmp_path: Path) -> None:
    targets = labels(200)
    targets[49] = targets[199] = -1

    def own(outputs: Any, targets: Any) -> Any:
        each = nn.functional.cross_entropy(outputs, targets.clamp(0, 1), reduction="none")
        judged = (targets >= 0).float()
        return (each * judged).sum() / judged.sum()

    record, tensors = files_of(job_of(FACTS, targets, 2, loss=own), tmp_path)
    assert sum(map(sum, record["confusion"])) == 198
    assert not {49, 199} & {one["index"] for one in record["worst"]}
    assert len(record["worst"]) == close_look.WORST
    assert tensors["targets"].tolist() == targets.tolist()


def test_a_look_that_fails_costs_no_training(tmp_path: Path, monkeypatch) -> None:
    plain = json.loads(
        (Path(train(tmp_path / "a", job_of(FACTS, labels(200), 2)).run) / "status.json").read_text()
    )

    def fail(look: CloseLook, *batch: Any) -> dict[str, Any]:
        raise ValueError("cannot look")

    monkeypatch.setattr(CloseLook, "of_batch", fail)
    notes: list[str] = []

    class Noting(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    run = Path(train(tmp_path / "b", job_of(FACTS, labels(200), 2), reporter=Noting()).run)
    status = json.loads((run / "status.json").read_text())
    for key in ("status", "metrics", "weights_sha256"):
        assert status[key] == plain[key]
    assert not (run / "evaluation.json").exists()
    begin = "warning: a report will lack what the last evaluation"
    remarks = [note for note in notes if note.startswith(begin)]
    assert remarks == [f"{begin} {word}: ValueError: cannot look" for word in ("sees", "saw")]
