"""Checkpoints: written whole or not at all, any damage found, the newest valid one used."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from gradcli.errors import CheckpointError
from gradcli.train import checkpoint
from gradcli.train.atomic import remove_stale, write_file
from gradcli.train.checkpoint import Best, CheckpointMeta
from gradcli.train.safetensors_file import RawTensor, encode_header, layout

META = CheckpointMeta(
    step=400,
    epoch=2,
    seed=1,
    optimizer="adamw",
    config_sha256="ab",
    config={"train": {"batch": 4}},
    data={"x.gz": "cd"},
    best=Best("val.accuracy", 0.9, 300),
    metrics={"val.loss": 0.25, "val.accuracy": None},
)
TENSORS = {
    "model.weight": RawTensor("F32", (2, 2), struct.pack("<4f", 1, 2, 3, 4)),
    "optim.step": RawTensor("I64", (), struct.pack("<q", 400)),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    found = checkpoint.read(path)
    assert path.name == "step-00000400.safetensors"
    assert found.meta == META
    assert {name: bytes(one.data) for name, one in found.tensors.items()} == {
        name: one.data for name, one in TENSORS.items()
    }


def test_what_the_format_s_own_reader_refuses_is_never_kept(tmp_path: Path) -> None:
    """A range that does not fit its shape, as a mistake of our own writer would leave it."""
    wrong = {"model.weight": RawTensor("F32", (2, 3), struct.pack("<4f", 1, 2, 3, 4))}
    with pytest.raises(CheckpointError, match=r"step-00000400\.safetensors is no file that"):
        checkpoint.write(tmp_path, META, wrong)
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    data = path.read_bytes()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            checkpoint.read(path)


def test_every_truncation_is_found(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CheckpointError):
            checkpoint.read(path)


def test_random_damage_is_found(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    data = path.read_bytes()
    rng = random.Random(3)
    for _ in range(1000):
        changed = bytearray(data)
        at = rng.randrange(len(data))
        changed[at : at + rng.randint(0, 4)] = rng.randbytes(rng.randint(0, 4))
        if changed == data:
            continue
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            checkpoint.read(path)


def test_a_damaged_body_is_called_damaged(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="sha256"):
        checkpoint.read(path)


def test_the_newest_valid_one_is_used_and_the_others_named(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        checkpoint.write(tmp_path, replace(META, step=step), TENSORS)
    (tmp_path / checkpoint.file_name(3)).write_bytes(b"")
    name, found, notes = checkpoint.newest_valid(tmp_path)
    assert (name, found.meta.step) == (checkpoint.file_name(2), 2)
    assert len(notes) == 1
    assert "step-00000003" in notes[0]
    assert "0 bytes" in notes[0]


def test_without_a_valid_one_all_faults_are_told(tmp_path: Path) -> None:
    (tmp_path / checkpoint.file_name(3)).write_bytes(b"PK\x03\x04")
    with pytest.raises(CheckpointError, match="no valid checkpoint") as caught:
        checkpoint.newest_valid(tmp_path)
    assert "zip archive" in caught.value.notes[0]


def test_a_newer_format_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, replace(META, format=7), TENSORS)
    with pytest.raises(CheckpointError, match="has 7, this gradcli reads 1"):
        checkpoint.read(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("step", "400"), ("metrics", [1]), ("seconds", None), ("seed", None), ("config", "x")],
)
def test_metadata_of_other_types_is_refused(tmp_path: Path, field: str, value: object) -> None:
    header, _ = checkpoint._seal(META, TENSORS)
    blank = json.loads(header[8:])
    told = {**json.loads(blank["__metadata__"]["gradcli"]), field: value, "sha256": "0" * 64}
    zeroed = encode_header(TENSORS, {"gradcli": json.dumps(told)})
    bodies = b"".join(bytes(TENSORS[name].data) for name in layout(TENSORS))
    digest = hashlib.sha256(zeroed + bodies).hexdigest().encode()
    path = tmp_path / "step-00000400.safetensors"
    path.write_bytes(zeroed.replace(b"0" * 64, digest, 1) + bodies)
    with pytest.raises(CheckpointError, match=f"no usable '{field}'"):
        checkpoint.read(path)


def test_a_renamed_checkpoint_is_refused(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    path = path.rename(tmp_path / checkpoint.file_name(401))
    with pytest.raises(CheckpointError, match="holds step 400"):
        checkpoint.read(path)


def test_plain_weights_are_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / checkpoint.file_name(1)
    path.write_bytes(encode_header({}, {"format": "pt"}))
    with pytest.raises(CheckpointError, match="not a checkpoint of gradcli"):
        checkpoint.read(path)


def test_a_link_or_a_pipe_is_not_opened(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    link = tmp_path / checkpoint.file_name(1)
    link.symlink_to(path)
    pipe = tmp_path / checkpoint.file_name(2)
    os.mkfifo(pipe)
    for odd in (link, pipe):
        with pytest.raises(CheckpointError, match="not a regular file"):
            checkpoint.read(odd)


def test_at_least_two_and_the_best_are_kept(tmp_path: Path) -> None:
    for step in range(1, 6):
        checkpoint.write(tmp_path, replace(META, step=step), TENSORS)
    checkpoint.prune(tmp_path, keep=1, best=checkpoint.file_name(2))
    assert [checkpoint.step_of(name) for name in checkpoint.names(tmp_path)] == [5, 4, 2]


@pytest.mark.parametrize("call", ["fsync", "open", "replace"])
def test_a_full_disk_at_any_call_leaves_the_old_file(tmp_path, monkeypatch, call: str) -> None:
    path = checkpoint.write(tmp_path, META, TENSORS)
    before = path.read_bytes()

    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os if call == "fsync" else Path, call, full)
    with pytest.raises(CheckpointError, match="No space left"):
        checkpoint.write(tmp_path, replace(META, seconds=9.0), TENSORS)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_bytes_that_read_back_wrong_are_not_renamed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "_digest_of_file", lambda *_: "0" * 64)
    with pytest.raises(CheckpointError, match="reads back"):
        checkpoint.write(tmp_path, META, TENSORS)
    assert list(tmp_path.iterdir()) == []


def test_only_our_own_temporary_files_are_removed(tmp_path: Path) -> None:
    ours = tmp_path / ".gradcli-0123456789abcdef.tmp"
    others = [tmp_path / "x.tmp", tmp_path / ".gradcli-short.tmp", tmp_path / "notes.txt"]
    for path in (ours, *others):
        path.write_text("x")
    assert remove_stale(tmp_path) == [f"removed {ours.name}, left by a killed run"]
    assert sorted(tmp_path.iterdir()) == sorted(others)


def test_a_failed_verification_leaves_nothing(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        write_file(tmp_path / "x", [b"1"], refuse)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["../step-00000001.safetensors", "step-1.safetensors", "step-00000001.pt", "/etc/passwd"],
)
def test_other_names_are_no_checkpoint_names(name: str) -> None:
    assert checkpoint.step_of(name) is None
