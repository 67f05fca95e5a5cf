"""Transforms: each is what plain Python makes of the same numbers, and knows no other sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from idx_bytes import idx_bytes, labels, write
from reference_index import philox

from gradcli import engine
from gradcli.data.augment import transforms
from gradcli.data.augmented import PURPOSE, Augmented, epoch_state, shares
from gradcli.data.images import IdxSource
from gradcli.data.samples import Samples
from gradcli.errors import ConfigError, DataError

Image = list[list[float]]
COUNT, C, H, W = 5, 2, 6, 7
SEED, EPOCH = 11, 3
KEY = engine.Generator(SEED, purpose=PURPOSE).key


def samples() -> Samples:
    numbers = [(37 * i + i // 5) % 256 for i in range(COUNT * C * H * W)]
    images = engine.tensor(numbers, dtype=engine.uint8).reshape(COUNT, C, H, W)
    return Samples(images, engine.tensor([0, 1, 2, 1, 0]), 255.0, (0.25, 0.5), (0.5, 2.0))


def stored(sample: int, channel: int) -> Image:
    """A plane as float32 in 0..1."""
    return samples().raw(engine.tensor([sample]))[0, channel].tolist()


def drawn(sample: int, i: int) -> float:
    """Number i of a sample: 53 bits of two words of its draw."""
    high, low, *_ = philox(KEY, (i, sample, EPOCH, 0))
    return ((high << 32 | low) >> 11) / 2**53


def augmented(*written: Any) -> Augmented:
    return Augmented(samples(), transforms(written), 3)


def changed(split: Augmented, *indices: int, epoch: int = EPOCH) -> tuple[Any, Any]:
    return split.augment(engine.tensor(indices), epoch_state(SEED, engine.tensor([epoch])))


def at(image: Image, row: int, column: int) -> float:
    return image[row][column] if 0 <= row < H and 0 <= column < W else 0.0


def made(place: Callable[[int, int], float]) -> Image:
    return [[place(i, j) for j in range(W)] for i in range(H)]


def crop(image: Image, u: list[float]) -> Image:
    down, right = (math.floor(x * 5) - 2 for x in u)
    return made(lambda i, j: at(image, i + down, j + right))


def hflip(image: Image, u: list[float]) -> Image:
    return [row[::-1] for row in image] if u[0] < 0.5 else image


def vflip(image: Image, u: list[float]) -> Image:
    return image[::-1] if u[0] < 0.9 else image


def rotate(image: Image, u: list[float]) -> Image:
    angle = math.radians(40 * (2 * u[0] - 1))

    def place(i: int, j: int) -> float:
        y, x = i - (H - 1) / 2, j - (W - 1) / 2
        row = math.cos(angle) * y - math.sin(angle) * x + (H - 1) / 2
        column = math.sin(angle) * y + math.cos(angle) * x + (W - 1) / 2
        return sum(
            max(0, 1 - abs(row - r)) * max(0, 1 - abs(column - c)) * at(image, r, c)
            for r in range(H)
            for c in range(W)
        )

    return made(place)


def cutout(image: Image, u: list[float]) -> Image:
    top, left = math.floor(u[0] * H) - 1, math.floor(u[1] * W) - 1
    inside = lambda i, j: top <= i < top + 3 and left <= j < left + 3  # noqa: E731
    return made(lambda i, j: 0.5 if inside(i, j) else image[i][j])


ALL = [
    {"crop": 2},
    "hflip",
    {"vflip": {"p": 0.9}},
    {"rotate": 40},
    {"cutout": {"size": 3, "fill": 0.5}},
]
PLAIN = [(crop, 2), (hflip, 1), (vflip, 1), (rotate, 1), (cutout, 2)]


@pytest.mark.parametrize("which", [[0], [1], [2], [3], [4], [0, 1, 2, 3, 4], [4, 3, 0]])
def test_each_transform_is_what_plain_python_makes(which: list[int]) -> None:
    inputs, targets = changed(augmented(*(ALL[k] for k in which)), 4, 0, 2, 3)
    assert targets.tolist() == [0, 0, 2, 1]
    for row, sample in enumerate((4, 0, 2, 3)):
        for channel, (mean, std) in enumerate(((0.25, 0.5), (0.5, 2.0))):
            image, first = stored(sample, channel), 0
            for transform, count in (PLAIN[k] for k in which):
                image = transform(image, [drawn(sample, first + i) for i in range(count)])
                first += count
            wanted = [[(value - mean) / std for value in line] for line in image]
            for found, line in zip(inputs[row, channel].tolist(), wanted, strict=True):
                assert found == pytest.approx(line, abs=3e-6)


def test_a_sample_depends_on_seed_epoch_and_itself_alone() -> None:
    split = augmented(*ALL, {"mixup": 0.4})
    inputs, targets = changed(split, 0, 1, 2, 3, 4)
    for i in range(COUNT):
        alone = changed(split, i)
        assert alone[0].tolist() == [inputs[i].tolist()]
        assert alone[1].tolist() == [targets[i].tolist()]
    assert changed(split, 0, epoch=EPOCH + 1)[0].tolist() != [inputs[0].tolist()]


def test_mixup_is_a_share_of_two_changed_samples() -> None:
    inputs, targets = changed(augmented("hflip", {"mixup": 0.4}), 0, 1, 2, 3, 4)
    plain, labels = changed(augmented("hflip"), 0, 1, 2, 3, 4)
    for i in range(COUNT):
        t = shares(engine.tensor([drawn(i, 2)], dtype=engine.float64), 0.4).item()
        partner = math.floor(drawn(i, 1) * COUNT)
        wanted = t * plain[i] + (1 - t) * plain[partner]
        assert (inputs[i] - wanted).abs().amax().item() < 1e-6
        probabilities = [0.0] * 3
        probabilities[labels[i].item()] += t
        probabilities[labels[partner].item()] += 1 - t
        assert targets[i].tolist() == pytest.approx(probabilities, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.01, 0.2, 0.5, 0.9, 1.0])
def test_shares_have_the_moments_of_beta(alpha: float) -> None:
    u = (engine.arange(20_001, dtype=engine.float64) + 0.5) / 20_001
    t = shares(u, alpha)
    assert t.mean().item() == pytest.approx(0.5, abs=1e-6)
    variance = 1 / (4 * (2 * alpha + 1))
    assert ((t - 0.5) ** 2).mean().item() == pytest.approx(variance, rel=1e-3)
    fourth = 3 / (16 * (2 * alpha + 1) * (2 * alpha + 3))
    assert ((t - 0.5) ** 4).mean().item() == pytest.approx(fourth, rel=2e-3)
    assert (t[1:] - t[:-1]).amin().item() >= 0


def test_uniform_shares_are_the_numbers_themselves() -> None:
    u = engine.tensor([0.0, 0.1, 0.5, 0.9375], dtype=engine.float64)
    assert shares(u, 1.0).tolist() == pytest.approx(u.tolist(), abs=1e-12)


def source(folder: Path, **options: Any) -> IdxSource:
    pixels = bytes(i * 7 % 256 for i in range(4 * 6 * 6))
    names = write(folder, images=idx_bytes((4, 6, 6), pixels), labels=labels())
    return IdxSource(**names, split={"train": 2, "val": 2}, **options)


def test_only_the_training_split_changes(tmp_path: Path) -> None:
    loaded = source(tmp_path, augment=["hflip", {"crop": 1}]).load()
    plain = source(tmp_path).load()
    both = engine.tensor([0, 1])
    train, val = loaded.splits["train"], loaded.splits["val"]
    assert isinstance(train, Augmented) and isinstance(val, Samples)
    for name in ("train", "val"):  # a split that is measured is measured as it is stored
        found, wanted = (each.splits[name].batch(both) for each in (loaded, plain))
        assert [x.tolist() for x in found] == [x.tolist() for x in wanted]
    assert changed(train, 0, 1)[0].tolist() != val.batch(both)[0].tolist()


def test_an_image_that_is_its_own_target_changes_with_it(tmp_path: Path) -> None:
    split = source(tmp_path, augment=["hflip", "mixup"], target="input").load().splits["train"]
    inputs, targets = changed(split, 0, 1)
    assert inputs.tolist() == targets.tolist()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (["hflop"], r"augment\[0\]: no transform is called 'hflop'; did you mean 'hflip'"),
        (["hflip", 3], r"augment\[1\] must be a name"),
        ([{"crop": 2, "hflip": 1}], r"augment\[0\] must be a name"),
        ([{"crop": 0}], r"augment\[0\], crop: padding must be 1 to 16384, got 0"),
        ([{"crop": 1.5}], r"crop: padding must be a whole number, got 1.5"),
        ([{"crop": True}], r"crop: padding must be a whole number, got True"),
        ([{"hflip": {"q": 1}}], r"hflip: no key 'q'; it takes p"),
        ([{"hflip": 2}], r"hflip: p must be 0 to 1, got 2"),
        ([{"hflip": float("nan")}], r"hflip: p must be 0 to 1, got nan"),
        ([{"cutout": {"fill": float("inf")}}], r"cutout: fill must be"),
        ([{"mixup": 0}], r"mixup: alpha must be 0.01 to 1, got 0"),
        (["mixup", "mixup"], r"mixup twice"),
    ],
)
def test_mistakes_are_named_by_place_and_key(written: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        transforms(written)


def test_only_images_are_changed(tmp_path: Path) -> None:
    names = write(tmp_path, images=idx_bytes((2, 3), bytes(6)), labels=labels((0, 1)))
    with pytest.raises(DataError, match=r"augment changes images \(C, H, W\), here .* \(3,\)"):
        IdxSource(**names, augment=["hflip"]).facts()
