"""Transforms of training images: the list `augment:` of a config, and what each does to a batch.

A transform gets images (N, C, H, W) in the unit of the data, before they are normalised, and a row
of random numbers for each of them, which depends on nothing but seed, epoch and sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.errors import ConfigError
from gradcli.registry import did_you_mean


@dataclass(frozen=True)
class Transform:
    """One entry of `augment:`; its fields are its keys, the first one may be given alone.

    Attributes:
        NUMBERS: how many random numbers it takes for each sample.
    """

    NUMBERS: ClassVar[int] = 1

    def apply(self, x: Tensor, u: Tensor) -> Tensor:
        """The images changed as `u` says: (N, NUMBERS) float64 in [0, 1)."""
        raise NotImplementedError(f"{type(self).__name__} has no apply")


@dataclass(frozen=True)
class Crop(Transform):
    """`padding` zeros on all sides, of which a window of the old size is cut at a random place."""

    padding: int = 4
    NUMBERS: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _within("padding", self.padding, 1, 1 << 14)

    def apply(self, x: Tensor, u: Tensor) -> Tensor:
        """Row i comes from row i + a shift of -padding to padding; columns likewise."""
        shift = (u * (2 * self.padding + 1)).floor() - self.padding
        return _affine(x, (1, 0, shift[:, 0], 0, 1, shift[:, 1]))


@dataclass(frozen=True)
class HFlip(Transform):
    """Left and right change places with probability p."""

    p: float = 0.5

    def __post_init__(self) -> None:
        _within("p", self.p, 0, 1)

    def apply(self, x: Tensor, u: Tensor) -> Tensor:
        """Column j comes from column W - 1 - j where u < p."""
        flip = _below(u, self.p)
        return _affine(x, (1, 0, 0, 0, 1 - 2 * flip, (x.shape[3] - 1) * flip))


@dataclass(frozen=True)
class VFlip(HFlip):
    """Top and bottom change places with probability p."""

    def apply(self, x: Tensor, u: Tensor) -> Tensor:
        """Row i comes from row H - 1 - i where u < p."""
        flip = _below(u, self.p)
        return _affine(x, (1 - 2 * flip, 0, (x.shape[2] - 1) * flip, 0, 1, 0))


@dataclass(frozen=True)
class Rotate(Transform):
    """Turned about the centre by an angle of -degrees to degrees; bilinear, zeros outside."""

    degrees: float = 10.0

    def __post_init__(self) -> None:
        _within("degrees", self.degrees, 0, 180)

    def apply(self, x: Tensor, u: Tensor) -> Tensor:
        """The place of a pixel less the centre, turned, plus the centre."""
        angle = (2 * u[:, 0] - 1) * math.radians(self.degrees)
        cosine, sine = angle.cos(), angle.sin()
        row, column = (x.shape[2] - 1) / 2, (x.shape[3] - 1) / 2
        down = row - cosine * row + sine * column
        right = column - sine * row - cosine * column
        return _affine(x, (cosine, -sine, down, sine, cosine, right))


@dataclass(frozen=True)
class Cutout(Transform):
    """A square of `size` pixels about a random pixel becomes `fill` (DeVries and Taylor, 2017)."""

    size: int = 8
    fill: float = 0.0
    NUMBERS: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _within("size", self.size, 1, 1 << 14)
        _within("fill", self.fill, -math.inf, math.inf)

    def apply(self, x: Tensor, u: Tensor) -> Tensor:
        """Part of the square may lie outside."""
        inside = []
        for d, extent in enumerate(x.shape[2:]):
            first = (u[:, d] * extent).floor().reshape(-1, 1) - self.size // 2
            at = engine.arange(extent, dtype=engine.float64).reshape(1, -1)
            inside.append((at >= first).logical_and(at < first + self.size))
        rows, columns = inside[0].unsqueeze(2), inside[1].unsqueeze(1)
        square = rows.logical_and(columns).unsqueeze(1)
        return engine.where(square, engine.full((), self.fill), x)


@dataclass(frozen=True)
class Mixup(Transform):
    """A share of another training sample in each, input and target alike (Zhang et al., 2018).

    x becomes t x + (1 - t) x' with t from Beta(alpha, alpha); a label becomes the probabilities t
    and 1 - t of two classes. x' is any sample of the split, as this epoch changes it.
    """

    alpha: float = 0.2
    NUMBERS: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _within("alpha", self.alpha, 0.01, 1)

    def apply(self, x: Tensor, u: Tensor) -> Tensor:
        """Nothing by itself: mixing (augmented.py) comes after all other transforms."""
        del u
        return x


TRANSFORMS: dict[str, type[Transform]] = {
    "crop": Crop,
    "hflip": HFlip,
    "vflip": VFlip,
    "rotate": Rotate,
    "cutout": Cutout,
    "mixup": Mixup,
}


def transforms(items: Sequence[object]) -> tuple[Transform, ...]:
    """The transforms of a config's list: `name`, `name: value` or `name: {keys}` each."""
    chain = tuple(_transform(item, f"augment[{i}]") for i, item in enumerate(items))
    if sum(isinstance(each, Mixup) for each in chain) > 1:
        raise ConfigError("augment has mixup twice; once is enough", code="E104")
    return chain


def _transform(item: object, where: str) -> Transform:
    entry = {item: {}} if isinstance(item, str) else item
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise ConfigError(
            f"{where} must be a name, name: value or name: {{keys}}, got {item!r}", code="E104"
        )
    [(name, values)] = entry.items()
    if name not in TRANSFORMS:
        hint = did_you_mean(str(name), TRANSFORMS, f"known: {', '.join(TRANSFORMS)}")
        raise ConfigError(f"{where}: no transform is called '{name}'; {hint}", code="E102")
    kind = TRANSFORMS[name]
    keys = {field.name: field.type for field in fields(kind)}
    arguments = values if isinstance(values, Mapping) else {next(iter(keys)): values}
    try:
        return kind(**{key: _number(key, value, keys) for key, value in arguments.items()})
    except ConfigError as error:
        raise ConfigError(f"{where}, {name}: {error.message}", code=error.code) from None


def _number(key: Any, value: Any, keys: Mapping[str, object]) -> float:
    if key not in keys:
        hint = did_you_mean(str(key), keys, f"it takes {', '.join(keys)}")
        raise ConfigError(f"no key '{key}'; {hint}", code="E103")
    whole = keys[key] == "int"
    if type(value) is int or (type(value) is float and not whole):
        return value if whole else float(value)
    kind = "a whole number" if whole else "a number"
    raise ConfigError(f"{key} must be {kind}, got {value!r}", code="E104")


def _within(key: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high or not math.isfinite(value):
        raise ConfigError(f"{key} must be {low:g} to {high:g}, got {value:g}", code="E104")


def _below(u: Tensor, p: float) -> Tensor:
    """1 where a number of (N, 1) is below p, else 0: (N,) float64."""
    return (u[:, 0] < p).to(u.dtype)


def _affine(x: Tensor, numbers: Sequence[Tensor | float]) -> Tensor:
    """`engine.affine` with one number for all images, or one for each, at every place."""
    count = x.shape[0]
    columns = [
        engine.full((count,), each, dtype=engine.float64) if isinstance(each, int | float) else each
        for each in numbers
    ]
    return engine.affine(x, engine.stack(columns, dim=1).to(x.dtype))
