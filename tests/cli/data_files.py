"""Small files as the pages on data have them, made in the current folder."""

from __future__ import annotations

import random
from array import array
from pathlib import Path

import pytest


def table(draw: random.Random) -> None:
    rows = []
    for number in range(600):
        area, rooms, city = draw.uniform(40, 300), draw.randint(1, 8), draw.choice(["Lyon", "Nice"])
        garage = draw.choice(["yes", "no", ""])
        price = 2000 * area + 20000 * rooms + 90000 * (city == "Nice") + draw.gauss(0, 9000)
        gap = "" if draw.random() < 0.05 else f"{area:.1f}"
        rows.append(f"{number},{gap},{rooms},{city},{garage},{price:.0f}")
    Path("houses.csv").write_text("\n".join(["id,area,rooms,city,garage,price", *rows]))
    Path("new.csv").write_text("area,rooms,city,garage\n100,3,Lyon,yes\n,5,Nice,no\n")


def pictures(draw: random.Random) -> None:
    image = pytest.importorskip("PIL.Image")
    drawing = pytest.importorskip("PIL.ImageDraw")

    def save(path: Path, kind: str) -> None:
        made = image.new("RGB", (draw.randint(40, 70), draw.randint(40, 70)))
        left, top, side = draw.randint(0, 15), draw.randint(0, 15), draw.randint(15, 25)
        shape = drawing.Draw(made).ellipse if kind == "circle" else drawing.Draw(made).rectangle
        shape(
            (left, top, left + side, top + side),
            fill=(255, 0, 0) if kind == "circle" else (0, draw.randint(99, 255), 255),
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        made.save(path)

    for kind in ("circle", "square"):
        for number in range(50):
            save(Path("shapes", kind, f"{number}.png"), kind)
        for number in range(5):
            save(Path("labelled", kind, f"{number}.jpg"), kind)
        save(Path("folder", f"{kind}.png"), kind)
    save(Path("new.png"), "square")


def text(draw: random.Random) -> None:
    words = [["big", "small"], ["cat", "dog"], ["mat", "bed"]]
    line = "the {} {} sat on the {}.\n"
    Path("story.txt").write_text(
        "".join(line.format(*(draw.choice(each) for each in words)) for _ in range(2000))
    )


def tokens(draw: random.Random) -> None:
    numbers = array("H", (min(511, int(draw.expovariate(0.02))) for _ in range(20000)))
    Path("train.bin").write_bytes(numbers.tobytes())


def arrays(draw: random.Random) -> None:
    numpy = pytest.importorskip("numpy", reason="of the extra 'parity'")
    signals = numpy.random.default_rng(draw.randrange(9)).normal(size=(800, 6))
    outputs = numpy.stack([signals[:, 0] * 2 + 5, (signals**2).sum(1)], 1)
    numpy.savez("sensor.npz", signals=signals, outputs=outputs)
    numpy.savez("new.npz", signals=signals[:3])


def series(draw: random.Random) -> None:
    rows = []
    for hour in range(800):
        warmth = 15 + 8 * (hour % 24) / 24 + draw.gauss(0, 1)
        rows.append(f"{warmth:.2f},{300 - 4 * warmth + draw.gauss(0, 3):.2f}")
    Path("power.csv").write_text("\n".join(["warmth,load", *rows]))
