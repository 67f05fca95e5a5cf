"""`gradcli resume -s`: a fork, which the manifest tells; other keys are refused with a way on."""

from __future__ import annotations

import errno
import json
import shlex
import shutil
from pathlib import Path

import points
import pytest
import yaml
from points import only_run
from refusals import begin, finish, gradcli

from gradcli.config.changes import changeable
from gradcli.train import directory
from gradcli.train.order import epoch_order

__all__ = ["gradcli"]


@pytest.fixture
def stopped(gradcli) -> Path:
    """A run stopped after 4 of 18 steps."""
    assert gradcli("train", "dots.yaml", "--max-steps", "4").code == 0
    return only_run()


def forks(run: Path) -> list[dict[str, object]]:
    return json.loads((run / "manifest.json").read_text()).get("forks", [])


def resolved(run: Path, name: str = "resolved.yaml") -> dict[str, dict[str, object]]:
    return yaml.safe_load((run / name).read_text())


def test_a_fork_is_told_by_the_manifest_and_keeps_both_configs(gradcli, stopped: Path) -> None:
    before = (stopped / "resolved.yaml").read_bytes()
    kept = json.loads((stopped / "manifest.json").read_text())
    ended = gradcli("resume", "last", "-s", "optim.lr=1e-5", "-s", "train.clip=1.0")
    assert "a fork at step 4: optim.lr 0.05 -> 1e-05, train.clip null -> 1.0" in ended.err
    [fork] = forks(stopped)
    assert fork == {
        "step": 4,
        "keys": ["optim.lr", "train.clip"],
        "old": {"optim.lr": 0.05},
        "new": {"optim.lr": 1e-05, "train.clip": 1.0},
    }
    assert json.loads((stopped / "manifest.json").read_text()) == {**kept, "forks": [fork]}
    assert (stopped / "resolved-4.yaml").read_bytes() == before
    assert resolved(stopped)["optim"]["lr"] == 1e-5
    log = [json.loads(line) for line in (stopped / "log.jsonl").read_text().splitlines()]
    rates = {one["step"]: one["lr"] for one in log if one["event"] == "step"}
    assert [rates[step] for step in (4, 5, 18)] == [0.05, 1e-5, 1e-5]


def test_a_forked_run_goes_on_with_the_new_values(gradcli, stopped: Path) -> None:
    gradcli("resume", "last", "-s", "optim.lr=1e-5", "-s", "train.keep=9")
    said = forks(stopped)
    assert gradcli("resume", "last", "-s", "train.epochs=4", "--json").json["steps"] == 24
    assert forks(stopped) == said
    assert resolved(stopped)["optim"]["lr"] == 1e-5
    for which in ("4", "12", "last"):  # from before the fork, and behind it
        assert gradcli("eval", f"last@{which}").code == 0


def test_a_value_can_be_taken_away(gradcli, stopped: Path) -> None:
    gradcli("resume", "last", "-s", "train.clip=1.0")
    kill = KILL.replace("NAME", "manifest.json").replace("WHEN", "after")
    away = ("-s", "train.clip=null", "-s", "train.epochs=4")
    assert finish(begin(Path.cwd(), "resume", "last", *away, before=kill)).code == -9
    assert resolved(stopped)["train"]["clip"] == 1.0
    assert gradcli("resume", "last", "-s", "train.epochs=4", "--json").json["steps"] == 24
    assert "clip" not in resolved(stopped)["train"]
    assert [(fork["old"], fork["new"]) for fork in forks(stopped)] == [
        ({}, {"train.clip": 1.0}),
        ({"train.clip": 1.0}, {}),
    ]


def test_a_finished_run_has_no_steps_to_fork(gradcli, stopped: Path) -> None:
    gradcli("resume", "last")
    ended = gradcli("resume", "last", "-s", "optim.lr=0.1")
    assert "nothing to do; with train.epochs or train.steps beside it there is" in ended.err
    assert forks(stopped) == []


def test_each_fork_stands_in_the_manifest(gradcli, stopped: Path) -> None:
    gradcli("resume", "last", "-s", "optim.lr=0.01")
    gradcli("resume", "last", "-s", "train.epochs=4", "-s", "optim.lr=0.001")
    assert [(fork["step"], fork["old"], fork["new"]) for fork in forks(stopped)] == [
        (4, {"optim.lr": 0.05}, {"optim.lr": 0.01}),
        (18, {"optim.lr": 0.01}, {"optim.lr": 0.001}),
    ]
    assert resolved(stopped, "resolved-18.yaml")["optim"]["lr"] == 0.01
    assert gradcli("resume", "last", "-s", "train.epochs=5", "--json").json["steps"] == 30


