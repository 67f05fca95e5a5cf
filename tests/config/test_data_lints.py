"""W116: data that trains and is probably not meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli.config.load import load

TEXT = """\
gradcli: 1
data: {DATA}
model: [flatten, linear: OUT]
loss: LOSS
optim: adam
train: {epochs: 1, batch: 4}
"""


def warnings(folder: Path, data: str, loss: str = "mse", out: str = "1") -> list[Any]:
    """Those of a config with this data."""
    text = TEXT.replace("{DATA}", data).replace("LOSS", loss).replace("OUT", out)
    (folder / "c.yaml").write_text(text)
    return list(load(folder / "c.yaml").warnings)


def table(folder: Path, count: int) -> str:
    rows = "".join(f"{n % 7},{n % 5}\n" for n in range(count))
    (folder / "t.csv").write_text("x,y\n" + rows)
    return "{name: csv, file: t.csv, target: y, task: regression, numeric: [x], split: SPLIT}"


def array(folder: Path, count: int) -> str:
    np: Any = pytest.importorskip("numpy", reason="of the extra 'parity'")
    np.savez(folder / "t.npz", x=np.zeros((count, 3), "f4"), y=np.zeros((count, 1), "f4"))
    return "{name: npz, file: t.npz, inputs: x, targets: y, split: SPLIT}"


def idx(folder: Path, count: int) -> str:
    size = count.to_bytes(4, "big")
    (folder / "i").write_bytes(b"\0\0\x08\2" + size + b"\0\0\0\2" + bytes(2 * count))
    (folder / "l").write_bytes(b"\0\0\x08\1" + size + bytes(n % 2 for n in range(count)))
    return "{name: idx, images: i, labels: l, split: SPLIT}"


def cifar(folder: Path, count: int) -> str:
    for name, rows in (("train.bin", count), ("test.bin", 2)):
        (folder / name).write_bytes(bytes(3074 * rows))
    return f"{{name: cifar100, dir: {folder}, split: SPLIT}}"


def pictures(folder: Path, count: int) -> str:
    for name in ("a", "b"):
        (folder / "p" / name).mkdir(parents=True)
    for n in range(count):
        (folder / "p" / "ab"[n % 2] / f"{n}.png").touch()
    return "{name: image_folder, dir: p, size: 4, split: SPLIT}"


@pytest.mark.parametrize("write", [table, array, idx, cifar, pictures])
@pytest.mark.parametrize(
    ("count", "split", "message", "cure"),
    [
        (130, "{train: 80, val: 20}", "takes 100 of 130", "{train: 80%, val: 20%}"),
        (100, "{train: 80, val: 20}", None, None),
        (130, "{train: 80%, val: 20%}", None, None),
        (130, "{train: 10%, val: 5%}", None, None),
        (130, "{train: 50, val: 14}", "leaves 66 of 130", "percents such as 80% go by all"),
        (130, "{train: 50, val: 15}", None, None),
    ],
)
def test_counts_that_are_hardly_meant_are_warned_of(
    tmp_path: Path,
    write: Callable[[Path, int], str],
    count: int,
    split: str,
    message: str | None,
    cure: str | None,
) -> None:
    data = write(tmp_path, count).replace("SPLIT", split)
    values = "csv" in data or "npz" in data
    loss, out = ("mse", "1") if values else ("cross_entropy", "$data.classes")
    told = [one for one in warnings(tmp_path, data, loss, out) if one.code == "W116"]
    assert len(told) == (message is not None)
    if message and cure:
        assert f"data.split {message} samples" in told[0].message
        assert cure in told[0].caret
        assert told[0].place.text[told[0].place.column - 1 :].startswith("split:")
