"""The same weights from memory and mapped, on one thread or two, from whatever step it goes on."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from points import Ended, gradcli

from gradcli.data import files, hashes

__all__ = ["gradcli"]

STEPS = 24
ARRAYS = """\
gradcli: 1
data: {name: npy, inputs: x.npy, targets: y.npy, split: {train: 80%, val: 20%}, size: 8}
model: [conv: {out: 3, kernel: 3}, relu, flatten, dropout: 0.1, linear: $data.classes]
loss: cross_entropy
optim: {name: adamw, lr: 0.01}
train: {steps: 24, batch: 7, checkpoint_every: 5, keep: 9}
"""
TOKENS = """\
gradcli: 1
data: {name: tokens, file: part*.bin, vocab: 300, context: 6, stride: 2}
model: [embed: 8, gru: 8, linear: $data.vocab]
loss: cross_entropy
optim: {name: adamw, lr: 0.01}
train: {steps: 24, batch: 7, checkpoint_every: 5, keep: 9}
"""


def write(name: str, kind: str, shape: tuple[int, ...], numbers: Any) -> None:
    """A file as numpy.save writes it."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (117 - len(text)) + "\n"
    head = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little")
    Path(name).write_bytes(head + text.encode() + numbers.tobytes())


@pytest.fixture
def data(gradcli: Callable[..., Ended]) -> Callable[..., Ended]:
    draw = random.Random(3)
    numbers = [draw.gauss(0, 1) for _ in range(60 * 20)]
    write("x.npy", "<f4", (60, 1, 4, 5), array("f", numbers))
    write("y.npy", "<i8", (60,), array("q", (draw.randrange(3) for _ in range(60))))
    Path("arrays.yaml").write_text(ARRAYS)
    Path("tokens.yaml").write_text(TOKENS)
    for name in "abc":
        tokens = (min(299, int(draw.expovariate(0.02))) for _ in range(90))
        Path(f"part{name}.bin").write_bytes(b"".join(t.to_bytes(2, "little") for t in tokens))
    return gradcli


def trained(call: Callable[..., Ended], *arguments: str) -> Any:
    ended = call(*arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_arrays_give_the_same_weights_from_memory_and_mapped(
    data: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = trained(data, "train", "arrays.yaml")
    monkeypatch.setattr(files, "LARGE", 0)
    for threads in "12":
        mapped = trained(data, "train", "arrays.yaml", "--threads", threads)
        assert mapped["weights_sha256"] == memory["weights_sha256"]
    hashes = [
        json.loads((Path(one["run"]) / "manifest.json").read_text())["data"]
        for one in (memory, mapped)
    ]
    assert hashes[0] == hashes[1]
    assert None not in hashes[0].values()


@pytest.mark.parametrize("config", ["arrays", "tokens"])
def test_a_mapped_run_goes_on_to_the_same_weights_from_any_step(
    config: str, data: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGE", 0)
    whole = trained(data, "train", f"{config}.yaml")
    for threads, step in zip("12121", random.Random(7).sample(range(1, STEPS), 5), strict=True):
        stopped = trained(data, "train", f"{config}.yaml", "--max-steps", str(step))
        resumed = trained(data, "resume", stopped["run"], "--threads", threads)
        assert resumed["weights_sha256"] == whole["weights_sha256"]


def test_a_plan_tells_what_is_mapped_apart(
    data: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(data("plan", "arrays.yaml", "--json").out)["configs"][0]["memory"]
    monkeypatch.setattr(files, "LARGE", 0)
    after = json.loads(data("plan", "arrays.yaml", "--json").out)["configs"][0]["memory"]
    assert (before["mapped"], after["mapped"]) == (0, 60 * (4 * 20 + 8))
    saved = before["train"]["then"] - after["train"]["then"]
    assert saved > 0
    assert "mapped, not counted: " in data("plan", "arrays.yaml").out
    assert "mapped, not counted: " in data("check", "arrays.yaml").out


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "last", "--split", "val"),
        ("eval", "last", "--data", "new"),
        ("predict", "last", "new/tokens.bin"),
    ],
)
def test_no_figure_is_told_of_a_file_that_is_written_to_meanwhile(
    command: tuple[str, ...], data: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(data, "train", "tokens.yaml")
    Path("new").mkdir()
    Path("new/tokens.bin").write_bytes(Path("parta.bin").read_bytes())
    if "--data" in command:
        command = ("eval", "last", "--data", "new/tokens.bin")
    assert data(*command).code == 0

    def overwrite(closely: bool) -> None:
        for path in [*Path().glob("part?.bin"), Path("new/tokens.bin")]:
            with path.open("r+b") as file:
                file.write(b"\1\0")

    lookouts = [overwrite, *hashes.lookouts]
    monkeypatch.setattr(hashes, "lookouts", lookouts)
    ended = data(*command)
    assert (ended.code, ended.out) == (3, "")
    assert "was changed while it was in use" in ended.err


@pytest.mark.parametrize("way", ["cut off", "overwritten"])
def test_a_training_whose_shard_changes_ends_and_goes_on_from_its_last_checkpoint(
    way: str, data: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(data, "train", "tokens.yaml")
    path, looks = Path("partb.bin"), []
    content = path.read_bytes()

    def spoil(closely: bool) -> None:
        looks.append(closely)
        if looks.count(True) == 2 and closely:
            with path.open("r+b") as file:
                file.truncate(40) if way == "cut off" else file.write(b"\1\0\2\0")

    with monkeypatch.context() as patch:
        patch.setattr(hashes, "lookouts", [spoil, *hashes.lookouts])
        ended = data("train", "tokens.yaml")
    assert ended.code == 3
    assert "error[E312] data file" in ended.err and "partb.bin' was changed" in ended.err
    path.write_bytes(content)
    assert trained(data, "resume", "last")["weights_sha256"] == whole["weights_sha256"]
