"""Steps that are not finite, through the command line: each is named where it began."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from points import Ended

from gradcli.cli.main import run
from gradcli.train.checkpoint import Checkpoint, file_name, read
from gradcli.train.directory import find_checkpoint
from gradcli.train.order import epoch_order

CODE = '''\
import gradcli
from gradcli import engine
from gradcli.engine import nn

BACKWARD = {
    "sqrt": lambda s: (s - 1.0).sqrt(),
    "log": lambda s: (s * 1e-39).log(),
    "div": lambda s: 1e-30 / (s * 1e-36),
    "pow": lambda s: (s - 1.0).pow(0.5),
    "acos": lambda s: s.acos(),
}


@gradcli.dataset
class Planted:
    """Two clouds; one sample may hold something else."""

    samples: int = 64
    at: int = -1
    value: str = "nan"
    scale: float = 1.0
    image: bool = False

    def splits(self) -> dict[str, tuple[engine.Tensor, engine.Tensor]]:
        engine.manual_seed(3)
        label = engine.randint(0, 2, (self.samples,))
        x = engine.randn(self.samples, 16) + label.to(engine.float32).reshape(-1, 1)
        x = x * self.scale
        if self.at >= 0:  # behind the last: all of them
            x[self.at if self.at < self.samples else slice(None), 5] = float(self.value)
        if self.image:
            x = x.reshape(-1, 1, 4, 4)
        return {"train": (x, label), "val": (engine.randn(8, *x.shape[1:]), label[:8])}


@gradcli.layer
class Steep(nn.Module):
    """x plus a function of a weight, finite itself, whose slope is not."""

    def __init__(self, shape: tuple[int, ...], op: str) -> None:
        super().__init__()
        self.op = op
        self.weight = nn.Parameter(engine.ones(shape[-1]))

    def forward(self, x: engine.Tensor) -> engine.Tensor:
        return x + BACKWARD[self.op](self.weight)


@gradcli.layer
class Root(nn.Module):
    """x plus sqrt(weight |x5 - 77|), whose slope is not finite where x5 is 77."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(engine.ones(1))

    def forward(self, x: engine.Tensor) -> engine.Tensor:
        return x + (self.weight * (x[:, 5:6] - 77.0).abs()).sqrt()


@gradcli.layer
class OwnSoftmax(nn.Module):
    """exp(100 x) / sum: overflows where softmax itself would not."""

    def __init__(self, shape: tuple[int, ...], scale: float = 100.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: engine.Tensor) -> engine.Tensor:
        grown = (x * self.scale).exp()
        return grown / grown.sum(-1, keepdim=True)


@gradcli.loss
class LogLoss(nn.Module):
    targets = "labels"

    def forward(self, outputs: engine.Tensor, targets: engine.Tensor) -> engine.Tensor:
        return -(outputs.relu() * 0.0).log().mean() + outputs.sum() * 0.0 + targets.sum() * 0.0
