"""Run directories: made once, one writer, found again; names lead nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gradcli.errors import CheckpointError, ConfigError, RunError
from gradcli.train import checkpoint, directory
from gradcli.train.checkpoint import Best, CheckpointMeta
from gradcli.train.directory import (
    RunDirectory,
    create,
    find_checkpoint,
    read_pointer,
    read_status,
)
from gradcli.train.run_name import find
from gradcli.train.safetensors_file import RawTensor
from gradcli.train.yaml_text import to_yaml

META = CheckpointMeta(step=1, epoch=0, seed=1, optimizer="sgd", config_sha256="")
TENSORS = {"model.w": RawTensor("U8", (1,), b"x")}


def made(runs: Path, name: str = "a") -> Path:
    with create(runs, name) as run:
        run.write_config([(Path("x.yaml"), "name: a\n")], {"name": name})
        return run.path


def test_starts_in_one_second_get_different_directories(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: made(tmp_path), range(20)))
    assert len(set(paths)) == 20


@pytest.mark.parametrize("name", ["..", "a/b", "", ".a", "a\n", "a\x1b[2J", "x" * 101, "a\\b", "é"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create(tmp_path / "runs", name)
    assert "\x1b" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_link_out_of_the_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="leads out"):
        create(tmp_path / "runs", "a")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = made(tmp_path)
    with RunDirectory(path):
        script = (
            "import sys; from pathlib import Path\n"
            "from gradcli.train.directory import RunDirectory\n"
            "try: RunDirectory(Path(sys.argv[1]))\n"
            "except Exception as error: sys.exit(str(error))"
        )
        loser = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
        )
    assert loser.returncode == 1
    assert f"in use by process {os.getpid()} on" in loser.stderr
    RunDirectory(path).close()


def test_a_run_is_found_by_path_name_and_last(tmp_path: Path) -> None:
    first, second = made(tmp_path, "a"), made(tmp_path, "a")
    other = made(tmp_path, "b")
    assert find(tmp_path, str(first)) == (first, None)
    assert find(tmp_path, "a").path == second
    assert find(tmp_path, "last").path.parent.name in ("a", "b")
    assert find(tmp_path, "last").path.name == max(second.name, other.name)


@pytest.mark.parametrize("which", ["best", "last", "400", "4oo", ""])
def test_a_run_is_named_with_one_of_its_checkpoints(tmp_path: Path, which: str) -> None:
    run = made(tmp_path)
    for text in (str(run), "a", "last", run.name):
        assert find(tmp_path, f"{text}@{which}") == (run, which)
        assert find(tmp_path, f"{text}@{which}", which) == (run, which)
    with pytest.raises(ConfigError, match=f"names the checkpoint '{which}', and .* names '7'"):
        find(tmp_path, f"a@{which}", "7")
    assert find(tmp_path, "a", "7") == (run, "7")


def test_a_path_with_an_at_sign_is_a_run_where_there_is_one(tmp_path: Path) -> None:
    run = made(tmp_path / "me@home")
    assert find(tmp_path, str(run)) == (run, None)
    assert find(tmp_path, f"{run}@3") == (run, "3")
    renamed = run.rename(run.with_name("x@best"))
    assert find(tmp_path, str(renamed)) == (renamed, None)
    assert find(tmp_path, f"{renamed}@last") == (renamed, "last")
    with pytest.raises(RunError, match=r"no run '.*me@home/a/none'"):
        find(tmp_path, str(run.with_name("none")))


def test_an_unknown_run_gets_a_suggestion(tmp_path: Path) -> None:
    made(tmp_path, "mnist-mlp")
    with pytest.raises(RunError, match="did you mean 'mnist-mlp'"):
        find(tmp_path, "mnist-mpl")
    with pytest.raises(RunError, match="holds no runs yet"):
        find(tmp_path / "none", "last")


def test_pointers_follow_the_checkpoints(tmp_path: Path) -> None:
    with RunDirectory(made(tmp_path)) as run:
        run.save(replace(META, best=Best("val.loss", 1.0, 1)), TENSORS, 2)
        run.save(replace(META, step=2, best=Best("val.loss", 1.0, 1)), TENSORS, 2)
        assert read_pointer(run.path, "last") == checkpoint.file_name(2)
        assert read_pointer(run.path, "best") == checkpoint.file_name(1)
        assert find_checkpoint(run.path, "best")[1].meta.step == 1
        assert find_checkpoint(run.path, "2")[1].meta.step == 2
        with pytest.raises(CheckpointError, match="steps: 2, 1"):
            find_checkpoint(run.path, "3")


@pytest.mark.parametrize("text", ["../../x", "step-00000001.safetensors/..", "", "\x00", "a b"])
def test_a_pointer_with_anything_but_a_bare_name_is_ignored(tmp_path: Path, text: str) -> None:
    path = made(tmp_path)
    (path / "best").write_text(text)
    assert read_pointer(path, "best") is None
    with pytest.raises(CheckpointError, match="no checkpoint 'best'"):
        find_checkpoint(path, "best")


def test_recovery_cuts_the_log_and_removes_stale_files(tmp_path: Path) -> None:
    with RunDirectory(made(tmp_path)) as run:
        for step in (1, 2, 3):
            run.log({"event": "step", "step": step})
        run.save(replace(META, step=2), TENSORS, 2)
        (run.checkpoints / ".gradcli-0123456789abcdef.tmp").write_text("x")
        with (run.path / "log.jsonl").open("a") as file:
            file.write('{"event": "step", "st')
        name, found, notes = run.recover()
        assert (name, found.meta.step) == (checkpoint.file_name(2), 2)
        assert len(notes) == 2
        lines = (run.path / "log.jsonl").read_text().splitlines()
        steps = [json.loads(line)["step"] for line in lines]
        assert steps == [1, 2]


def test_a_log_line_is_strict_json_even_with_nan(tmp_path: Path) -> None:
    with RunDirectory(made(tmp_path)) as run:
        run.log({"event": "step", "step": 1, "loss": float("nan"), "lr": float("inf")})
        line = (run.path / "log.jsonl").read_text()
    record = json.loads(line, parse_constant=lambda word: pytest.fail(word))
    assert record["loss"] is None
    assert record["nonfinite"] == {"loss": "nan", "lr": "inf"}


def test_a_record_cut_off_by_a_full_disk_is_an_error(tmp_path, monkeypatch) -> None:
    with RunDirectory(made(tmp_path)) as run:
        run.log({"event": "step", "step": 1})
        monkeypatch.setattr(os, "write", lambda *_: 3)
        with pytest.raises(RunError, match="3 of"):
            run.log({"event": "step", "step": 2})


FULL_DISK = """
import resource, sys
from pathlib import Path
from gradcli.errors import CheckpointError, RunError
from gradcli.train.checkpoint import CheckpointMeta
from gradcli.train.directory import RunDirectory
from gradcli.train.run_name import find
from gradcli.train.safetensors_file import RawTensor
meta = CheckpointMeta(step=2, epoch=0, seed=1, optimizer="sgd", config_sha256="")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
with RunDirectory(Path(sys.argv[1])) as run:
    try:
        run.save(meta, {"w": RawTensor("U8", (30_000,), bytes(30_000))}, 2)
    except CheckpointError as error:
        print(error)
    try:
        for step in range(1000):
            run.log({"event": "step", "step": step, "text": "x" * 100})
    except RunError as error:
        print(error)
