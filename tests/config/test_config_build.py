"""What was planned is what is built: shapes, parameters, losses, optimizers, schedules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.config import build, load
from gradcli.config.planner import LAYERS as LAYERS_BY_NAME
from gradcli.config.tensor_spec import TensorSpec
from gradcli.train.job import Job

Write = Callable[..., Path]
LAYERS = "  - flatten\n  - linear: 16\n  - relu\n"


@pytest.fixture
def job(config_file: Write, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Job]:
    """Builds the changed base config; its data are never loaded."""
    from gradcli.data import DATASETS, LoadedData

    config_file()
    monkeypatch.setattr(
        DATASETS["fake"], "load", lambda self: LoadedData(self, self.facts(), {}, {})
    )

    def make(*changes: tuple[str, str]) -> Job:
        return build(load(config_file(*changes)))

    return make


@pytest.mark.parametrize(
    "layers",
    [
        "flatten\nlinear: 5\ntanh",
        "linear: {out: 5, bias: false}\nflatten\nsigmoid",
        "conv: {out: 4, kernel: [3, 5], padding: same, bias: false}\nrelu\nflatten",
        "conv: {out: 4, kernel: 3, stride: 2, padding: 1, dilation: 2}\nbatch_norm\nflatten",
        "conv: {out: 4, kernel: 3}\nconv: {out: 8, kernel: 3, groups: 4}\navg_pool: global",
        "max_pool: {kernel: 3, stride: 2, padding: 1}\navg_pool: [2, 4]\nflatten\nbatch_norm",
        "layer_norm\nflatten\nlayer_norm\ndropout: 0.5",
        "gelu\ngelu: {approximate: tanh}\nsoftmax\nflatten",
        "residual: [conv: {out: 1, kernel: 3, padding: 1}, relu]\nflatten",
        "residual: {layers: [linear: 5, relu], shortcut: [linear: 5]}\nflatten",
        "parallel: {branches: [[linear: 5], [linear: 7, relu], []], dim: -1}\nflatten",
        "parallel: [[max_pool: 4], [conv: {out: 3, kernel: 4, stride: 4}, batch_norm]]\nflatten",
        "parallel: {branches: [[linear: 28], []], join: add}\nflatten",
        "repeat: {times: 3, layers: [linear: 28, relu]}\nflatten",
    ],
)
def test_the_plan_is_what_is_built(
    job: Callable[..., Job], config_file: Write, layers: str
) -> None:
    change = (LAYERS, "".join(f"  - {line}\n" for line in layers.split("\n")))
    made = job(change)
    plan = load(config_file(change)).model
    x = engine.rand(2, 1, 28, 28)
    for planned, module in zip(plan, made.model, strict=True):
        x = module(x)
        assert x.shape == (2, *planned.output.shape)
        assert sum(p.numel() for p in module.parameters()) == planned.parameters


def test_text_goes_through_an_embedding_to_a_loss(job: Callable[..., Job]) -> None:
    made = job(
        (LAYERS, "  - embed: 12\n  - layer_norm\n"),
        ("$data.classes", "$data.vocab"),
        ("fake", "fake, kind: text"),
    )
    tokens = engine.randint(0, 65, (2, 8))
    loss = made.loss(made.model(tokens), tokens)
    assert loss.shape == ()
    assert 3 < loss.item() < 6  # near log 65 before training


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_recurrent_layers_give_one_tensor_to_the_next(job: Callable[..., Job], kind: str) -> None:
    made = job(
        (LAYERS, f"  - embed: 12\n  - {kind}: {{out: 6, depth: 2, bidirectional: true}}\n"),
        ("$data.classes", "$data.vocab"),
        ("fake", "fake, kind: text"),
    )
    tokens = engine.randint(0, 65, (2, 8))
    assert made.model(tokens).shape == (2, 8, 65)
    names = [name for name in made.model.state_dict() if "_l1_reverse" in name]
    assert names[0] == "1.weight_ih_l1_reverse"
    made.loss(made.model(tokens), tokens).backward()
    assert all(p.grad is not None for p in made.model.parameters())


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_last_state_has_seen_the_whole_sequence(kind: str, bidirectional: bool) -> None:
    layer = LAYERS_BY_NAME[kind]
    x = engine.randn(2, 5, 3)
    options = {"out": 4, "depth": 2, "bidirectional": bidirectional}
    every = layer.maker(TensorSpec((5, 3)), options)()
    last = layer.maker(TensorSpec((5, 3)), {**options, "last": True})()
    last.load_state_dict(every.state_dict())
    states, end = every(x), last(x)
    assert end.shape == (2, 8 if bidirectional else 4)
    assert end[:, :4].tolist() == states[:, -1, :4].tolist()
    if bidirectional:
        assert end[:, 4:].tolist() == states[:, 0, 4:].tolist()


def test_the_seed_decides_the_weights(job: Callable[..., Job]) -> None:
    def weights(*changes: tuple[str, str]) -> list[float]:
        return next(iter(job(*changes).model.parameters())).reshape(-1).tolist()

    assert weights() == weights()
    assert weights() != weights(("batch: 10", "batch: 10, seed: 2"))


@pytest.mark.parametrize(
    "optim",
    [
        "{name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-4}",
        "{name: adam, lr: 0.01, betas: [0.8, 0.9], eps: 1e-6}",
        "adamw",
    ],
)
def test_an_optimizer_of_each_kind_takes_a_step(job: Callable[..., Job], optim: str) -> None:
    made = job(("{name: sgd, lr: 0.1}", optim))
    x, labels = engine.rand(4, 1, 28, 28), engine.randint(0, 10, (4,))
    before = made.loss(made.model(x), labels)
    before.backward()
    made.optimizer.step()
    assert made.loss(made.model(x), labels).item() < before.item()


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ("constant", {0: 1.0, 19: 1.0}),
        ("{name: constant, warmup: 10}", {0: 0.1, 9: 1.0, 15: 1.0}),
        ("{name: step, at: [50%, 15], factor: 0.5}", {9: 1.0, 10: 0.5, 15: 0.25}),
        ("{name: cosine, final: 0.2}", {0: 1.0, 10: 0.6}),
        ("{name: linear, warmup: 10%}", {0: 0.5, 2: 1.0, 11: 0.5}),
        ("{name: step, every: 6, factor: 0.5}", {5: 1.0, 6: 0.5, 18: 0.125}),
        ("{name: step, every: 50%, warmup: 2}", {0: 0.5, 9: 1.0, 10: 0.1}),
        ("{name: multi_step, at: [50%, 15], factor: 0.5}", {9: 1.0, 10: 0.5, 15: 0.25}),
        ("{name: exponential, factor: 0.5, every: 25%}", {0: 1.0, 5: 0.5, 10: 0.25}),
        ("{name: polynomial, power: 2, final: 0.5, warmup: 4}", {1: 0.5, 4: 1.0, 12: 0.625}),
        ("{name: cosine, restart: 25%, stretch: 2}", {0: 1.0, 4: 0.0954915, 5: 1.0, 15: 1.0}),
        ("{name: one_cycle, rise: 0.5, start: 0.1, warmup: 0}", {0: 0.1, 9: 1.0, 19: 4e-6}),
        ("{name: plateau, warmup: 2, metric: val.accuracy}", {0: 0.5, 19: 1.0}),
        (
            "{name: sequential, at: [20%, 60%], parts: [{name: linear, final: 0.5}, constant, "
            "{name: step, at: [50%], factor: 0.25, warmup: 50%}]}",
            {0: 1.0, 2: 0.75, 4: 1.0, 11: 1.0, 12: 0.25, 15: 1.0, 16: 0.25},
        ),
    ],
)
def test_schedules_get_the_steps_of_the_run(
    job: Callable[..., Job], schedule: str, factors: dict[int, float]
) -> None:
    made = job(("{name: cosine, warmup: 5%}", schedule))
    for step, factor in factors.items():
        assert made.schedule.factor(step) == pytest.approx(factor)


def test_a_run_without_steps_is_built(job: Callable[..., Job]) -> None:
    for schedule in (
        "{name: step, at: [5%, 50%]}",
        "{name: step, every: 5%}",
        "{name: cosine, restart: 10%}",
        "{name: one_cycle}",
        "{name: sequential, at: [50%], parts: [cosine, constant]}",
    ):
        job(("epochs: 2", "epochs: 0"), ("{name: cosine, warmup: 5%}", schedule))


def test_the_job_carries_the_config(job: Callable[..., Job]) -> None:
    made = job()
    assert (made.name, made.optimizer_name, [*made.metrics]) == ("tiny", "sgd", ["accuracy"])
    assert made.resolved["optim"]["lr"] == 0.1
    assert made.sources[0][0].name == "config.yaml"
    assert made.model_layers[1].split() == ["1", "linear", "16", "16", "12,560"]


def test_a_regression_is_measured_by_squares(job: Callable[..., Job]) -> None:
    made = job(
        ("fake", "fake, kind: values"),
        ("$data.classes", "1"),
        ("cross_entropy", "mse"),
        ("[accuracy]", "[mae]"),
        ("val.accuracy", "val.mae"),
        ("test.accuracy", "test.mae"),
    )
    x, y = engine.zeros(3, 1), engine.ones(3, 1)
    assert made.loss(x, y).item() == 1.0
