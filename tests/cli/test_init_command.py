"""`gradcli init`: what it writes passes `check` without a warning, and trains."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from points import Ended, gradcli

__all__ = ["gradcli"]

ROOT = Path(__file__).resolve().parents[2]


def customers(draw: random.Random) -> str:
    rows = ["id,age,income,city,smoker,note,left"]
    for number in range(400):
        age, smoker = draw.randint(18, 80), draw.choice(["yes", "no"])
        left = "yes" if age / 80 + (smoker == "yes") / 2 > 0.9 else "no"
        shown = "" if draw.random() < 0.1 else age
        rows.append(
            f"{number},{shown},{draw.gauss(40000, 9000):.0f},{draw.choice(['Lyon', 'Nice', 'NA'])},"
            f"{smoker},note {draw.random()},{left}"
        )
    return "\n".join(rows) + "\n"


def houses(draw: random.Random) -> str:
    rows = ["area;rooms;city;price"]
    for _ in range(200):
        area, rooms, city = draw.uniform(40, 300), draw.randint(1, 8), draw.choice(["Lyon", "Nice"])
        rows.append(f"{area:.1f};{rooms};{city};{2000 * area + 20000 * rooms:.0f}")
    return "\n".join(rows) + "\n"


def section(name: str) -> dict[str, object]:
    made: dict[str, object] = yaml.safe_load(Path(name).read_text())["data"]
    return made


def trained(gradcli: Callable[..., Ended], name: str, *more: str) -> dict[str, float]:
    """The figures of the training, after a `check` that has nothing to warn of."""
    looked = gradcli("check", name, "--json")
    assert json.loads(looked.out)["configs"][0]["warnings"] == []
    assert gradcli("train", name, *more).code == 0
    [status] = Path().glob("runs/*/*/status.json")
    figures: dict[str, float] = json.loads(status.read_text())["metrics"]
    return figures


def test_a_table_in_json_lines_and_in_parquet(gradcli: Callable[..., Ended]) -> None:
    """Neither has a delimiter, whatever its bytes look like."""
    rows = [{"size": i % 17, "open": i % 3 == 0, "price": 5.5 * (i % 17)} for i in range(60)]
    Path("lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ["lines"]
    if find_spec("pyarrow") is not None:
        pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(rows), "houses.parquet")
        names.append("houses")
    for file in ("lines.jsonl", "houses.parquet")[: len(names)]:
        assert gradcli("init", file).code == 0
        written = section(f"{Path(file).stem}.yaml")
        split = {"train": "70%", "val": "15%", "test": "15%"}
        common = {"name": "table", "file": file, "target": "price", "task": "regression"}
        # In JSON lines true is a word.
        inputs = {"numeric": ["size"], "category": ["open"]}
        if file == "houses.parquet":
            inputs = {"numeric": ["size", "open"]}
        assert written == common | inputs | {"split": split}
        assert gradcli("check", f"{Path(file).stem}.yaml").code == 0


def test_a_table_of_customers(gradcli: Callable[..., Ended]) -> None:
    Path("customers.csv").write_text(customers(random.Random(1)))
    ended = gradcli("init", "customers.csv")
    assert (ended.code, ended.out) == (0, "written    customers.yaml, gradcli.schema.json\n")
    assert "Not used: 'id' (another number in every row)." in ended.err
    assert "Not used: 'note' (another text in every row)." in ended.err
    assert "next       gradcli train customers.yaml" in ended.err
    assert section("customers.yaml") == {
        "name": "csv",
        "file": "customers.csv",
        "target": "left",
        "numeric": ["age", "income"],
        "category": ["city", "smoker"],
        "missing": "mean",
        "split": {"train": "70%", "val": "15%", "test": "15%", "stratify": True},
    }
    assert json.loads(Path("gradcli.schema.json").read_text())["title"] == "gradcli config"
    assert trained(gradcli, "customers.yaml")["test.accuracy"] > 0.8


def test_a_table_with_a_number_to_predict(gradcli: Callable[..., Ended]) -> None:
    Path("sub").mkdir()
    Path("sub/houses.csv").write_text(houses(random.Random(2)))
    assert gradcli("init", "sub/houses.csv").code == 0
    found = section("houses.yaml")
    assert (found["task"], found["delimiter"], found["file"]) == (
        "regression",
        ";",
        "sub/houses.csv",
    )
    assert trained(gradcli, "houses.yaml", "-s", "train.epochs=40")["test.r2"] > 0.9


def test_the_target_is_that_of_the_option_else_of_a_name_else_the_last(
    gradcli: Callable[..., Ended],
) -> None:
    rows = "".join(f"{i % 2},{i % 7},{i % 3}\n" for i in range(60))
    Path("own.csv").write_text("species,a,b\n" + rows)
    for number, (more, target) in enumerate([((), "species"), (("--target", "b"), "b")]):
        assert gradcli("init", "own.csv", "-o", f"{number}.yaml", *more).code == 0
        assert section(f"{number}.yaml")["target"] == target
    Path("own.csv").write_text("c,a,b\n" + rows)
    assert gradcli("init", "own.csv").code == 0
    assert section("own.yaml")["target"] == "b"


def test_rows_without_a_target_are_left_out(gradcli: Callable[..., Ended]) -> None:
    rows = "".join(f"{'' if i % 3 else i},{i % 7},{i % 2 if i % 9 else ''}\n" for i in range(90))
    Path("own.csv").write_text("mostly,a,y\n" + rows)
    ended = gradcli("init", "own.csv")
    assert "Not used: 'mostly' (60 gaps)." in ended.err
    assert section("own.yaml")["missing"] == "drop"
    trained(gradcli, "own.yaml", "-s", "train.epochs=2")


def test_penguins_reach_what_their_config_expects(gradcli: Callable[..., Ended]) -> None:
    path = os.path.relpath(ROOT / "datasets" / "penguins" / "penguins.csv")
    assert gradcli("init", path).code == 0
    assert section("penguins.yaml")["target"] == "species"
    assert trained(gradcli, "penguins.yaml")["test.accuracy"] >= 0.95


def test_a_folder_of_pictures(gradcli: Callable[..., Ended]) -> None:
    image = pytest.importorskip("PIL.Image")
    draw = random.Random(3)
    for color, folder in (((255, 0, 0), "a red"), ((0, 0, 255), "blue")):
        Path("own", folder).mkdir(parents=True)
        for number in range(20):
            side = draw.randint(30, 50)
            image.new("RGB", (side, side + 5), color).save(Path("own", folder, f"{number}.png"))
    ended = gradcli("init", "own/")
    assert "40 pictures of 2 classes." in ended.err
    assert section("own.yaml")["size"] == 32
    assert trained(gradcli, "own.yaml", "-s", "train.epochs=4")["test.accuracy"] == 1.0


@pytest.mark.parametrize(
    ("content", "unit"), [(b"the cat sat. " * 300, None), (b"caf\xe9 au lait " * 90, "bytes")]
)
def test_a_text(gradcli: Callable[..., Ended], content: bytes, unit: str | None) -> None:
    Path("story.txt").write_bytes(content)
    assert gradcli("init", "story.txt").code == 0
    assert section("story.yaml").get("unit") == unit
    more = ["-s", "train.steps=6", "-s", "train.eval_every=3"]
    assert trained(gradcli, "story.yaml", *more)["val.loss"] > 0


def test_of_a_long_text_a_small_share_is_measured_on(gradcli: Callable[..., Ended]) -> None:
    """An evaluation would take longer than the training; a letter of two bytes lies on a cut."""
    Path("long.txt").write_bytes(b"x" + "\u00e9".encode() * 3_000_000)
    assert gradcli("init", "long.txt").code == 0
    written = section("long.yaml")
    assert (written.get("unit"), written["split"]) == (None, {"train": "95%", "val": "5%"})
    assert "A text of 3,000,001 characters" in Path("long.yaml").read_text()


def test_templates_are_listed_and_written(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = json.loads(gradcli("init", "--json").out)["templates"]
    assert rows["penguins"].startswith("the species of a penguin")
    assert "shakespeare_gpt" in gradcli("init").out
    ended = gradcli("init", "penguins", "--json")
    assert json.loads(ended.out)["written"][:2] == ["penguins.yaml", "gradcli.schema.json"]
    assert Path("datasets/penguins/penguins.csv").exists()
    assert trained(gradcli, "penguins.yaml")["test.accuracy"] >= 0.95


def test_a_template_whose_data_is_elsewhere_says_where_it_belongs(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradcli.starter.templates.Template.data", lambda self: iter(()))
    ended = gradcli("init", "mnist")
    assert ended.code == 0
    place = Path("datasets/mnist").resolve()
    cure = f"into {place}"
    assert "warning: the MNIST files are not there; put train-images-idx3-ubyte, " in ended.err
    assert cure in ended.err
    failed = gradcli("train", "mnist.yaml")
    assert (failed.code, cure in failed.err) == (3, True)