def test_a_value_that_the_run_has_is_no_fork(gradcli, stopped: Path) -> None:
    whole = gradcli("train", "dots.yaml", "--name", "whole", "--json").json
    ended = gradcli("resume", str(stopped), "-s", "optim.lr=0.05", "--json")
    assert ended.json["weights_sha256"] == whole["weights_sha256"]
    assert forks(stopped) == []
    assert not list(stopped.glob("resolved-*"))


@pytest.mark.parametrize(
    ("change", "key", "new"),
    [
        ("schedule=cosine", "schedule", {"name": "cosine", "final": 0.0}),
        ("schedule.warmup=2", "schedule", {"name": "constant", "warmup": 2}),
        ("schedule={name: plateau, patience: 1}", "schedule", {"name": "plateau", "patience": 1}),
        ("optim.weight_decay=0.5", "optim.weight_decay", 0.5),
        ("train.micro_batch=4", "train.micro_batch", 4),
        ("train.eval_every=2", "train.eval_every", 2),
        ("train.capture=false", "train.capture", False),
        ("train.precision=bf16", "train.precision", "bf16"),
        ("train.clip_value=0.1", "train.clip_value", 0.1),
        ("train.on_nonfinite=skip", "train.on_nonfinite", "skip"),
    ],
)
def test_keys_that_may_change(gradcli, stopped: Path, change: str, key: str, new: object) -> None:
    assert gradcli("resume", "last", "-s", change).code == 0
    [fork] = forks(stopped)
    assert fork["keys"] == [key]
    there = fork["new"][key]
    assert there | new == there if isinstance(new, dict) else there == new
    assert gradcli("eval", "last").code == 0
    assert gradcli("resume", "last", "-s", "train.epochs=4", "--json").json["steps"] == 24


def test_a_decay_of_the_average_may_change(gradcli) -> None:
    gradcli("train", "dots.yaml", "-s", "train.ema=0.5", "--max-steps", "4")
    assert gradcli("resume", "last", "-s", "train.ema.decay=0.9").code == 0
    [fork] = forks(only_run())
    assert (fork["old"], fork["new"]) == ({"train.ema.decay": 0.5}, {"train.ema.decay": 0.9})


def test_more_patience_lets_a_run_that_was_stopped_early_go_on(gradcli) -> None:
    stop = "train.early_stop={metric: val.loss, patience: 1, min_delta: 100}"
    step = gradcli("train", "dots.yaml", "--json", "-s", stop).json["steps"]
    assert step < 18
    assert "nothing to do" in gradcli("resume", "last").err
    ended = gradcli("resume", "last", "--json", "-s", "train.early_stop.patience=9")
    assert ended.json["steps"] == 18
    assert [fork["step"] for fork in forks(only_run())] == [step]


def test_a_schedule_that_watches_begins_anew_where_another_one_was(gradcli) -> None:
    plateau = "schedule={name: plateau, patience: 1, factor: 0.5}"
    gradcli("train", "dots.yaml", "-s", plateau, "--max-steps", "12")
    assert gradcli("resume", "last", "-s", "schedule=constant", "--json").json["steps"] == 18
    more = ("-s", "train.epochs=5", "-s", plateau)
    assert gradcli("resume", "last", *more, "--json").json["steps"] == 30
    assert [fork["step"] for fork in forks(only_run())] == [12, 18]


REFUSED = ["optim.name=adamw", "optim.no_decay=[bias]", "train.batch=4", "model=[{linear: 2}]"]


@pytest.mark.parametrize("change", REFUSED)
def test_another_key_is_refused_and_its_cure_works(gradcli, stopped: Path, change: str) -> None:
    before = {path: path.read_bytes() for path in stopped.rglob("*.*") if path.is_file()}
    ended = gradcli("resume", "last", "-s", change)
    assert ended.code == 2
    for key, mark in changeable().items():
        assert (f"{key}.KEY" if mark.but else key) in ended.err
    cure = next(line for line in ended.err.splitlines() if "gradcli train" in line)
    assert shlex.split(cure.partition(": ")[2])[-4:] == ["--from", str(stopped), "-s", change]
    assert {path: path.read_bytes() for path in stopped.rglob("*.*") if path.is_file()} == before
    taken = [str(stopped / "resolved.yaml"), "--from", str(stopped), "-s", change]
    assert gradcli("train", *taken).code == (7 if change.startswith("model") else 0)