'''
CONFIG = """\
gradcli: 1
name: planted
code: planted.py
data: {{name: planted, {data}}}
model: {model}
loss: {loss}
metrics: [accuracy]
optim: {{name: sgd, lr: 0.01}}
train: {{steps: 20, batch: 8, seed: 5, log_every: 1, checkpoint_every: 5{train}}}
"""
Command = Callable[..., Ended]


@pytest.fixture
def gradcli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    Path("planted.py").write_text(CODE)

    def call(*arguments: str) -> Ended:
        capfd.readouterr()
        code = run(list(arguments))
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ended(code, out, err)

    return call


def written(
    model: str = "[linear: 8, relu, linear: 2]",
    data: str = "samples: 64",
    loss: str = "cross_entropy",
    train: str = "",
) -> str:
    """A config's path."""
    text = CONFIG.format(model=model, data=data, loss=loss, train=train and f", {train}")
    Path("planted.yaml").write_text(text)
    return "planted.yaml"


def log() -> list[dict[str, Any]]:
    lines = (only_run() / "log.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def only_run() -> Path:
    (found,) = Path("runs/planted").iterdir()
    return found


HUGE = "{name: constant, val: 1e38}"
ZERO = "{name: constant, val: 0}"
FORWARD: dict[str, tuple[dict[str, str], str]] = {
    "NaN in a sample": (
        {"data": "at: 3, value: nan"},
        r"it is in the data: the inputs of the batch have 1 of 128 values that are not finite, in "
        r"training samples 3 \(counted from 0\); the first to read it is layer 0 linear 8, op "
        r"linear, forward",
    ),
    "infinity in a sample": (
        {"data": "at: 3, value: -inf"},
        r"the inputs of the batch have 1 of 128 .* samples 3 .* layer 0 linear 8, op linear",
    ),
    "a weight": (
        {"model": f"[linear: 8, linear: {{out: 8, init: {HUGE}}}, linear: 2]"},
        r"loss of step 1 is nan; it began in layer 1 linear 8, op linear, forward: \d+ of 64",
    ),
    "a convolution": (
        {
            "data": "image: true",
            "model": "[conv: {out: 4, kernel: 3}, relu, "
            f"conv: {{out: 4, kernel: 1, init: {HUGE}}}, flatten, linear: 2]",
        },
        r"it began in layer 2 conv 4, op conv2d, forward: \d+ of \d+ values",
    ),
    "before a batch norm": (
        {"model": f"[linear: {{out: 8, init: {HUGE}}}, batch_norm, relu, linear: 2]"},
        r"it began in layer 0 linear 8, op linear, forward",
    ),
    "a batch norm": (
        {"model": f"[linear: {{out: 8, init: {ZERO}}}, batch_norm: {{eps: 1e-80}}, linear: 2]"},
        r"it began in layer 1 batch_norm.*, op batch_norm, forward: \d+ of \d+ values",
    ),
    "a softmax by hand": (
        {"model": "[own_softmax: {scale: 100}, linear: 2]"},
        r"it began in layer 0 own_softmax.*, op exp, forward: \d+ of 128 .* \|input\| is [1-9]\d\d",
    ),
    "attention": (
        {"model": f"[reshape: [2, 8], attention: {{heads: 2, init: {HUGE}}}, flatten, linear: 2]"},
        r"it began in layer 1 attention.*, op \w+, forward",
    ),
    "the loss": (
        {"loss": "log_loss"},
        r"it began in the loss, op log, forward: 16 of 16 values are not finite, .* \|input\| is 0",
    ),
}


@pytest.mark.parametrize("case", FORWARD)
def test_an_overflow_forward_is_named_with_layer_op_and_direction(
    gradcli: Command, case: str
) -> None:
    parts, sentence = FORWARD[case]
    ended = gradcli("train", written(**parts))
    assert ended.code == 5
    assert "error[E501]" in ended.err
    assert re.search(sentence, " ".join(ended.err.split())), ended.err
    assert "nothing of this step was applied" in ended.err


@pytest.mark.parametrize("train", ["", "clip: 1.0", "on_nonfinite: skip", "ema: 0.9"])
@pytest.mark.parametrize("op", ["sqrt", "log", "div", "pow", "acos"])
def test_an_overflow_on_the_way_back_alone_is_named(gradcli: Command, op: str, train: str) -> None:
    model = f"[linear: 8, steep: {{op: {op}}}, linear: 2]"
    ended = gradcli("train", written(model=model, train=train))
    assert ended.code == 5
    text = " ".join(ended.err.split())
    assert re.search(r"the gradient norm of step 1 is (nan|inf), with a loss of \d", text), text
    assert re.search(rf"it began in layer 1 steep.*, op {op}, backward: \d of 8 values", text), text


# One sample of 800 is NaN: that of step 50 of 100.
NORM = "[linear: {out: 8, bias: false}, batch_norm, relu, linear: 2]"
POISONED = int(epoch_order(5, 0, 800)[49 * 8 + 3].item())
LONG = ("-s", "train.steps=100", "-s", "train.checkpoint_every=1", "-s", "train.keep=200")
SKIP = ("-s", "train.on_nonfinite=skip")


def poisoned(**parts: str) -> str:
    return written(model=NORM, data=f"samples: 800, at: {POISONED}", **parts)


def stored(step: int) -> Checkpoint:
    return read(only_run() / "checkpoints" / file_name(step))


def same(one: Checkpoint, other: Checkpoint) -> bool:
    return {name: bytes(t.data) for name, t in one.tensors.items()} == {
        name: bytes(t.data) for name, t in other.tensors.items()
    }


@pytest.mark.parametrize(
    "more",
    ["", "micro_batch: 3", "capture: false", "precision: bf16", "clip: 0.5", "clip_value: 0.1"],
)
def test_a_step_that_is_skipped_changes_nothing_but_the_step(gradcli: Command, more: str) -> None:
    train = ", ".join(["ema: 0.9", *([more] if more else [])])
    config = poisoned(train=train)
    ended = gradcli("train", config, *LONG, *SKIP, "-s", "optim.name=adam")
    assert ended.code == 0, ended.err
    assert "skipped: 1 of 100 steps was not finite" in ended.out
    assert "skipped step 50: the loss of step 50 is nan" in ended.err
    assert "eagerly" not in ended.err
    assert same(stored(49), stored(50))
    assert not same(stored(50), stored(51))
    meta = stored(50).meta
    assert (meta.step, meta.skipped, meta.skipped_in_a_row) == (50, 1, 1)
    assert (stored(51).meta.skipped, stored(51).meta.skipped_in_a_row) == (1, 0)
    steps = [line for line in log() if line["event"] == "step"]
    assert [line["step"] for line in steps if "skipped" in line] == [50]
    assert f"training samples {POISONED} " in steps[49]["skipped"]
    assert len(steps) == 100


def test_captured_and_eager_steps_skip_alike(gradcli: Command) -> None:
    found = []
    for capture in ("true", "false"):
        ended = gradcli(
            "train", poisoned(train=f"ema: 0.9, capture: {capture}"), *LONG, *SKIP, "--json"
        )
        found.append(ended.json["weights_sha256"])
    assert found[0] == found[1]


def test_a_resume_before_and_behind_a_skipped_step_has_the_same_bits(gradcli: Command) -> None:
    config = poisoned(train="ema: 0.9")
    schedule = ("-s", "schedule=cosine")
    whole = gradcli("train", config, *LONG, *SKIP, *schedule, "--json").json
    assert whole["skipped"] == 1
    for stop in (30, 49, 50, 51):
        shutil.rmtree("runs")
        gradcli("train", config, *LONG, *SKIP, *schedule, "--max-steps", str(stop))
        ended = gradcli("resume", "last", "--json")
        assert ended.json["weights_sha256"] == whole["weights_sha256"]
        assert ended.json["skipped"] == 1


def test_ten_skipped_steps_in_a_row_end_the_run_as_one_does_elsewhere(gradcli: Command) -> None:
    ended = gradcli("train", written(data="at: 64"), *SKIP)
    assert ended.code == 5
    assert "loss of step 10 is nan; it is in the data" in " ".join(ended.err.split())
    assert "look at these samples\n" in ended.err
    assert "or leave such steps out" not in ended.err
    lines = log()
    assert [line["step"] for line in lines if "skipped" in line] == [*range(1, 10)]
    assert (lines[-1]["step"], lines[-1]["loss"]) == (10, None)
    meta = find_checkpoint(only_run(), "last")[1].meta
    assert (meta.step, meta.skipped, meta.skipped_in_a_row) == (9, 9, 9)
    again = gradcli("resume", "last")
    assert again.code == 5
    assert "loss of step 10 is nan" in again.err


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        ((), "a lower rate or a clip: gradcli resume RUN -s optim.lr=1e+29 -s train.clip=1.0\n"),
        (("-s", "train.clip=2"), "a lower rate: gradcli resume RUN -s optim.lr=1e+29\n"),
    ],
)
def test_a_cure_is_none_that_the_run_has_already(gradcli: Command, words, cure: str) -> None:
    ended = gradcli("train", written(), "-s", "optim.lr=1e30", *words)
    assert ended.code == 5
    assert f"go on from the last checkpoint with {cure}" in ended.err
    assert "or leave such steps out: train.on_nonfinite: skip" in ended.err


def test_a_stop_leaves_a_checkpoint_as_before_the_step(gradcli: Command) -> None:
    config = poisoned()
    more = ("-s", "train.steps=100", "-s", "optim.name=adam")
    gradcli("train", config, *more, "--max-steps", "49")
    before = stored(49)
    shutil.rmtree("runs")
    ended = gradcli("train", config, *more)
    assert ended.code == 5
    assert "the loss of step 50 is nan" in ended.err
    assert "gradient norms before: " in ended.err
    assert same(stored(49), before)
    assert (log()[-1]["step"], log()[-1]["loss"]) == (50, None)
    again = gradcli("resume", "last")
    assert again.code == 5
    assert "the loss of step 50 is nan" in again.err
    assert gradcli("resume", "last", *SKIP).code == 0
    [fork] = json.loads((only_run() / "manifest.json").read_text())["forks"]
    assert (fork["step"], fork["new"]) == (49, {"train.on_nonfinite": "skip"})


@pytest.mark.parametrize("every", [20, 100])
def test_gradients_that_nobody_looked_at_are_found_from_the_last_checkpoint(
    gradcli: Command, every: int
) -> None:
    data = f"samples: 800, at: {POISONED}, value: '77'"
    config = written(data=data, model="[root, linear: 8, batch_norm, linear: 2]", train="ema: 0.9")
    more = ("-s", "train.steps=100", "-s", f"train.checkpoint_every={every}")
    ended = gradcli("train", config, *more, "-s", "optim.name=adam")
    text = " ".join(ended.err.split())
    assert ended.code == 5
    begin = 40 if every == 20 else 0
    assert f"making the steps behind {begin} again" in text
    assert "error[E501] the gradient norm of step 50 is nan, with a loss of " in text
    assert "it began in layer 0 root, op sqrt, backward: 1 of 8 values" in text
    steps = [line for line in log() if line["event"] == "step"]
    assert (steps[-1]["step"], steps[-1]["loss"]) == (51, None)
    if every == 20:
        assert find_checkpoint(only_run(), "last")[1].meta.step == 40
        change = ("-s", "train.on_nonfinite=skip", "--json")
        assert gradcli("resume", "last", *change).json["skipped"] == 1


def test_the_running_statistics_are_put_back_behind_an_overflow(gradcli: Command) -> None:
    model = f"[linear: {{out: 8, init: {HUGE}}}, batch_norm, relu, linear: 2]"
    assert gradcli("train", written(model=model), *SKIP).code == 5
    statistics = stored(5).tensors["model.1.running_var"]
    assert memoryview(statistics.data).cast("B").cast("f").tolist() == [1.0] * 8
