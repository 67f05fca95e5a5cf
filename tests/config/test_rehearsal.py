"""A rehearsal says to the byte what a run holds: against real trainings, as they allocate."""

from __future__ import annotations

import gc
import random
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trusting import load

from gradcli import engine
from gradcli.config import Config, build
from gradcli.config.rehearsal import RunMemory, Usage, rehearse
from gradcli.data import LoadedData, csv, files
from gradcli.data.prepared.mapped import mappings
from gradcli.engine.device import cpu, meta, scope
from gradcli.engine.device.peak import Peak
from gradcli.engine.program.entry import Entry
from gradcli.engine.program.replay import Program
from gradcli.errors import DeviceError
from gradcli.train.elsewhere import SilentReporter
from gradcli.train.launch import start
from gradcli.train.ranks import Ranks
from gradcli.train.run_context import RunContext
from gradcli.train.signals import Signals

CONFIGS = Path(__file__).parents[2] / "configs"
SHIPPED = sorted(CONFIGS.glob("*.yaml"))
STEPS = 5
WAYS = {
    "micro-batches": ("train.micro_batch=24",),
    "bfloat16": ("train.precision=bf16",),
    "average": ("train.ema=0.99", "train.clip=1.0"),
    "eager": ("train.capture=false",),
}


def short(path: Path, changes: tuple[str, ...] = ()) -> Config:
    """A run of five steps, an evaluation and the last figures."""
    config = load(path, changes, room=None)
    train = replace(config.train, epochs=None, steps=STEPS)
    return replace(config, train=train, steps=STEPS)


def borrowed(data: LoadedData) -> int:
    """Bytes of the data that lie in memory of Python's, which the engine only looks at."""
    tensors: dict[int, Any] = {}
    for split in data.splits.values():
        stored = getattr(split, "plain", split)
        for name in ("inputs", "targets", "tokens", "rows", "values"):
            if getattr(stored, name, None) is not None:
                storage = getattr(stored, name).array.storage
                tensors[id(storage)] = storage
        stretches = getattr(stored, "stretches", None)
        for one in (stretches.ends, stretches.jumps) if stretches else ():
            tensors[id(one)] = one.array.storage
    mapped = [range(one.address, one.address + one.length) for one in mappings()]
    places = ((cpu.address(one), one) for one in tensors.values())
    in_memory = [one for place, one in places if not any(place in some for some in mapped)]
    return sum(one.nbytes for one in in_memory if one.owner is not None)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Config], Usage]:
    """Trains, and gives the most bytes that were in use."""

    def train(config: Config) -> Usage:
        peak = Peak()
        learning: list[int] = []
        replay, prove = Entry.steps, Program.prove

        def steps(self: Entry, program: Any, *rest: Any) -> Any:
            if not learning and program.grads:
                learning.append(peak.restart())
            return replay(self, program, *rest)

        def proven(self: Program) -> None:
            prove(self)
            peak.look()  # C has taken the threads' scratch

        monkeypatch.setattr(Entry, "steps", steps)
        monkeypatch.setattr(Program, "prove", proven)
        # A clock decides how many steps are made in one go, and so how many numbers come back.
        monkeypatch.setattr(Ranks, "steps_left", lambda self, step: STEPS)
        config.data.load()  # takes what was read with the config; else it is given back below
        gc.collect()
        gc.disable()
        try:
            with peak:
                job = build(config)
                peak.restart()  # what reading the files took is given back
                context = RunContext([], "cpu", cpu.threads(), "")
                start(job, tmp_path, context, SilentReporter(), Signals())
        finally:
            gc.enable()
        data = borrowed(job.dataset)
        return Usage((learning or [peak.most])[0] + data, peak.most + data)

    return train


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_shipped_config_holds_what_its_rehearsal_says(
    path: Path, trained: Callable[[Config], Usage]
) -> None:
    config = short(path)
    assert rehearse(config).train == trained(config)


@pytest.mark.parametrize("way", WAYS)
def test_it_does_however_it_is_trained(way: str, trained: Callable[[Config], Usage]) -> None:
    config = short(CONFIGS / "penguins.yaml", WAYS[way])
    assert rehearse(config).train == trained(config)


