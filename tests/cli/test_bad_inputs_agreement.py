"""Rows 65 to 68: ranks that do not agree, and a rank that does not come."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from points import Ended
from rank_threads import Ended as Aborted
from rank_threads import Network, ThreadGroup, on_ranks
from refusals import gradcli

from gradcli.cli import launchers
from gradcli.config import build, load
from gradcli.engine import distributed
from gradcli.engine.distributed import Sum
from gradcli.engine.distributed.group import Message
from gradcli.errors import GradcliError, LostRankError
from gradcli.train import agreement, ranks
from gradcli.train.agreement import agree_at_start, meet
from gradcli.train.ranks import Ranks
from gradcli.train.safetensors_file import RawTensor

__all__ = ["gradcli"]


def errors(task: Callable[[ThreadGroup], object], ranks: int = 2) -> list[GradcliError]:
    """What each rank raises."""

    def one(group: ThreadGroup) -> GradcliError:
        with pytest.raises(GradcliError) as raised:
            task(group)
        return raised.value

    return on_ranks(ranks, one)


def check_all_name(raised: list[GradcliError], code: str, exit_code: int, *words: str) -> None:
    """All ranks raise the same, of which rank 0 alone speaks."""
    assert len({error.message for error in raised}) == 1
    for error in raised:
        assert (error.code, error.exit_code, error.on_all_ranks) == (code, exit_code, True)
        for word in words:
            assert word in error.message


def dots(*overrides: str) -> Any:
    return build(load(Path("dots.yaml"), overrides))


def agree(*jobs: Any) -> list[GradcliError]:
    return errors(lambda group: agree_at_start(group, jobs[group.rank], {}), len(jobs))


@pytest.mark.parametrize("what", ["version", "machine", "source"])
def test_another_gradcli_on_a_rank_is_named(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    usual = agreement._presence()
    present = {0: usual, 1: usual._replace(**{what: "another"})}

    def start(group: ThreadGroup) -> None:
        gathered = [present[rank] for rank in range(group.size)]
        monkeypatch.setattr(group, "gather_values", lambda *_: gathered)
        meet(group)

    named = {"version": "version", "machine": "kind of processor", "source": "build of the kernels"}
    check_all_name(errors(start), "E804", 2, "rank 1 on node", named[what], "another, not ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["train.batch=5"], ["another config than rank 0 on node0", "train.batch: 5, not "]),
        (["train.log_every=7"], ["train.log_every: 7, not "]),
    ],
)
def test_another_training_on_a_rank_is_named(gradcli: Any, change: list[str], words: Any) -> None:
    usual = dots()
    check_all_name(agree(usual, usual, dots(*change)), "E804", 2, "rank 2 on node1", *words)
    own = replace(usual, code={"own.py": "1"})
    other = replace(usual, code={"own.py": "2"})
    check_all_name(agree(own, other), "E804", 2, "another own code", "own.py: ")

    def start(group: ThreadGroup) -> None:
        agree_at_start(group, usual, {"--max-steps": group.rank})

    check_all_name(errors(start), "E804", 2, "--max-steps: 1, not 0")


def test_other_data_on_a_rank_are_named(gradcli: Any) -> None:
    usual = dots()
    role = next(iter(usual.dataset.sha256))
    other = replace(usual, dataset=replace(usual.dataset, sha256={role: "f00d"}))
    check_all_name(agree(usual, other), "E804", 3, "rank 1 on node", "another data", role, "f00d")


def test_files_may_lie_elsewhere_on_each_rank(gradcli: Any) -> None:
    usual = dots()
    configs = [{**usual.resolved, "pretrained": {"from": place}} for place in ("here", "there")]
    jobs = [replace(usual, resolved=config) for config in configs]
    on_ranks(2, lambda group: agree_at_start(group, jobs[group.rank], {}))


def test_another_kind_of_device_is_named(gradcli: Any) -> None:
    usual = dots()
    parameter = SimpleNamespace(device="cuda:1")
    other = replace(usual, model=SimpleNamespace(parameters=lambda: [parameter]))
    raised = agree(usual, other)
    check_all_name(raised, "E803", 4, "rank 1 on node", "computes on cuda, rank 0", "on cpu")


def test_other_weights_on_a_rank_are_not_saved() -> None:
    def save(group: ThreadGroup) -> None:
        data = memoryview(bytes([group.rank]))
        ranks = Ranks(group, SimpleNamespace(first=None))  # type: ignore[arg-type]
        ranks.same_weights({"model.0.weight": RawTensor("U8", (1,), data)}, 60)

    check_all_name(
        errors(save), "E805", 5, "rank 1 on node", "'model.0.weight'", "nothing is saved"
    )


def test_a_rank_that_does_not_come_is_named(
    gradcli: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    group = ThreadGroup(Network(2), 0)
    monkeypatch.setattr(launchers, "ranks", lambda: group)
    monkeypatch.setattr(distributed, "group", lambda: group)
    with pytest.raises(Aborted, match="75"):
        gradcli("train", "dots.yaml", "-s", "train.timeout=0.2")
    said = capfd.readouterr().err
    assert "error[E806] rank 0 on node0 (pid 1000): nothing from rank 1 on node" in said
    assert "for 0.2 s in the start" in said


class Echo(ThreadGroup):
    """Rank 0 of two: what it says comes back as the other's word, until that one is lost."""

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message], what: str) -> None:
        for one, other in zip(sends, receives, strict=False):
            other.memory[:] = one.memory


@pytest.mark.parametrize("capture", [True, False])
def test_the_step_in_which_a_rank_is_lost_is_named(
    gradcli: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    capture: bool,
) -> None:
    """Not the first of the steps that are made in one go."""
    group, sums, places = Echo(Network(2), 0), itertools.count(1), []

    def add(self: Sum) -> None:
        if next(sums) == 30:
            assert group.where is not None
            places.append(group.where())
            raise LostRankError("nothing from rank 1 in ", places[0])
        self.out.zero_()

    monkeypatch.setattr(launchers, "ranks", lambda: group)
    monkeypatch.setattr(distributed, "group", lambda: group)
    monkeypatch.setattr(Sum, "_sum", add)
    monkeypatch.setattr(ranks, "SETTLE_SECONDS", 1e9)
    words = ("batch=2", "micro_batch=1", "log_every=1000", f"capture={str(capture).lower()}")
    options = [word for each in words for word in ("-s", f"train.{each}")]
    with pytest.raises(Aborted, match="75"):
        gradcli("train", "dots.yaml", *options)
    assert places == ["steps 22 to 42"]  # the second epoch
    said = capfd.readouterr().err
    assert "nothing from rank 1 in step 30\n" in said
    assert "go on with: gradcli resume runs" in said