"""


def test_a_size_limit_at_a_save_and_in_the_log_is_survived(tmp_path: Path) -> None:
    with RunDirectory(made(tmp_path)) as run:
        run.save(META, TENSORS, 2)
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(run.path)], capture_output=True, text=True, check=True
    )
    save, log = done.stdout.splitlines()
    assert "cannot save" in save
    assert "File too large" in save
    assert "log.jsonl" in log
    with RunDirectory(run.path) as again:
        assert again.recover()[1].meta.step == 1
    records = (run.path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in records] == [0, 1]


def test_a_read_only_place_is_refused_in_one_sentence(tmp_path, monkeypatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RunError, match="Permission denied"):
        create(tmp_path / "runs", "a")


def test_an_empty_run_is_removed_and_a_saved_one_stays(tmp_path: Path) -> None:
    with RunDirectory(made(tmp_path)) as run:
        run.save(META, TENSORS, 2)
        run.discard_if_empty()
        assert run.path.exists()
    with RunDirectory(made(tmp_path)) as run:
        run.discard_if_empty()
        assert not run.path.exists()


def test_a_run_without_checkpoints_cannot_be_recovered(tmp_path: Path) -> None:
    with RunDirectory(made(tmp_path)) as run, pytest.raises(CheckpointError, match="no valid"):
        run.recover()


def test_resolved_values_are_read_back_as_they_are() -> None:
    values = {
        "lr": 1e-5,
        "big": 1e22,
        "text": "1e-3",
        "no": "no",
        "null": "null",
        "list": [1, 2.5, "017", True, None],
        "tuple": (1, 2),
        "nested": {"metric": ">= 0.9", "path": "/a b/c: d"},
    }
    expected = {**values, "tuple": [1, 2]}
    assert yaml.safe_load(to_yaml(values)) == expected
    assert '"1e-3"' in to_yaml(values)


def test_name_rule_and_directory_rule_are_one() -> None:
    assert directory.check_name("mnist-mlp_2.1") == "mnist-mlp_2.1"


def test_only_the_last_status_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    with create(tmp_path, "r") as run:
        monkeypatch.setattr(os, "fsync", flushed.append)
        run.status({"status": "running", "step": 1})
        assert not flushed and read_status(run.path)["step"] == 1
        run.status({"status": "finished", "step": 2})
        assert len(flushed) == 2  # the file, and its name in the directory
