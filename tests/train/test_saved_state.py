"""save_state and load_state: a loop goes on with the bits of the one that was left alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from rank_threads import on_ranks

from gradcli import engine, load_tensors, save_tensors
from gradcli.data.loader import DataLoader, TensorDataset
from gradcli.engine import nn, optim
from gradcli.engine.distributed import ALONE, Group
from gradcli.engine.nn import functional as F
from gradcli.errors import CheckpointError, OptionError
from gradcli.train import saved_state
from gradcli.train.accelerator import Accelerator
from gradcli.train.state import weights_sha256

ROWS = engine.rand(60, 4, generator=engine.Generator(1))
LABELS = engine.randint(0, 2, (60,), generator=engine.Generator(2))
LAYOUTS = [(1, 4), (2, 2), (4, 1)]


class Course:
    """A loop of eight updates, of which the fifth begins the second epoch."""

    def __init__(self, group: Group, steps: int, seed: int = 1) -> None:
        self.accelerator = Accelerator(steps, group=group)
        model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
        generator = engine.Generator(seed)
        with engine.no_grad():
            for one in model.parameters():
                one.copy_(engine.rand(one.shape, generator=generator) - 0.5)
        adam = optim.Adam(model.parameters(), lr=0.05)
        self.model, self.adam, self.schedule, self.loader = self.accelerator.prepare(
            model,
            adam,
            optim.lr_scheduler.StepLR(adam, 3, gamma=0.5),
            DataLoader(TensorDataset(ROWS, LABELS), 4, shuffle=True, seed=seed and 3),
        )

    def go_on(self, updates: int, save: Path | None = None) -> list[Any]:
        """Train until so many updates were made, and save there."""
        while self.accelerator.updates < updates:
            for x, y in self.loader:
                self.accelerator.backward(F.cross_entropy(self.model(x), y))
                self.adam.step()
                self.schedule.step()
                self.adam.zero_grad()
                if self.accelerator.sync_grad and self.accelerator.updates == updates:
                    break
        if save is not None:
            self.accelerator.save_state(save)
        return [weights_sha256(self.model), self.schedule.get_last_lr()]


@pytest.mark.parametrize("before", LAYOUTS)
@pytest.mark.parametrize("after", LAYOUTS)
def test_any_number_of_ranks_goes_on_with_the_bits_of_the_one_left_alone(
    before: tuple[int, int], after: tuple[int, int], tmp_path: Path
) -> None:
    expected = Course(ALONE, 4).go_on(8)

    def resumed(group: Group) -> list[Any]:
        course = Course(group, after[1], seed=9)
        course.loader.generator.manual_seed(3)
        course.accelerator.load_state(tmp_path)
        assert course.accelerator.updates == 6
        return course.go_on(8)

    on_ranks(before[0], lambda group: Course(group, before[1]).go_on(6, tmp_path))
    assert on_ranks(after[0], resumed) == [expected] * after[0]


def test_rank_0_alone_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = []

    def counted(*arguments: Any) -> None:
        writes.append(arguments)
        save_tensors(*arguments)

    monkeypatch.setattr(saved_state, "save_tensors", counted)
    on_ranks(3, lambda group: Course(group, 1).go_on(1, tmp_path))
    assert len(writes) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == [saved_state.FILE]


def test_the_file_has_all_that_a_loop_goes_on_with(tmp_path: Path) -> None:
    Course(ALONE, 4).go_on(6, tmp_path)
    tensors = load_tensors(tmp_path / saved_state.FILE)
    assert {"model.0.weight", "optimizer.exp_avg.0", "optimizer.step.3"} < set(tensors)
    numbers = json.loads(tensors.metadata[saved_state.KEY])
    assert numbers["updates"] == 6
    assert numbers["loaders"] == [{"seed": 3, "epoch": 1, "samples": 32}]
    assert numbers["schedulers"][0]["last_epoch"] == 6
    assert numbers["optimizers"][0][0]["lr"] == pytest.approx(0.0125)


def test_the_default_generator_goes_on_as_well(tmp_path: Path) -> None:
    engine.manual_seed(11)
    course = Course(ALONE, 4)
    engine.rand(3)
    course.accelerator.save_state(tmp_path)
    following = engine.rand(2).tolist()
    engine.manual_seed(5)
    course.accelerator.load_state(tmp_path)
    assert engine.rand(2).tolist() == following
    assert engine.default_generator.initial_seed() == 11


def test_within_an_update_nothing_is_saved(tmp_path: Path) -> None:
    course = Course(ALONE, 4)
    x, y = next(iter(course.loader))
    course.accelerator.backward(F.cross_entropy(course.model(x), y))
    with pytest.raises(OptionError, match="within an update; save where sync_grad is true"):
        course.accelerator.save_state(tmp_path)
    assert not list(tmp_path.iterdir())


def spoil(path: Path, change: str, value: object) -> None:
    tensors = load_tensors(path)
    numbers = json.loads(tensors.metadata[saved_state.KEY])
    numbers[change] = value
    save_tensors(path, tensors, {saved_state.KEY: json.dumps(numbers)})


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("format", 2, "format 2, this gradcli reads 1"),
        ("loaders", [], "has the state of 0 loaders, prepared is 1"),
        ("loaders", 3, "unreadable metadata"),
        ("generator", [1], "unreadable metadata"),
        ("updates", -1, "unreadable metadata: counts"),
        ("updates", math.pi, "unreadable metadata: counts"),
    ],
)
def test_metadata_that_is_no_state_is_refused(
    name: str, value: object, why: str, tmp_path: Path
) -> None:
    course = Course(ALONE, 4)
    course.go_on(2, tmp_path)
    spoil(tmp_path / saved_state.FILE, name, value)
    before = weights_sha256(course.model)
    with pytest.raises(CheckpointError, match=why):
        course.accelerator.load_state(tmp_path)
    assert weights_sha256(course.model) == before


def test_a_state_of_another_model_is_refused_on_all_ranks_and_nothing_is_copied(
    tmp_path: Path,
) -> None:
    Course(ALONE, 4).go_on(2, tmp_path)

    def task(group: Group) -> bool:
        accelerator = Accelerator(group=group)
        model = accelerator.prepare(nn.Linear(4, 6))
        before = weights_sha256(model)
        with pytest.raises(CheckpointError, match="1 optimizer"):
            accelerator.load_state(tmp_path)
        accelerator.prepare(optim.Adam(model.parameters()))
        return weights_sha256(model) == before

    assert on_ranks(2, task) == [True, True]
    course = Course(ALONE, 4)
    course.model[2] = nn.Linear(6, 2, bias=False)
    before = weights_sha256(course.model)
    with pytest.raises(CheckpointError, match="does not fit the model: 0 tensors missing, 1 left"):
        course.accelerator.load_state(tmp_path)
    assert weights_sha256(course.model) == before


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_folder_without_a_state_is_an_error_on_all_ranks(ranks: int, tmp_path: Path) -> None:
    def task(group: Group) -> str:
        with pytest.raises(CheckpointError) as caught:
            Accelerator(group=group).load_state(tmp_path / "none")
        return caught.value.message

    (message,) = set(on_ranks(ranks, task))
    assert message.endswith("none/state.safetensors: No such file or directory")


def test_a_file_of_others_is_no_state(tmp_path: Path) -> None:
    save_tensors(tmp_path / saved_state.FILE, {"x": engine.zeros(1)})
    with pytest.raises(CheckpointError, match="but not one of save_state"):
        Accelerator().load_state(tmp_path)


def test_a_folder_that_cannot_be_made_is_an_error_on_all_ranks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    def task(group: Group) -> str:
        with pytest.raises(CheckpointError) as caught:
            Accelerator(group=group).save_state(tmp_path / "file" / "states")
        return caught.value.message

    (message,) = set(on_ranks(2, task))
    assert message.startswith("cannot make ") and message.endswith("Not a directory")
