"""Rows 42 to 52, wrong checkpoints and paths: exit 7 and the reason; the older one is used."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from points import Ended, only_run
from refusals import begin, finish, gradcli, needs_proc, refused

from gradcli.train import checkpoint
from gradcli.train.checkpoint import Checkpoint
from gradcli.train.safetensors_file import RawTensor

__all__ = ["gradcli", "refused"]

Refused = Callable[..., Ended]
NAME = "step-00000004.safetensors"


@pytest.fixture
def stopped(gradcli: Refused) -> Path:
    """The newest checkpoint of a run stopped after 4 of 18 steps."""
    assert (
        gradcli("train", "dots.yaml", "-s", "train.checkpoint_every=2", "--max-steps", "4").code
        == 0
    )
    return only_run() / "checkpoints" / NAME


def rewrite(path: Path, change: Callable[[Checkpoint], Checkpoint]) -> None:
    """Another checkpoint in its place, with a right hash."""
    found = change(checkpoint.read(path))
    checkpoint.write(path.parent, found.meta, found.tensors)


def header(value: object, body: bytes = b"") -> bytes:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + body


def row(begin: int, end: int, shape: object = None, dtype: str = "U8") -> dict[str, object]:
    shape = [end - begin] if shape is None else shape
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def flipped(data: bytes) -> bytes:
    return data[:-5] + bytes([data[-5] ^ 16]) + data[-4:]


def flipped_state(data: bytes) -> bytes:
    """One bit of the optimizer's memory: its tensors are named optim.* in the header."""
    length = 8 + int.from_bytes(data[:8], "little")
    state = json.loads(data[8:length])["optim.exp_avg.0"]["data_offsets"][0]
    place = length + state
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def changed(data: bytes) -> bytes:
    return data.replace(b'\\"format\\": 2', b'\\"format\\": 3', 1)


BROKEN: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "42 empty": (lambda _: b"", "0 bytes"),
    "42 seven bytes": (lambda data: data[:7], "7 bytes"),
    "42 header over the file": (lambda data: struct.pack("<Q", 10**7) + data[8:], "10000000 bytes"),
    "42 header of 2**63": (lambda data: struct.pack("<Q", 2**63) + data[8:], str(2**63)),
    "42 header over 100 MB": (lambda data: struct.pack("<Q", 10**8 + 1) + data[8:], "100000001"),
    "43 no json": (lambda _: header(b"{'a'}"), "not valid JSON"),
    "43 no object": (lambda _: header([1]), "'{'"),
    "43 doubled": (lambda _: header(b'{"a": 1, "a": 2}'), "'a' occurs twice"),
    "43 nan": (lambda _: header(b'{"a": NaN}'), "NaN"),
    "43 float": (lambda _: header({"a": row(0, 1, [1.0])}, b"x"), "shape of tensor 'a'"),
    "43 deep": (lambda _: header(b'{"a":' + b"[" * 9999 + b"]" * 9999 + b"}"), "nested deeper"),
    "43 long number": (lambda _: header(b'{"a":' + b"1" * 5000 + b"}"), "5000 digits"),
    "43 surrogate": (lambda _: header(b'{"\\ud800": 1}'), "surrogate"),
    "44 overlap": (
        lambda _: header({"a": row(0, 3), "b": row(2, 4)}, b"1234"),
        "'a' and 'b' overlap",
    ),
    "44 hole": (lambda _: header({"a": row(0, 1), "b": row(2, 4)}, b"1234"), "'a' and 'b' belong"),
    "44 reversed": (lambda _: header({"a": row(4, 0, [4])}, b"1234"), "before its begin"),
    "44 past the end": (lambda _: header({"a": row(0, 9)}, b"1234"), "ends at 9"),
    "44 not covering": (lambda _: header({"a": row(0, 3)}, b"1234"), "end at 3"),
    "45 range": (lambda _: header({"a": row(0, 4, [9])}, b"1234"), "needs 9 bytes"),
    "45 dtype": (lambda _: header({"a": row(0, 4, dtype="F7")}, b"1234"), "F7"),
    "45 overflow": (lambda _: header({"a": row(0, 4, [2**60, 2**60])}, b"1234"), "would have"),
    "48 pickle": (lambda _: b"\x80\x02}q\x00.", "a Python pickle; convert it"),
    "48 zip": (
        lambda _: b"PK\x03\x04",
        "a zip archive (torch.save and spreadsheets write these); convert it",
    ),
    "48 gguf": (lambda _: b"GGUF\x03\x00\x00\x00", "a GGUF file; convert it"),
    "48 lfs": (
        lambda _: b"version https://git-lfs.github.com/spec/v1",
        "a Git LFS pointer, not the file itself; convert it",
    ),
    "48 html": (lambda _: b"<!DOCTYPE html>", "an HTML page; convert it"),
    "43 bool in shape": (lambda _: header({"a": row(0, 1, [True])}, b"x"), "shape of tensor 'a'"),
    "50 a bit of the optimizer": (flipped_state, "it is damaged"),
    "50 one flipped bit": (flipped, "it is damaged"),
    "50 one byte of the metadata": (changed, "it is damaged"),
    "48 foreign": (lambda _: header({"a": row(0, 4)}, b"1234"), "not a checkpoint of gradcli"),
}