def test_a_change_that_the_optimizer_cannot_follow_writes_nothing(gradcli, stopped: Path) -> None:
    before = (stopped / "resolved.yaml").read_bytes()
    ended = gradcli("resume", "last", "-s", "optim.amsgrad=true")
    assert ended.code == 7
    assert "missing: optim.max_exp_avg_sq.0" in ended.err
    assert "train --from" in ended.err
    assert forks(stopped) == []
    assert [path.name for path in stopped.glob("resolved*")] == ["resolved.yaml"]
    assert (stopped / "resolved.yaml").read_bytes() == before


def test_a_manifest_that_cannot_be_read_refuses_a_fork_and_nothing_else(gradcli, stopped) -> None:
    (stopped / "manifest.json").write_text("{")
    ended = gradcli("resume", "last", "-s", "optim.lr=1")
    assert (ended.code, "manifest.json cannot be read, and a fork is written" in ended.err) == (
        7,
        True,
    )
    assert gradcli("resume", "last", "--json").json["steps"] == 18


def test_forks_that_are_none_are_named(gradcli, stopped: Path) -> None:
    (stopped / "manifest.json").write_text('{"format": 2, "forks": [{"step": "4"}]}')
    for command in ("resume", "eval"):
        ended = gradcli(command, "last")
        assert ended.code == 7
        assert "forks must be a list of {step, keys, old, new}" in ended.err


def test_a_fork_whose_steps_are_lost_holds_from_where_the_run_goes_on(gradcli) -> None:
    gradcli("train", "dots.yaml", "-s", "train.checkpoint_every=2", "--max-steps", "4")
    run = only_run()
    shutil.copytree(run / "checkpoints", "saved")
    gradcli("resume", "last", "-s", "optim.lr=0.01")
    for file in (run / "checkpoints").iterdir():
        file.unlink()
    shutil.copy("saved/step-00000002.safetensors", run / "checkpoints")
    ended = gradcli("resume", "last")
    assert "a fork at step 2: optim.lr 0.05 -> 0.01" in ended.err
    assert [fork["step"] for fork in forks(run)] == [2]
    assert resolved(run, "resolved-2.yaml")["optim"]["lr"] == 0.05


KILL = """
import os
from pathlib import Path
replace = Path.replace
def killing(self, target):
    due = Path(target).name == 'NAME'
    if due and 'WHEN' == 'before':
        os.kill(os.getpid(), 9)
    replace(self, target)
    if due:
        os.kill(os.getpid(), 9)
Path.replace = killing
"""


@pytest.mark.parametrize(
    ("name", "when", "is_forked"),
    [
        ("resolved-4.yaml", "before", False),
        ("resolved-4.yaml", "after", False),
        ("manifest.json", "before", False),
        ("manifest.json", "after", True),
        ("resolved.yaml", "before", True),
        ("resolved.yaml", "after", True),
    ],
)
def test_a_kill_while_forking_leaves_a_fork_or_none(
    gradcli, stopped: Path, name: str, when: str, is_forked: bool
) -> None:
    change = ("-s", "optim.lr=0.001")
    shutil.copytree(stopped, "other")
    whole = gradcli("resume", "other", *(change if is_forked else ()), "--json").json
    kill = KILL.replace("NAME", name).replace("WHEN", when)
    assert finish(begin(Path.cwd(), "resume", str(stopped), *change, before=kill)).code == -9
    assert gradcli("eval", str(stopped)).code == 0
    ended = gradcli("resume", str(stopped), "--json")
    assert ended.json["weights_sha256"] == whole["weights_sha256"]
    assert [fork["new"] for fork in forks(stopped)] == [{"optim.lr": 0.001}] * is_forked
    assert resolved(stopped)["optim"]["lr"] == (0.001 if is_forked else 0.05)
    assert forks(stopped) == forks(Path("other"))


@pytest.mark.parametrize(
    ("name", "is_forked"),
    [("resolved-4.yaml", False), ("manifest.json", False), ("resolved.yaml", True)],
)
def test_a_disk_that_is_full_while_forking_leaves_a_fork_or_none(
    gradcli, stopped: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_forked: bool
) -> None:
    write = directory.write_text

    def full(path: Path, *arguments: object, **options: object) -> None:
        if path.name == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(directory, "write_text", full)
        ended = gradcli("resume", "last", "-s", "optim.lr=0.001")
    assert (ended.code, "No space left on device; checkpoints are untouched" in ended.err) == (
        7,
        True,
    )
    assert gradcli("resume", "last", "--json").json["steps"] == 18
    assert [fork["new"] for fork in forks(stopped)] == [{"optim.lr": 0.001}] * is_forked
    assert resolved(stopped)["optim"]["lr"] == (0.001 if is_forked else 0.05)


