"""The memory of a training, known before its first step: against the step as it is captured."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rank_threads import Network, ThreadGroup, on_ranks
from trusting import load

from gradcli import engine
from gradcli.config import build
from gradcli.config.memory import TrainingMemory, program_memory
from gradcli.config.room import Room
from gradcli.data import LoadedData
from gradcli.engine import distributed
from gradcli.engine.device import meta, scope
from gradcli.engine.distributed import ALONE, Group
from gradcli.engine.distributed.exact import width
from gradcli.errors import ErrorGroup, OptionError
from gradcli.train.division import divide_batches
from gradcli.train.job import Job
from gradcli.train.order import Order
from gradcli.train.step import TrainingStep, saved_buffers

CONFIGS = Path(__file__).parents[2] / "configs"
SHIPPED = sorted(CONFIGS.glob("*.yaml"))
WAYS = {
    "micro-batches": ("train.micro_batch=24",),
    "bfloat16": ("train.precision=bf16",),
    "tf32": ("train.precision=tf32",),
    "clip": ("train.clip=1.0", "train.clip_value=0.5"),
    "average": ("train.ema=0.99",),
    "all": ("train.micro_batch=24", "train.precision=bf16", "train.clip=1.0", "train.ema=0.99"),
    "mixup": ("data.augment=[crop, hflip, cutout, mixup]",),
    "padded": ("data.size=32", "data.normalize=true", "data.augment=[rotate]"),
    "sgd": ("optim={name: sgd, lr: 0.1, momentum: 0.9}",),
}


def captured(job: Job, group: Group = ALONE) -> int:
    """The arena of the job's step, after three of them."""
    said: list[str] = []
    split = job.dataset.splits["train"]
    batch = min(job.settings.batch, split.size)
    step = TrainingStep(job, split, said.append, group)
    order = Order(1, batch, split.size, split.size // batch)
    for done in range(3):
        step.run(done + 1, order.rows(done, 1))
    assert said == []
    [program] = step.captured.programs
    return program.arena_bytes


def expected(job: Job) -> TrainingMemory:
    """The arena of the job's step, and what it was made of."""
    arena = captured(job)
    kept = [*job.model.state_dict().values(), *job.optimizer.state_tensors().values()]
    kept += saved_buffers(job.model)  # as they were before the step
    kept += [p.grad for p in job.model.parameters() if p.grad is not None]
    return TrainingMemory(sum(x.numel() * x.dtype.size for x in kept), arena)


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_the_arena_of_a_shipped_config_is_that_of_its_captured_step(path: Path) -> None:
    config = load(path)
    found = config.memory
    assert found is not None
    job = build(config)
    known = expected(job)
    assert found.arena == known.arena > 0
    data = sum(_bytes(job.dataset, name) for name in job.dataset.splits)
    order = 8 * job.dataset.splits["train"].size
    # A few numbers more: indices and rates of a step, the loss, where learning rates lie.
    assert 0 <= found.persistent - known.persistent - data - order < 4096


def _bytes(dataset: LoadedData, name: str) -> int:
    split = dataset.splits[name]
    stored = getattr(split, "plain", split)
    return sum(x.numel() * x.dtype.size for x in (stored.inputs, stored.targets))


@pytest.mark.parametrize("way", WAYS)
def test_it_is_that_of_the_step_however_it_is_made(way: str) -> None:
    config = load(CONFIGS / "mnist_cnn.yaml", WAYS[way])
    assert config.memory is not None
    assert config.memory.arena == captured(build(config))


TEXT = """\
gradcli: 1
data: {name: text, file: text.txt, context: 8}
model: [embed: {dim: 8, name: words}, lstm: 8, linear: {out: $data.vocab, tied: words}]
loss: cross_entropy
optim: {name: adamw, lr: 1e-3}
train: {steps: 10, batch: 4}
"""


def test_a_text_and_a_shared_weight(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("what is written is read again " * 20)
    (tmp_path / "config.yaml").write_text(TEXT)
    config = load(tmp_path / "config.yaml")
    gc.collect()
    assert meta.DEVICE not in scope.devices  # a plan holds no weight that others share
    assert config.memory is not None
    assert config.memory.arena == captured(build(config))


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_what_is_computed_again_is_planned_as_it_is_captured(
    tmp_path: Path, precision: str
) -> None:
    (tmp_path / "text.txt").write_text("what is written is read again " * 20)
    arenas = []
    for again in ("false", "true"):
        block = "transformer: {heads: 2, dropout: 0.1}"
        stack = f"repeat: {{times: 6, recompute: {again}, layers: [{block}]}}"
        path = tmp_path / f"{again}.yaml"
        path.write_text(TEXT.replace("lstm: 8", f"positions, {stack}"))
        config = load(path, [f"train.precision={precision}"])
        assert config.memory is not None
        assert config.memory.arena == captured(build(config))
        arenas.append(config.memory.arena)
    assert arenas[1] < arenas[0] / 2


def test_nothing_is_left_behind(config_file: Callable[..., Path]) -> None:
    config = load(config_file(), room=None)
    engine.manual_seed(3)
    engine.rand(2)
    state, before = engine.get_rng_state().tolist(), list(scope.devices)
    gc.collect()
    gc.disable()
    try:
        first = program_memory(config)
        assert scope.devices == before and meta.DEVICE.allocated == 0
    finally:
        gc.enable()
    assert engine.get_rng_state().tolist() == state
    assert program_memory(config) == first


def test_a_config_that_is_not_trained_may_need_any_memory(config_file: Callable[..., Path]) -> None:
    assert load(config_file(), room=None).memory is None


def test_own_code_that_looks_at_numbers_leaves_it_unknown(
    config_file: Callable[..., Path], curious_code: str
) -> None:
    changes = ("name: tiny", f"name: tiny\ncode: [{curious_code}]"), ("  - relu", "  - curious")
    assert load(config_file(*changes)).memory is None


def test_the_arena_grows_with_the_batch(config_file: Callable[..., Path]) -> None:
    config = load(config_file())
    larger = replace(config, train=replace(config.train, batch=20))
    assert config.memory is not None
    assert program_memory(larger).arena > config.memory.arena


@pytest.mark.parametrize("change", [(), ("train.micro_batch=24",)])
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_rank_plans_its_own_parts_and_the_rows_of_the_sum(
    ranks: int, change: tuple[str, ...]
) -> None:
    config = load(CONFIGS / "mnist_cnn.yaml", change)
    network = Network(ranks)
    groups = [ThreadGroup(network, rank) for rank in range(ranks)]
    plans = [program_memory(config, group) for group in groups]
    jobs = [divide_batches(build(config), ranks, lambda _: None) for _ in groups]

    def arena(group: Group) -> int:
        return captured(jobs[group.rank], group)

    assert [one.arena for one in plans] == on_ranks(ranks, arena)
    assert config.memory is not None and plans[-1].arena < config.memory.arena


def test_a_rank_whose_draws_begin_later_is_planned_too() -> None:
    config = load(CONFIGS / "mnist_deep.yaml")
    assert config.memory is not None
    assert program_memory(config, ThreadGroup(Network(2), 1)).arena < config.memory.arena


def test_the_rows_of_two_ranks_are_planned_in_place_of_gradients() -> None:
    """Its own row, half the other's, and the sum, whose views the gradients are."""
    config = load(CONFIGS / "mnist_cnn.yaml")
    alone, rank = program_memory(config), program_memory(config, ThreadGroup(Network(2), 1))
    count = sum(layer.parameters for layer in config.model)
    rows = 4 * (2 * (count + 2) + width(count + 2, 2) - count)
    assert 0 <= rank.persistent - alone.persistent - rows < 64


def test_parts_of_one_sample_are_left_to_be_refused_in_the_words_of_ranks(
    config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch norm itself says what is wrong with them on one rank."""
    path = config_file(("  - relu", "  - batch_norm\n  - relu"), ("batch: 10", "batch: 2"))
    with pytest.raises(OptionError, match="needs more than 1 value"):
        load(path, ["train.micro_batch=1"])
    monkeypatch.setattr(distributed, "group", lambda: ThreadGroup(Network(2), 0))
    assert load(path).memory is None  # E802 comes with the job


def test_what_fits_on_ranks_only_is_not_refused_there(monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(CONFIGS / "mnist_cnn.yaml", ["train.batch=1024"], room=None)
    needed = [program_memory(config, group).total for group in (ALONE, ThreadGroup(Network(2), 0))]
    assert needed[1] < needed[0]
    room = Room("this machine", lambda: needed[1])
    with pytest.raises(ErrorGroup, match=r"training needs .*, this machine has"):
        load(CONFIGS / "mnist_cnn.yaml", ["train.batch=1024"], room=room)
    monkeypatch.setattr(distributed, "group", lambda: ThreadGroup(Network(2), 0))
    assert load(CONFIGS / "mnist_cnn.yaml", ["train.batch=1024"], room=room).memory is not None