def test_a_checkpoint_behind_the_run_that_cannot_be_used(refused: Refused, stopped: Path) -> None:
    message = "last@2 names the checkpoint '2', and --checkpoint names 'best'; keep one of them"
    refused(2, message, "eval", "last@2", "--checkpoint", "best")
    for which in ("3", "newest", ""):
        for command in ("eval", "predict", "resume"):
            more = ["dots.yaml"] if command == "predict" else []
            ended = refused(
                7, f"has no checkpoint '{which}'; steps: 4, 2", command, f"last@{which}", *more
            )
            assert "choose best, last or one of these steps" in ended.err
    refused(7, "@2 is not where the run stands: it goes on from", "resume", "last@2")


def test_a_fork_that_cannot_be(refused: Refused, stopped: Path) -> None:
    ended = refused(2, "that is a new run; a resumed", "resume", "last", "-s", "train.seed=2")
    run = stopped.parents[1]
    assert "optim.KEY (all but name, no_decay, groups), schedule, train.capture" in ended.err
    assert f"gradcli train {run / 'resolved.yaml'} --from {run} -s train.seed=2" in ended.err
    ended = refused(7, "4 tensors missing", "resume", "last", "-s", "optim.amsgrad=true")
    assert "train --from takes the weights of a run alone" in ended.err


MISSING = [
    ("dost", "there is no file dost, and no run 'dost' in runs; did you mean 'dots'?", "RUN@best"),
    ("none.safetensors", "there is no file none.safetensors, and no run", "a safetensors file"),
    ("dots@3", "no checkpoint '3'; steps: 4, 2", "choose best, last or one of these steps"),
    ("runs", "there is no file runs, and runs is not a run: it has no resolved.yaml", "RUN@last"),
]


@pytest.mark.parametrize(("name", "message", "cure"), MISSING)
@pytest.mark.parametrize("command", ["train", "check"])
def test_first_weights_that_are_not_there(
    gradcli: Refused, stopped: Path, command: str, name: str, message: str, cure: str
) -> None:
    text = Path("dots.yaml").read_text() + f"pretrained: {{from: {name}}}\n"
    Path("new.yaml").write_text(text)
    ended = gradcli(command, "new.yaml")
    said = ended.err + ended.out
    assert ended.code == 7
    for part in ("error[E70", "pretrained.from: ", message, cure):
        assert part in said
    assert f"new.yaml:{len(text.splitlines())}:20" in said
    assert len(list(Path("runs").iterdir())) == 1


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_checkpoint_is_refused_and_the_older_one_used(
    gradcli: Refused, refused: Refused, stopped: Path, name: str
) -> None:
    change, reason = BROKEN[name]
    stopped.write_bytes(change(stopped.read_bytes()))
    ended = refused(7, reason, "eval", "last")
    assert len(ended.err.splitlines()) == 2
    assert "other checkpoints: --checkpoint 2" in ended.err
    ended = gradcli("resume", "last", "-s", "train.epochs=1")
    assert ended.code == 0
    assert f"skipped {NAME}" in ended.err
    assert reason in ended.err


def without(found: Checkpoint, name: str) -> Checkpoint:
    tensors = {key: value for key, value in found.tensors.items() if key != name}
    return Checkpoint(found.meta, tensors)


def having(found: Checkpoint, name: str, one: RawTensor) -> Checkpoint:
    return Checkpoint(found.meta, {**found.tensors, name: one})