def test_a_second_fork_after_a_killed_one_holds(gradcli, stopped: Path) -> None:
    kill = KILL.replace("NAME", "manifest.json").replace("WHEN", "after")
    change = ("-s", "optim.lr=0.001", "-s", "train.clip=1.0")
    assert finish(begin(Path.cwd(), "resume", "last", *change, before=kill)).code == -9
    assert gradcli("resume", "last", "-s", "optim.lr=0.002").code == 0
    [fork] = forks(stopped)
    assert fork["old"] == {"optim.lr": 0.05}
    assert fork["new"] == {"optim.lr": 0.002, "train.clip": 1.0}
    assert (resolved(stopped)["optim"]["lr"], resolved(stopped)["train"]["clip"]) == (0.002, 1.0)


def test_after_nan_a_clip_finishes_the_run(gradcli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two samples of step 49, alike and of two classes: the loss of the next one overflows."""
    first, second, *_ = epoch_order(5, 0, 800).tolist()[48 * 8 :]
    planted, plain = {first: [1e-9, 1e14], second: [-1e-9, 1e14]}, points._point
    monkeypatch.setattr(points, "_point", lambda index: planted.get(index) or plain(index))
    change = ["-s", "data.train=800", "-s", "train.epochs=null", "-s", "train.steps=100"]
    change += ["-s", "model=[{linear: 8}, {linear: 8}, {linear: 8}, {linear: 2}]"]
    often = ("-s", "train.checkpoint_every=20", "-s", "train.eval_every=20")
    sgd = ("-s", "optim={name: sgd, lr: 0.1}", "-s", "train.keep=9")
    ended = gradcli("train", "dots.yaml", *change, *often, *sgd)
    run = only_run()
    assert ended.code == 5
    assert "the loss of step 50 is" in ended.err, ended.err
    assert "resume" in ended.err
    assert (run / "last").read_text() == "step-00000040.safetensors\n"
    assert gradcli("resume", "last").code == 5
    ended = gradcli("resume", "last", "-s", "train.clip=1.0", "--json")
    assert (ended.code, ended.json["steps"]) == (0, 100)
    [fork] = forks(run)
    assert (fork["step"], fork["keys"], fork["new"]) == (40, ["train.clip"], {"train.clip": 1.0})
    begin_with = ["--from", f"{run}@best", "--max-steps", "0", "--json"]
    new = gradcli("train", "dots.yaml", *change, *begin_with).json
    best = gradcli("eval", f"{run}@best", "--json").json
    assert new["weights_sha256"] == best["weights_sha256"]


def test_the_docs_name_every_key_that_may_change() -> None:
    text = (Path(__file__).parents[2] / "docs" / "runs.md").read_text(encoding="utf-8")
    section = text.partition("## Changing a run as it goes on")[2].partition("\n## ")[0]
    for key, mark in changeable().items():
        assert f"`{key}.KEY`" in section if mark.but else f"`{key}`" in section, key


def test_the_config_of_a_forked_run_is_read_as_configs_are(gradcli, stopped: Path) -> None:
    gradcli("resume", "last", "-s", "optim.lr=1e-5")
    file = stopped / "resolved.yaml"
    date = file.read_text().replace("lr: 1.0e-05", "lr: 2020-01-01")
    assert "2020" in date
    file.write_text(date)
    assert gradcli("eval", "last").code == 0  # the manifest decides
    file.write_text(f"gradcli: {'[' * 3000}\n")
    ended = gradcli("eval", "last")
    assert (ended.code, "nested deeper than" in ended.err) == (2, True), ended.err


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("train.epoch=4", "train.epochs"),
        ("train.onnonfinite=skip", "train.on_nonfinite"),
        ("epochs=4", "train.epochs"),
        ("shedule=cosine", "schedule"),
        ("train.batch=4", None),
        ("train.ema.warmup=true", None),
        ("freeze=[bias]", None),
    ],
)
def test_a_key_that_is_mistyped_is_no_new_run(
    gradcli, stopped: Path, override: str, meant: str | None
) -> None:
    ended = gradcli("resume", "last", "-s", override)
    assert ended.code == 2
    assert (f"did you mean '{meant}'?" in ended.err) == (meant is not None)
    assert ("a new run with these weights" in ended.err) == (meant is None)