MAPPED = {
    "arrays": """\
data: {name: npy, inputs: x.npy, targets: y.npy, split: {train: 80%, val: 20%}}
model: [linear: 8, relu, linear: $data.classes]
loss: cross_entropy
""",
    "tokens": """\
data: {name: tokens, file: part*.bin, vocab: 300, context: 6, stride: 2}
model: [embed: 8, gru: 8, linear: $data.vocab]
loss: cross_entropy
""",
    "table": """\
data: {name: csv, file: day*.csv, target: y, task: regression, cache: kept}
model: [linear: 8, relu, linear: 1]
loss: mse
""",
}
MAPPED["series"] = (
    MAPPED["table"].replace("cache", "window: 5, cache").replace("[linear", "[flatten, linear")
)
ENDING = "name: it\nmetrics: []\noptim: {name: adam, lr: 0.01}\ntrain: {steps: 9, batch: 8}\n"


def write_files(folder: Path) -> None:
    """Arrays of 60 samples, three shards of tokens, two tables of 40 rows."""
    draw = random.Random(1)
    for name, kind, shape, numbers in (
        ("x", "<f4", (60, 5), array("f", [draw.random() for _ in range(300)])),
        ("y", "<i8", (60,), array("q", [draw.randrange(3) for _ in range(60)])),
    ):
        text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117)
        head = b"\x93NUMPY\1\0" + (118).to_bytes(2, "little") + text.encode() + b"\n"
        (folder / f"{name}.npy").write_bytes(head + numbers.tobytes())
    for name in "abc":
        tokens = array("H", [draw.randrange(300) for _ in range(90)])
        (folder / f"part{name}.bin").write_bytes(tokens.tobytes())
    for day in range(2):
        lines = [f"{draw.random()},{draw.random()},{draw.random()}" for _ in range(40)]
        (folder / f"day{day}.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")


@pytest.mark.parametrize("mapped", [False, True], ids=["small", "mapped"])
@pytest.mark.parametrize("kind", MAPPED)
def test_it_does_wherever_its_data_lies(
    kind: str,
    mapped: bool,
    trained: Callable[[Config], Usage],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(files, "LARGE", 0 if mapped else files.LARGE)
    monkeypatch.setattr(csv, "small", lambda *paths: not mapped)
    write_files(tmp_path)
    (tmp_path / "it.yaml").write_text(f"gradcli: 1\n{MAPPED[kind]}{ENDING}")
    config = short(tmp_path / "it.yaml")
    memory = rehearse(config)
    assert (memory.mapped > 0) is (mapped or kind == "tokens")
    assert memory.train == trained(config)


def test_a_step_that_reads_values_has_the_reason_of_capture(
    config_file: Callable[..., Path], curious_code: str
) -> None:
    changes = ("name: tiny", f"name: tiny\ncode: [{curious_code}]"), ("  - relu", "  - curious")
    with pytest.raises(DeviceError, match=r"the step reads the values of a tensor \(item, "):
        rehearse(load(config_file(*changes), room=None))


def test_a_rehearsal_leaves_nothing_behind(config_file: Callable[..., Path]) -> None:
    config = load(config_file(), room=None)
    engine.manual_seed(3)
    engine.rand(2)
    gc.collect()
    state, before = engine.get_rng_state().tolist(), list(scope.devices)
    gc.disable()
    try:
        first: RunMemory = rehearse(config)
        assert scope.devices == before and meta.DEVICE.allocated == 0 and not meta.DEVICE.blank
    finally:
        gc.enable()
    assert engine.get_rng_state().tolist() == state and cpu.looking == []
    assert rehearse(config) == first


def test_prediction_and_evaluation_hold_no_gradients() -> None:
    found = rehearse(load(CONFIGS / "mnist_deep.yaml", room=None))
    assert found.eval is not None
    assert found.predict.most < found.eval.most < found.train.most


def test_more_threads_hold_more_scratch() -> None:
    config, threads = load(CONFIGS / "penguins.yaml", room=None), cpu.threads()
    try:
        cpu.set_threads(1)
        one = rehearse(config).train
        cpu.set_threads(2)
        assert rehearse(config).train.then > one.then
        one_on_gpu = rehearse(config, device="cuda")
        cpu.set_threads(1)
        assert rehearse(config, device="cuda") == one_on_gpu
        assert one_on_gpu.train.then < one.then
    finally:
        cpu.set_threads(threads)