FLOAT = RawTensor("F32", (1,), struct.pack("<f", 1))
DOUBLES = RawTensor("F64", (8,), bytes(64))
MISFITS: dict[str, tuple[Callable[[Checkpoint], Checkpoint], str, str]] = {
    "missing": (
        lambda found: without(found, "model.0.bias"),
        "1 tensor missing, 0 left over, 0 of another shape or dtype",
        "missing: model.0.bias F32[8]",
    ),
    "extra": (
        lambda found: having(found, "model.9.x", FLOAT),
        "0 tensors missing, 1 left over, 0 of another shape or dtype",
        "not in the model: model.9.x F32[1]",
    ),
    "shape": (
        lambda found: having(found, "model.0.bias", FLOAT),
        "0 left over, 1 of another shape or dtype",
        "model.0.bias: the checkpoint has F32[1], the model F32[8]",
    ),
    "dtype": (
        lambda found: having(found, "model.0.bias", DOUBLES),
        "0 left over, 1 of another shape or dtype",
        "model.0.bias: the checkpoint has F64[8], the model F32[8]",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_tensors_that_do_not_fit_are_listed(refused: Refused, stopped: Path, name: str) -> None:
    change, message, line = MISFITS[name]
    rewrite(stopped, change)
    assert line in refused(7, message, "eval", "last").err
    assert line in refused(7, message, "resume", "last").err


@pytest.mark.parametrize("name", MISFITS)
def test_what_fits_is_used_only_when_asked_for(gradcli: Refused, stopped: Path, name: str) -> None:
    change, message, line = MISFITS[name]
    rewrite(stopped, change)
    ended = gradcli("eval", "last", "--partial")
    assert ended.code == 0
    assert f"skipped: {line}" in ended.err
    assert message in ended.err


def test_weights_that_are_not_finite_need_a_flag(
    gradcli: Refused, refused: Refused, stopped: Path
) -> None:
    values = struct.pack("<8f", math.nan, math.inf, *range(6))
    rewrite(stopped, lambda found: having(found, "model.0.bias", RawTensor("F32", (8,), values)))
    warning = f"weight 0.bias of {NAME} holds 2 non-finite values"
    ended = gradcli("eval", "last")
    assert (ended.code, f"warning: {warning}" in ended.err) == (0, True)
    assert "--allow-nonfinite" in refused(5, warning, "resume", "last").err
    ended = gradcli("resume", "last", "--allow-nonfinite")
    assert f"warning: {warning}" in ended.err
    assert (ended.code, "the loss of step 5 is nan" in ended.err) == (5, True)


def test_a_newer_format_names_both_versions(refused: Refused, stopped: Path) -> None:
    rewrite(stopped, lambda found: Checkpoint(replace(found.meta, format=3), found.tensors))
    refused(7, "format: the checkpoint has 3, this gradcli reads 1 to 2", "eval", "last")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: adam", "name: adamw", "optimizer: the checkpoint has adam, the config adamw"),
        ("seed: 5", "seed: 6", "seed: the checkpoint has 5, the config 6"),
        ("out: 8", "out: 9", "model: the checkpoint has"),
    ],
)
def test_a_checkpoint_of_another_training_names_the_field(
    refused: Refused, stopped: Path, old: str, new: str, message: str
) -> None:
    config = stopped.parents[1] / "resolved.yaml"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
    refused(7, message, "resume", "last")


KILL_WHILE_SAVING = """
import os
from gradcli.train import atomic
fsync, calls = os.fsync, []
def last(handle):
    name = os.readlink(f'/proc/self/fd/{handle}')
    calls.append(name) if name.endswith('.tmp') and '/checkpoints/' in name else None
    os.kill(os.getpid(), 9) if len(calls) == COUNT else fsync(handle)
os.fsync = last
"""


@needs_proc
@pytest.mark.parametrize("count", [1, 2])
def test_killed_while_saving(gradcli: Refused, count: int) -> None:
    """The first save: step 0. A later one: the checkpoint before it."""
    every = ("-s", "train.checkpoint_every=2")
    kill = KILL_WHILE_SAVING.replace("COUNT", str(count))
    assert finish(begin(Path.cwd(), "train", "dots.yaml", *every, before=kill)).code == -9
    (stale,) = (only_run() / "checkpoints").glob("*.tmp")
    ended = gradcli("resume", "last")
    assert (ended.code, stale.exists()) == (0, False)
    assert f"removed {stale.name}, left by a killed run" in ended.err
    assert ("it goes on from step 0" in ended.err) == (count == 1)


@pytest.mark.parametrize(
    "name", ["..", "../out", "a/../b", "/tmp/x", "a\nb", "a\x1b[2J", ".hidden"]
)
def test_a_name_that_leads_elsewhere_is_refused(refused: Refused, name: str) -> None:
    ended = refused(2, "cannot be a run's name", "train", "dots.yaml", "--name", name)
    assert "\x1b" not in ended.err
    assert sorted(one.name for one in Path().iterdir()) == ["dots.yaml"]
    Path("dots.yaml").write_text(Path("dots.yaml").read_text().replace("dots", json.dumps(name)))
    refused(2, "name", "train", "dots.yaml")


def test_a_link_out_of_the_runs_is_not_followed(gradcli: Refused, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    Path("runs").mkdir()
    Path("runs/dots").symlink_to(outside)
    ended = gradcli("train", "dots.yaml")
    assert (ended.code, "is a link that leads out of runs" in ended.err) == (7, True)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["../../../secret", "/etc/passwd", "step-00000004.safetensors/..", "\x1b"]
)
def test_a_pointer_that_leads_elsewhere_is_not_followed(
    gradcli: Refused, refused: Refused, stopped: Path, text: str
) -> None:
    run = stopped.parents[1]
    (run / "best").write_text(text)
    refused(7, "has no checkpoint 'best'", "eval", "last", "--checkpoint", "best")
    refused(7, "where train.best names a figure", "eval", "last", "--checkpoint", "best")
    refused(7, "has no checkpoint", "eval", "last", "--checkpoint", text)
    (run / "last").write_text(text)
    assert gradcli("eval", "last").code == 0


def test_a_checkpoint_that_is_a_link_is_not_opened(refused: Refused, stopped: Path) -> None:
    elsewhere = Path("elsewhere.safetensors").absolute()
    stopped.rename(elsewhere)
    stopped.symlink_to(elsewhere)
    refused(7, "not a regular file", "eval", "last")
