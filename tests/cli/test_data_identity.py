"""Which data a run was trained on: `resume` knows files by role and contents, in every layout."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from points import Ended, gradcli

from gradcli.train.checkpoint import write
from gradcli.train.directory import find_checkpoint

__all__ = ["gradcli"]

CONFIG = """\
gradcli: 1
name: same
data: {DATA}
model: {MODEL}
loss: {LOSS}
optim: {name: sgd, lr: 0.01}
train: {epochs: 2, batch: 2}
"""
OWN = """\
from pathlib import Path
import gradcli
from gradcli import engine


@gradcli.dataset
class Lines:
    file: Path
    test_file: Path

    def splits(self):
        def numbers(path):
            lines = path.read_text().splitlines()
            x = engine.tensor([[float(n) for n in line.split()] for line in lines])
            return x[:, :2].contiguous(), x[:, 2].contiguous().long()
        return {"train": numbers(self.file), "test": numbers(self.test_file)}
"""


def idx(*shape: int, payload: bytes) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + payload


def npy(*shape: int, payload: bytes) -> bytes:
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117)
    return b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head + b"\n" + payload


def npz(**arrays: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), array)  # without the time of day
    return packed.getvalue()


def png(drawn: random.Random) -> bytes:
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.frombytes("L", (4, 4), drawn.randbytes(16)).save(file, "PNG")
    return file.getvalue()


LABELS = bytes([0, 1, 2, 1, 0, 2])


def csv(drawn: random.Random) -> dict[str, bytes]:
    rows = [f"{drawn.random():.3f},{'ab'[i % 2]},{drawn.random():.3f}" for i in range(30)]
    return {"table.csv": "\n".join(["n,c,v", *rows, ""]).encode()}


def text(drawn: random.Random) -> dict[str, bytes]:
    return {"words.txt": ("abc" + "".join(drawn.choices("abc", k=400))).encode()}


def arrays(drawn: random.Random) -> dict[str, bytes]:
    x, y = npy(6, 3, payload=drawn.randbytes(18)), npy(6, payload=LABELS)
    test = npy(6, 3, payload=bytes(18))
    return {"tr/x.npy": x, "tr/y.npy": y, "te/x.npy": test, "te/y.npy": y}


def archive(drawn: random.Random) -> dict[str, bytes]:
    x, y = npy(6, 3, payload=drawn.randbytes(18)), npy(6, payload=LABELS)
    return {"all.npz": npz(x=x, t=y)}


def images(drawn: random.Random) -> dict[str, bytes]:
    x, y = idx(6, 2, 2, payload=drawn.randbytes(24)), idx(6, payload=LABELS)
    test = idx(6, 2, 2, payload=bytes(24))
    return {"tr/images": x, "tr/labels": y, "te/images": test, "te/labels": y}


def mnist(drawn: random.Random) -> dict[str, bytes]:
    found = images(drawn)
    return {
        f"{part}-{what}-idx{dims}-ubyte": found[f"{folder}/{what}"]
        for part, folder in (("train", "tr"), ("t10k", "te"))
        for what, dims in (("images", 3), ("labels", 1))
    }


def cifar(drawn: random.Random) -> dict[str, bytes]:
    last = {"data_batch_4.bin": bytes([4]) + drawn.randbytes(3072)}
    others = (*(f"data_batch_{i}.bin" for i in (1, 2, 3, 5)), "test_batch.bin")
    return dict.fromkeys(others, bytes(3073)) | last


def folders(drawn: random.Random) -> dict[str, bytes]:
    test = {f"te/pics/{name}/0.png": png(random.Random(0)) for name in "ab"}
    return {f"tr/pics/{name}/{i}.png": png(drawn) for name in "ab" for i in range(3)} | test


def own(drawn: random.Random) -> dict[str, bytes]:
    lines = [f"{drawn.random()} {drawn.random()} {i % 2}" for i in range(6)]
    return {"tr/rows.txt": "\n".join(lines).encode(), "te/rows.txt": b"0 0 0\n1 1 1"}


@dataclass(frozen=True)
class Layout:
    """Data in files: the config, what draws them, and the role and file that a draw changes."""

    data: str
    files: Callable[[random.Random], dict[str, bytes]]
    role: str
    file: str
    model: str = "[flatten, linear: $data.classes]"
    loss: str = "cross_entropy"

    def write(self, folder: str, seed: int) -> None:
        for name, content in self.files(random.Random(seed)).items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def config(self) -> str:
        filled = CONFIG.replace("{MODEL}", self.model).replace("{LOSS}", self.loss)
        return filled.replace("{DATA}", self.data)


NPY = "inputs: data/tr/x.npy, targets: data/tr/y.npy, test_inputs: data/te/x.npy"
IDX = "images: data/tr/images, labels: data/tr/labels, test_images: data/te/images"
PICTURES = "size: 4, color: gray, dir: data/tr/pics, test_dir: data/te/pics"


def shards(drawn: random.Random) -> dict[str, bytes]:
    return {"a.bin": bytes(100), "b.bin": drawn.randbytes(100)}


LAYOUTS = {
    "csv": Layout(
        "{name: csv, file: data/table.csv, target: c, numeric: [n]}", csv, "train", "table.csv"
    ),
    "csv of values": Layout(
        "{name: csv, file: data/table.csv, target: v, numeric: [n], task: regression}",
        csv,
        "train",
        "table.csv",
        "[linear: 1]",
        "mse",
    ),
    "text": Layout(
        "{name: text, file: data/words.txt, context: 8}",
        text,
        "train",
        "words.txt",
        "[embed: 4, linear: $data.vocab]",
    ),
    "tokens": Layout(
        "{name: tokens, file: data/*.bin, type: uint8, header: 4, context: 8}",
        shards,
        "train[1]",
        "b.bin",
        "[embed: 4, linear: $data.vocab]",
    ),
    "npy": Layout(
        f"{{name: npy, {NPY}, test_targets: data/te/y.npy}}", arrays, "train.inputs", "tr/x.npy"
    ),
    "npz": Layout(
        "{name: npz, file: data/all.npz, inputs: x, targets: t}", archive, "train", "all.npz"
    ),
    "idx": Layout(
        f"{{name: idx, {IDX}, test_labels: data/te/labels}}", images, "train.images", "tr/images"
    ),
    "mnist": Layout(
        "{name: mnist, dir: data}", mnist, "train.images", "train-images-idx3-ubyte"
    ),
    "cifar10": Layout("{name: cifar10, dir: data}", cifar, "train[3]", "data_batch_4.bin"),
    "image_folder": Layout(f"{{name: image_folder, {PICTURES}}}", folders, "train", "tr/pics"),
    "own code": Layout(
        "{name: lines, file: data/tr/rows.txt, test_file: data/te/rows.txt}\ncode: lines.py",
        own,
        "train",
        "",
    ),
}  # fmt: skip
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


def stopped(gradcli: Callable[..., Ended], layout: Layout) -> Path:
    """A run after its first step, on the data of seed 1."""
    layout.write("data", 1)
    Path("same.yaml").write_text(layout.config())
    Path("lines.py").write_text(OWN)
    ended = gradcli("train", "same.yaml", "--max-steps", "1")
    assert ended.code == 0, ended.err
    (run,) = Path("runs/same").iterdir()
    return run


@each_layout
def test_replaced_training_data_is_refused_with_role_and_file(gradcli, layout: Layout) -> None:
    stopped(gradcli, layout)
    layout.write("data", 2)
    ended = gradcli("resume", "last")
    assert ended.code == 7
    file = str(Path("data", layout.file).absolute()) if layout.file else ""
    shown = f"{layout.role} ({file})" if file else layout.role
    assert f"the data changed since the checkpoint: {shown}: sha256 was " in ended.err
    assert "--allow-data-change" in ended.err
    layout.write("data", 1)
    assert gradcli("resume", "last").code == 0


@each_layout
def test_moved_data_is_the_same_data(gradcli, layout: Layout) -> None:
    run = stopped(gradcli, layout)
    whole = gradcli("train", "same.yaml", "--name", "whole", "--json").json
    Path("data").rename("moved")
    assert gradcli("resume", str(run)).code in (2, 3)  # 2 where own code opens the file
    resolved = run / "resolved.yaml"
    here = Path.cwd()
    resolved.write_text(resolved.read_text().replace(f"{here}/data", f"{here}/moved"))
    resumed = gradcli("resume", str(run), "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["weights_sha256"] == whole["weights_sha256"]


def test_files_of_one_name_that_changed_places_are_refused(gradcli) -> None:
    stopped(gradcli, LAYOUTS["npy"])
    one, other = Path("data/tr/x.npy"), Path("data/te/x.npy")
    one.rename("aside")
    other.rename(one)
    Path("aside").rename(other)
    ended = gradcli("resume", "last")
    assert ended.code == 7
    assert f"test.inputs ({other.absolute()})" in ended.err
    assert f"train.inputs ({one.absolute()})" in ended.err


def test_another_array_of_the_same_archive_is_another_training(gradcli) -> None:
    run = stopped(gradcli, LAYOUTS["npz"])
    resolved = run / "resolved.yaml"
    resolved.write_text(resolved.read_text().replace("targets: t", "targets: other"))
    y = npy(6, payload=LABELS)
    Path("data/all.npz").write_bytes(npz(x=npy(6, 3, payload=bytes(18)), t=y, other=y))
    ended = gradcli("resume", str(run))
    assert ended.code == 7
    assert 'data.targets: the checkpoint has "t", the config "other"' in ended.err


def test_the_checkpoint_has_a_hash_for_each_role(gradcli) -> None:
    run = stopped(gradcli, LAYOUTS["npy"])
    roles = ["train.inputs", "train.targets", "test.inputs", "test.targets"]
    assert list(find_checkpoint(run, "last")[1].meta.data) == roles


def wide_csv(drawn: random.Random) -> dict[str, bytes]:
    rows = [f"{drawn.random():.3f},{'abc'[i % 3]}" for i in range(30)]
    return {"table.csv": "\n".join(["n,c", *rows, ""]).encode()}


def long_text(drawn: random.Random) -> dict[str, bytes]:
    return {"words.txt": ("abcdefg" + "".join(drawn.choices("abc", k=400))).encode()}


def more_folders(drawn: random.Random) -> dict[str, bytes]:
    return {f"tr/pics/{name}/{i}.png": png(drawn) for name in "abc" for i in range(3)}


@pytest.mark.parametrize(
    ("name", "files"),
    [("csv", wide_csv), ("text", long_text), ("image_folder", more_folders)],
    ids=["csv", "text", "image_folder"],
)
def test_replaced_data_that_the_model_does_not_fit_is_named_first(gradcli, name, files) -> None:
    layout = LAYOUTS[name]
    stopped(gradcli, layout)
    replace(layout, files=files).write("data", 2)
    ended = gradcli("resume", "last")
    assert ended.code == 7
    assert (
        f"changed since the checkpoint: train ({Path('data', layout.file).absolute()})" in ended.err
    )
    assert gradcli("resume", "last", "--allow-data-change").code == 2


def as_format_1(run: Path) -> None:
    """Makes the newest checkpoint what format 1 had: a hash by bare name, of two the last."""
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format": 1}))
    found = find_checkpoint(run, "last")[1]
    data = {Path(manifest["files"][role]).name: h for role, h in found.meta.data.items()}
    meta = replace(found.meta, format=1, data=data, facts=None, config_sha256="of then")
    write(run / "checkpoints", meta, found.tensors)


UNKNOWN_THEN = ("npy", "idx", "image_folder")  # training and test files have the same names


@pytest.mark.parametrize("name", ["npy", "idx", "image_folder", "cifar10"])
def test_a_run_of_format_1_knows_its_data_by_bare_names(gradcli, name: str) -> None:
    layout = LAYOUTS[name]
    run = stopped(gradcli, layout)
    as_format_1(run)
    last = min(path for path in Path("data").rglob("*") if path.is_file())  # in te, or batch 1
    content = last.read_bytes()
    changed = png(random.Random(9)) if last.suffix == ".png" else content[:-1] + b"\1"
    last.write_bytes(changed)
    ended = gradcli("resume", str(run))
    assert ended.code == 7
    assert "the data changed since the checkpoint: " in ended.err
    last.write_bytes(content)
    ended = gradcli("resume", str(run))
    assert ended.code == 0
    assert ("whether it changed is not known" in ended.err) == (name in UNKNOWN_THEN)
    if name in UNKNOWN_THEN:
        assert f"{layout.role} ({Path('data', layout.file).absolute()}): whether" in ended.err
