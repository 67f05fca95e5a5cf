"""A first config for a folder of pictures, with a folder for each class."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from gradcli.data.decode import decode_image, require_pillow
from gradcli.data.files import path_text, read
from gradcli.data.folder import class_folders, list_images
from gradcli.data.image_formats import FORMATS
from gradcli.data.modes import GRAYS
from gradcli.errors import DataError
from gradcli.starter.draft import Bare, ConfigDraft, split_of
from gradcli.wording import quantity

LOOKED_AT = 50  # pictures, for their size and colour
FEWEST = 10
SIZES = (64, 48, 32, 28, 16)
STEPS = 400  # of a training, about


def draft_of_folder(folder: Path, config_path: str, name: str) -> ConfigDraft:
    """The config for the pictures in `folder`, written in it as `config_path`.

    Raises:
        DataError: it holds no pictures, too few, or one class.
    """
    require_pillow()
    folders = class_folders(folder)
    files = list_images(folders, tuple(folders))
    count = len(files.paths)
    if len(folders) < 2:
        only = path_text(next(iter(folders)))
        raise DataError(
            f"{path_text(folder)} has one folder, '{only}'; each class is a folder of pictures, "
            "and two are needed to tell apart",
            code="E305",
        )
    if count < FEWEST:
        raise DataError(
            f"{path_text(folder)} holds {quantity(count, 'picture')}; a model needs {FEWEST} or "
            "more to learn from some and be measured on others",
            code="E305",
        )
    size, gray = _look(files.paths[:: max(count // LOOKED_AT, 1)])
    data: dict[str, Any] = {"name": "image_folder", "dir": config_path, "size": size}
    data |= {"color": "gray"} if gray else {}
    data["split"] = split_of(count, classes=True)
    batch = 64 if count >= 4000 else 32 if count >= 400 else 16 if count >= 100 else 4
    epochs = min(max(round(STEPS * batch / count), 5), 40)
    kind = "gray picture" if gray else "picture"
    about = f"{quantity(count, kind)} of {quantity(len(folders), 'class')}."
    return ConfigDraft(
        name,
        (about,),
        data,
        _layers(size),
        "cross_entropy",
        ("accuracy",),
        "{name: adamw, lr: 2e-3, weight_decay: 0.01}",
        {"epochs": epochs, "batch": batch, "seed": 1, "best": Bare("val.loss")},
    )


def _look(paths: Sequence[Path]) -> tuple[int, bool]:
    """A size for these pictures, no larger than that of most, and whether all are gray."""
    from PIL import Image

    shorter, gray = [], True
    for path in paths:
        data = read(path)
        decode_image(data, 1, "gray", path_text(path))  # raises where it is no picture
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            shorter.append(min(image.size))
            gray = gray and image.mode in GRAYS
    return next((size for size in SIZES if size <= median(shorter)), SIZES[-1]), gray


def _layers(size: int) -> tuple[str, ...]:
    """Convolutions and pools until some 7 pixels are left."""
    layers: list[str] = []
    for channels in (16, 32, 64)[: 3 if size >= 48 else 2]:
        layers += [f"conv: {{out: {channels}, kernel: 3, padding: 1}}", "relu", "max_pool: 2"]
    return (*layers, "flatten", "linear: {out: $data.classes, name: head}")
