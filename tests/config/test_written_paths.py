"""Each key that takes a path, with paths that no file can have: one mistake among the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.config.load import load
from gradcli.errors import ErrorGroup

CONFIG = """\
gradcli: 1
name: paths
{key}
{data}
model: [flatten, {{linear: 10}}]
loss: cross_entropy
optim: {{name: sgd, lr: 0.1}}
train: {{steps: 2, batch: 2, unknown: 3}}
"""
PLAIN = "data: {name: csv, file: table.csv, target: c, split: {train: 4, val: 2}}"
DATA = [
    "data: {name: mnist, dir: PATH}",
    "data: {name: cifar10, dir: PATH}",
    "data: {name: image_folder, dir: PATH, size: 8}",
    "data: {name: image_folder, dir: '.', val: PATH, size: 8}",
    "data: {name: csv, file: PATH, target: c}",
    "data: {name: csv, file: table.csv, test: PATH, target: c}",
    "data: {name: text, file: PATH, context: 4}",
    "data: {name: npz, file: PATH, inputs: x, targets: y}",
    "data: {name: npy, inputs: PATH, targets: table.csv}",
]
KEYS = ["code: [PATH.py]", "pretrained: {from: PATH}", "extends: PATH.yaml"]
PATHS = ["x" * 300, "x" * 5000, "/x" * 4000, "loop", "table.csv/x", "~nobody/x"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text("n,c\n" + "".join(f"{i},{i % 2}\n" for i in range(6)))
    for name in ("loop", "loop.py", "loop.yaml"):
        (tmp_path / name).symlink_to(name)
    return tmp_path


def places_of_mistakes(text: str, folder: Path) -> list[int]:
    """The line of each mistake in a config; an error without a place fails."""
    (folder / "config.yaml").write_text(text)
    with pytest.raises(ErrorGroup) as caught:
        load(folder / "config.yaml", ())
    return [error.location.line for error in caught.value.errors]


@pytest.mark.parametrize("path", [*PATHS, '"a\\0b"'], ids=lambda path: path[:9])
@pytest.mark.parametrize("data", DATA)
def test_data_at_a_path_that_no_file_has_is_one_of_the_mistakes(
    folder: Path, data: str, path: str
) -> None:
    if "image_folder" in data:
        pytest.importorskip("PIL", reason="it reads them")
    text = CONFIG.format(key="metrics: [accuracy]", data=data.replace("PATH", path))
    assert {4, 8} <= set(places_of_mistakes(text, folder))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:9])
@pytest.mark.parametrize("key", KEYS)
def test_a_key_with_a_path_that_no_file_has_is_one_of_the_mistakes(
    folder: Path, key: str, path: str
) -> None:
    text = CONFIG.format(key=key.replace("PATH", path), data=PLAIN)
    lines = set(places_of_mistakes(text, folder))
    assert lines == {3} if "extends" in key else {3, 8} <= lines


def test_weights_at_a_path_with_a_zero_byte_are_one_of_the_mistakes(folder: Path) -> None:
    text = CONFIG.format(key='pretrained: {from: "a\\0b"}', data=PLAIN)
    assert {3, 8} <= set(places_of_mistakes(text, folder))
