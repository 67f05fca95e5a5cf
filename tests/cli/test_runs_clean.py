"""`gradcli runs clean`: what it removes, what it never removes, and two of them at once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from points import gradcli
from refusals import alone, begin, finish, refused
from test_runs_command import make

from gradcli.errors import RunError
from gradcli.train import run_cleaning
from gradcli.train.lock import RunLock
from gradcli.train.run_list import runs_in

__all__ = ["gradcli", "refused"]


def left(name: str = "dots") -> list[int]:
    """The days of the runs that are left."""
    return sorted(int(run.name[6:8]) for run in Path("runs", name).iterdir())


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def write(run: Path, text: str) -> None:
    run.joinpath("resolved.yaml").write_text(text)


def test_it_says_what_it_would_remove_and_removes_nothing(gradcli) -> None:
    for day in range(1, 6):
        make("dots", day, "finished")
    ended = gradcli("runs", "clean", "--keep", "2")
    assert ended.code == 0
    assert ended.out.count("would remove") == 3
    assert "3 runs" in ended.out
    assert left() == [1, 2, 3, 4, 5]
    assert [
        row["removed"] for row in gradcli("runs", "clean", "--keep", "2", "--json").json["runs"]
    ] == [False] * 3


def test_with_yes_the_newest_of_each_name_stay(gradcli) -> None:
    for day in range(1, 6):
        make("dots", day, "finished")
    make("other", 1, "failed")
    assert gradcli("runs", "clean", "--keep", "2", "--yes").code == 0
    assert (left(), left("other")) == ([4, 5], [1])
    ended = gradcli("runs", "clean", "--keep", "2", "--yes")
    assert (ended.code, ended.out) == (0, "nothing to remove in runs\n")


def test_a_name_chooses(gradcli) -> None:
    for day in (1, 2):
        make("dots", day, "finished")
        make("other", day, "finished")
    assert gradcli("runs", "clean", "--keep", "1", "--name", "dots", "--yes").code == 0
    assert (left(), left("other")) == ([2], [1, 2])
    assert gradcli("runs", "--name", "other", "clean", "--keep", "1", "--yes").code == 0
    assert left("other") == [2]


def test_the_best_of_its_name_stays(gradcli) -> None:
    for day, loss in ((1, 0.5), (2, 0.1), (3, 0.7)):
        make("dots", day, "finished", metrics={"val.loss": loss})
    ended = gradcli("runs", "clean", "--keep", "1", "--yes")
    assert "the best of its name, val.loss 0.1" in ended.out
    assert left() == [2, 3]


def test_a_run_in_use_stays(gradcli) -> None:
    busy = make("dots", 1, "running")
    make("dots", 2, "finished")
    lock = RunLock(busy / "lock")
    ended = gradcli("runs", "clean", "--keep", "1", "--yes")
    assert (ended.code, "it is in use" in ended.out) == (0, True)
    assert left() == [1, 2]
    with pytest.raises(RunError, match="in use by process"):
        run_cleaning.remove(busy)
    lock.release()
    assert gradcli("runs", "clean", "--keep", "1", "--yes").code == 0
    assert left() == [2]


@pytest.mark.parametrize(
    "said",
    [
        'pretrained:\n  from: "/moved/runs/dots/20260102-120000Z-001/checkpoints/a.safetensors"\n',
        "pretrained:\n  from: dots@best\n",
        "pretrained:\n  layers: []\n  from: 20260102-120000Z-001/../dots/20260102-120000Z-001\n",
    ],
)
def test_what_a_run_began_from_stays(gradcli, said: str) -> None:
    make("dots", 2, "finished")
    make("dots", 3, "finished")
    write(make("tuned", 4, "finished"), f"gradcli: 1\n{said}train:\n  batch: 1\n")
    ended = gradcli("runs", "clean", "--keep", "1", "--yes")
    assert "began with its weights" in ended.out
    assert left() == [2, 3]


def test_what_that_began_from_stays_too(gradcli) -> None:
    for day in (1, 2, 3):
        run = make("dots", day, "finished")
        write(run, f"pretrained:\n  from: runs/dots/2026010{day - 1}-120000Z-001\n")
    make("dots", 4, "finished")
    write(make("tuned", 5, "finished"), "pretrained:\n  from: runs/dots/20260102-120000Z-001\n")
    assert gradcli("runs", "clean", "--keep", "1", "--yes").code == 0
    assert left() == [1, 2, 4]


def test_a_config_that_cannot_be_read_may_name_any_run(gradcli, refused) -> None:
    make("dots", 1, "finished")
    run = make("dots", 2, "finished")
    with run.joinpath("resolved.yaml").open("wb") as file:
        file.truncate(1 << 25)
    refused(7, "which runs it began from is not known", "runs", "clean", "--keep", "1", "--yes")


def test_only_runs_are_removed_and_links_are_not_followed(gradcli, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "resolved.yaml").write_text("")
    (outside / "file").write_text("x")
    run = make("dots", 1, "finished")
    (run / "checkpoints").symlink_to(outside)
    make("dots", 2, "finished")
    Path("runs/dots/notes").mkdir()
    Path("runs/dots/20260101-000000Z-001").mkdir()  # no resolved.yaml: no run
    Path("runs/dots/20260101-000001Z-001").symlink_to(outside)
    Path("runs/linked").symlink_to(outside)
    assert gradcli("runs", "clean", "--keep", "0", "--yes").code == 0
    assert names(Path("runs/dots")) == [
        "20260101-000000Z-001",
        "20260101-000001Z-001",
        "notes",
    ]
    assert names(outside) == ["file", "resolved.yaml"]


def test_two_at_once_remove_what_one_removes(gradcli, tmp_path: Path) -> None:
    for day in range(1, 29):
        run = make("dots", day, "finished")
        for number in range(20):
            (run / f"file-{number}").write_text("x")
    words = ("runs", "clean", "--keep", "3", "--yes", "--json")
    processes = [begin(tmp_path, *words) for _ in range(3)]
    ended = [finish(process) for process in processes]
    assert [one.code for one in ended] == [0, 0, 0], [one.err for one in ended]
    removed = [row["run"] for one in ended for row in one.json["runs"] if row["removed"]]
    assert len(removed) == len(set(removed)) == 25
    assert left() == [26, 27, 28]


def test_a_run_that_is_half_removed_is_none_and_goes_the_next_time(gradcli, tmp_path: Path) -> None:
    for day in (1, 2):
        make("dots", day, "finished")
    before = "import shutil, os; shutil.rmtree = lambda *a, **b: os._exit(9)"
    assert alone(tmp_path, "runs", "clean", "--keep", "1", "--yes", before=before).code == 9
    (half,) = (one for one in Path("runs/dots").iterdir() if one.name.startswith(".removed-"))
    assert not (half / "resolved.yaml").exists()
    assert [run.path.name[6:8] for run in runs_in(Path("runs"))] == ["02"]
    assert gradcli("runs", "clean", "--keep", "1", "--yes").code == 0
    assert left() == [2]


def test_what_cannot_be_removed_is_named_and_the_rest_goes(
    gradcli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (1, 2, 3):
        make("dots", day, "finished")
    rename = os.rename

    def refusing(source: str, *others: object, **more: object) -> None:
        if source.startswith("20260101"):
            raise PermissionError(13, "Permission denied")
        rename(source, *others, **more)

    monkeypatch.setattr(os, "rename", refusing)
    ended = gradcli("runs", "clean", "--keep", "1", "--yes")
    assert (ended.code, left()) == (7, [1, 3])
    assert "cannot remove runs/dots/20260101-120000Z-001: Permission denied" in ended.err


def test_a_training_that_began_from_a_run_is_found_by_its_config(gradcli) -> None:
    assert gradcli("train", "dots.yaml", "--max-steps", "2").code == 0
    assert gradcli("train", "dots.yaml", "--name", "tuned", "--from", "dots").code == 0
    for _ in range(2):
        assert gradcli("train", "dots.yaml").code == 0
    begun = min(names(Path("runs/dots")))
    ended = gradcli("runs", "clean", "--keep", "0", "--json").json
    kept = {Path(row["run"]).name: row["why"] for row in ended["kept"]}
    assert "began with its weights" in kept[begun]
    shutil.rmtree("runs/tuned")
    (row,) = gradcli("runs", "clean", "--keep", "0", "--json").json["kept"]
    assert "the best of its name" in row["why"]


def test_how_many_stay_must_be_said(gradcli, refused) -> None:
    make("dots", 1, json.dumps({"status": "finished"}))
    refused(2, "--keep says how many runs of each name stay", "runs", "clean", "--yes")
    refused(2, "-1 is not in the range", "runs", "clean", "--keep", "-1")
    refused(7, "did you mean 'dots'?", "runs", "clean", "--keep", "1", "--name", "dotts")


def test_options_before_clean_are_not_passed_over(gradcli, refused) -> None:
    for day in (1, 2):
        make("dots", day, json.dumps({"status": "finished"}))
    for option in ("--status failed", "--sort age"):
        words = (*option.split(), "clean", "--keep", "0", "--yes")
        refused(2, "not for `runs clean`: leave it out", "runs", *words)
    assert len(runs_in(Path("runs"))) == 2
    assert gradcli("runs", "--json", "clean", "--keep", "0").json["runs"]
