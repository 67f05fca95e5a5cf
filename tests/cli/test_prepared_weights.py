"""The same weights from data in memory and from data that was prepared, on 1 and 2 threads."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli

from gradcli.data import files, long_text, picture_files, text

__all__ = ["gradcli"]

HEAD = "gradcli: 1\nname: it\nloss: cross_entropy\noptim: {name: adam, lr: 0.01}\n"
MODELS = {
    "pictures": """\
data: {name: image_folder, dir: pets, size: 6, cache: kept, split: {train: 80%, val: 20%}}
model: [flatten, linear: 8, relu, linear: $data.classes]
train: {epochs: 3, batch: 4}
""",
    "characters": """\
data: {name: text, file: story.txt, context: 8, cache: kept}
model: [embed: 8, lstm: 8, linear: $data.vocab]
train: {steps: 12, batch: 4}
""",
}
MODELS["archive"] = """\
data: {name: npz, file: data.npz, inputs: x, targets: y, cache: kept, split: {train: 80%, val: 20%}}
model: [linear: 8, relu, linear: $data.classes]
train: {epochs: 3, batch: 4}
"""
MODELS["bytes"] = MODELS["characters"].replace("context", "unit: bytes, context")


def pets() -> None:
    image = pytest.importorskip("PIL.Image")
    draw = random.Random(1)
    for number in range(30):
        path = Path("pets", ("cat", "dog")[number % 2], f"{number}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        image.frombytes("RGB", (8, 7), draw.randbytes(168)).save(path)


def story() -> None:
    draw = random.Random(2)
    Path("story.txt").write_text("".join(draw.choice("abcdeé \n") for _ in range(2000)))


def archive() -> None:
    numpy = pytest.importorskip("numpy")
    draw = numpy.random.default_rng(1)
    numpy.savez("data.npz", x=draw.random((30, 5)), y=numpy.arange(30) % 3)


MADE = {"pictures": pets, "characters": story, "bytes": story, "archive": archive}


def shrink(patch: pytest.MonkeyPatch) -> None:
    """What is small otherwise is prepared."""
    patch.setattr(picture_files, "SMALL_FILES", 4)
    patch.setattr(files, "LARGE", 100)
    patch.setattr(text, "SMALL_GZIP", -1)
    patch.setattr(text, "SMALL", -1)
    patch.setattr(long_text, "_PORTION", 100)
    patch.setattr(long_text, "_COUNTED", 300)


@pytest.mark.parametrize("kind", MODELS)
def test_the_weights_are_those_of_data_in_memory(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    MADE[kind]()
    Path("it.yaml").write_text(HEAD + MODELS[kind])

    def trained(*options: str) -> tuple[object, ...]:
        made = gradcli("train", "it.yaml", "--json", "--no-report", *options)
        assert made.code == 0, made.err
        run = Path(made.json["run"])
        manifest = json.loads((run / "manifest.json").read_text())
        return made.json["weights_sha256"], manifest["data"], made.json["metrics"]

    memory = trained("--threads", "1")
    assert not Path("kept").exists()
    assert trained("--threads", "2") == memory
    shrink(monkeypatch)
    assert trained("--threads", "1") == memory
    sets = [path for path in Path("kept").iterdir() if path.name != "known"]
    assert len(sets) == (2 if kind == "archive" else 1)
    assert trained("--threads", "2") == memory
    stopped = gradcli("train", "it.yaml", "--json", "--no-report", "--max-steps", "7")
    resumed = gradcli("resume", "last", "--json", "--no-report")
    assert (stopped.code, resumed.code) == (0, 0), resumed.err
    assert resumed.json["weights_sha256"] == memory[0]
    assert [path for path in Path("kept").iterdir() if path.name != "known"] == sets
