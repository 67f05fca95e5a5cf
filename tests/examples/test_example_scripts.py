"""The scripts in examples/ do what they say, in a short form."""

from __future__ import annotations

import importlib.util
import math
import random
import re
import struct
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradcli import engine
from gradcli.cli.main import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(autouse=True)
def _beside_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts find each other, as they do when Python runs one of them."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


def example(name: str) -> ModuleType:
    """A script as a module, without running its main part."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sin_squared_has_the_losses_that_the_article_prints() -> None:
    losses = example("sin_squared").train()
    assert [round(loss, 4) for loss in (losses[0], losses[-1], min(losses))] == [
        1.7035,
        0.1297,
        0.1220,
    ]
    assert losses == pytest.approx(_in_plain_python(), abs=1e-5)


def _in_plain_python() -> list[float]:
    """The same training in float64, one number at a time."""
    random.seed(1)
    w1, b1, w2 = ([random.uniform(-1, 1) for _ in range(10)] for _ in range(3))
    b2, losses = random.uniform(-1, 1), []
    for _ in range(10):
        for x in (0.4 * i for i in range(51)):
            h = [1 / (1 + math.exp(-w * x - b)) for w, b in zip(w1, b1, strict=True)]
            off = sum(w * a for w, a in zip(w2, h, strict=True)) + b2 - math.sin(x) ** 2
            loss, step = off * off, 0.001 * 2 * off
            slopes = [step * w * a * (1 - a) for w, a in zip(w2, h, strict=True)]
            w2 = [w - step * a for w, a in zip(w2, h, strict=True)]
            w1 = [w - slope * x for w, slope in zip(w1, slopes, strict=True)]
            b1 = [b - slope for b, slope in zip(b1, slopes, strict=True)]
            b2 -= step
        losses.append(loss)
    return losses


def pixels(path: Path) -> list[list[int]]:
    """The rows of a grey PNG file; its checksums are right."""
    rest, chunks = path.read_bytes(), {}
    assert rest[:8] == b"\x89PNG\r\n\x1a\n"
    rest = rest[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, body = rest[4:8], rest[8 : 8 + length]
        assert struct.unpack(">I", rest[8 + length : 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind], rest = body, rest[12 + length :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 0, 0, 0, 0]
    flat = zlib.decompress(chunks[b"IDAT"])
    rows = [list(flat[at : at + width + 1]) for at in range(0, len(flat), width + 1)]
    assert len(rows) == height
    assert {row[0] for row in rows} == {0}
    return [row[1:] for row in rows]


def test_a_picture_holds_the_images_in_rows(tmp_path: Path) -> None:
    images = engine.tensor([[[0.0, 0.5, 1.0]], [[0.2, 0.4, 0.6]], [[-1.0, 2.0, 0.8]]])
    example("grey_png").save(tmp_path / "three.png", images, across=2, scale=1)
    first, second = [0, 128, 255, 0, 0, 51, 102, 153, 0, 0], [0, 255, 204, *[0] * 7]
    empty = [0] * 10
    assert pixels(tmp_path / "three.png") == [first, empty, empty, second, empty, empty]
    example("grey_png").save(tmp_path / "wide.png", images[:1], across=1, scale=2)
    assert pixels(tmp_path / "wide.png")[:2] == [[0, 0, 128, 128, 255, 255, *[0] * 4]] * 2


def test_an_autoencoder_is_shown_below_what_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = EXAMPLES.parent / "configs" / "mnist_autoencoder.yaml"
    assert run(["train", str(config), "--max-steps", "1", "--runs", str(tmp_path)]) == 0
    picture = tmp_path / "shown.png"
    options = ["--runs", str(tmp_path), "--out", str(picture)]
    monkeypatch.setattr(sys, "argv", ["show_autoencoder.py", "last", *options, "--across", "3"])
    example("show_autoencoder").main()
    rows = pixels(picture)
    assert (len(rows), len(rows[0])) == (2 * 4 * 30, 2 * 3 * 30)
    seven = rows[0:56]
    assert {seven[y][x] for y in (0, 1) for x in range(56)} == {0}  # MNIST has an empty rim
    assert max(map(max, seven)) == 255
    guess = [value for row in rows[60:116] for value in row[:56]]
    assert 100 < min(guess) <= max(guess) < 150  # what an untrained sigmoid says


def test_a_run_that_is_not_there_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["show_autoencoder.py", "none", "--runs", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        example("show_autoencoder").main()
    assert "no run 'none'" in capsys.readouterr().err


def test_both_networks_of_a_gan_learn_and_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = example("mnist_gan")
    made: list[Any] = []

    class Watched(script.Gan):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            networks = (self.generator, self.discriminator)
            made.append((self, [[p.clone() for p in one.parameters()] for one in networks]))

    monkeypatch.setattr(script, "Gan", Watched)
    picture = tmp_path / "drawings.png"
    options = ["--epochs", "1", "--steps", "4", "--out", str(picture)]
    monkeypatch.setattr(sys, "argv", ["mnist_gan.py", *options])
    script.main()
    ((gan, before),) = made
    assert len(gan.step.programs) == 1
    for network, old in zip((gan.generator, gan.discriminator), before, strict=True):
        moved = [not one.equal(then) for one, then in zip(network.parameters(), old, strict=True)]
        assert all(moved)
    said = re.fullmatch(
        r"epoch 1: discriminator (\S+), generator (\S+), \S+ s\n", capsys.readouterr().err
    )
    assert said is not None
    # Neither can know anything yet, and one that knows nothing has a loss of log 2.
    assert all(0.3 < float(loss) < 1.2 for loss in said.groups())
    rows = pixels(picture)
    assert (len(rows), len(rows[0])) == (2 * 4 * 30, 2 * 16 * 30)
    assert len({value for row in rows for value in row}) > 20


def test_spirals_are_learnt_by_a_loop_for_ranks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["spirals_on_ranks.py", "--epochs", "3"])
    example("spirals_on_ranks").main()
    *epochs, weights = capsys.readouterr().out.splitlines()
    losses = [float(line.rpartition(" ")[2]) for line in epochs]
    assert losses == sorted(losses, reverse=True) and len(losses) == 3
    assert re.fullmatch("weights [0-9a-f]{64}", weights)
