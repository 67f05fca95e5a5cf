"""`explain`: every word has a meaning and an example that `check` accepts; every code is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradcli
from gradcli.config import load
from gradcli.config.cautions import CAUTIONS
from gradcli.config.schema import schema_of
from gradcli.config.sections import top
from gradcli.config.trust import Trust
from gradcli.data import DataSpec
from gradcli.error_codes import CODES
from gradcli.errors import GradcliError
from gradcli.starter import examples
from gradcli.starter.examples import Example
from gradcli.starter.meanings import KEYS, NAMES
from gradcli.starter.words import explained, vocabulary
from gradcli.train.job import TrainSettings

SOURCES = Path(gradcli.__file__).parent
OWN = "import gradcli\nfrom gradcli.engine import nn\n@gradcli.layer\nclass Own(nn.ReLU): ...\n"
SIZES = {"train": 100, "val": 20}
FACTS = {
    "images": DataSpec((1, 28, 28), "float", (), 10, None, tuple("0123456789"), SIZES),
    "text": DataSpec((64,), "index", (64,), 95, 95, tuple(map(chr, range(32, 127))), SIZES),
    "values": DataSpec((1,), "float", (1,), None, None, (), SIZES, values=("price",)),
    "itself": DataSpec((1, 28, 28), "float", (1, 28, 28), None, None, (), SIZES),
}


def accept(example: Example, folder: Path) -> None:
    """`check` on the example, in a folder with what it names."""
    (folder / "base.yaml").write_text(examples.BASES["images"])
    (folder / "layers.py").write_text(OWN)
    path = folder / "own.yaml"
    path.write_text(example.text if "extends" in example.text else example.whole())
    trust = Trust(everything=True)
    config = load(path, room=None, runs=None, facts=FACTS[example.kind], trust=trust)
    assert config.warnings == (), example.text


def of_kinds() -> Iterator[tuple[str, str]]:
    for kind, table in NAMES.items():
        yield from ((kind, name) for name in table)


@pytest.mark.parametrize(("kind", "name"), list(of_kinds()))
def test_an_example_is_accepted_and_shows_the_word(kind: str, name: str, tmp_path: Path) -> None:
    example = examples.of_choice(kind, name)
    assert re.search(rf"\b{name}\b", example.text)
    accept(example, tmp_path)
    for key in schema_of(NAMES[kind][name]).hints:
        accept(examples.with_key(kind, name, key), tmp_path)


@pytest.mark.parametrize("key", ["test_file", "window", "horizon", "channels", "split"])
@pytest.mark.parametrize("name", ["csv", "table"])
def test_a_key_of_tables_is_shown(name: str, key: str) -> None:
    assert re.search(rf"\b{key}: \S", examples.with_key("dataset", name, key).text)


@pytest.mark.parametrize("key", schema_of(top).hints)
def test_a_section_has_an_example(key: str, tmp_path: Path) -> None:
    example = examples.of_top(key)
    assert re.search(rf"^{key}:", example.text, re.M)
    accept(example, tmp_path)


@pytest.mark.parametrize("key", schema_of(TrainSettings).hints)
def test_a_key_of_train_has_an_example(key: str, tmp_path: Path) -> None:
    example = examples.of_train(key)
    assert f"{key}: " in example.text
    accept(example, tmp_path)


def test_every_word_is_explained() -> None:
    for word in set(vocabulary()):
        for each in explained(word):
            assert each.title
            assert each.text or each.rows, word
            assert "\n" not in each.text


def test_every_code_that_is_raised_has_a_meaning() -> None:
    declaring = {SOURCES / "starter" / "codes.py", SOURCES / "config" / "cautions.py"}
    raised = {
        code
        for path in SOURCES.rglob("*.py")
        if path not in declaring
        for code in re.findall(r'"([EW]\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert raised == CODES.keys() | CAUTIONS.keys()


def test_words_about_keys_are_of_keys_that_exist() -> None:
    keys = {
        key for table in NAMES.values() for make in table.values() for key in schema_of(make).hints
    }
    assert KEYS.keys() <= keys


@pytest.mark.parametrize(
    ("word", "titles"),
    [
        ("batch", ["key train.batch"]),
        ("train.batch", ["key train.batch"]),
        ("`batch:`", ["key train.batch"]),
        ("linear", ["layer linear", "schedule linear"]),
        ("csv.missing", ["key missing of dataset csv"]),
        ("data.missing", ["key missing of dataset csv", "key missing of dataset table"]),
        ("missing", ["key missing of dataset csv, also of table"]),
        ("e104", ["error E104"]),
        ("W103", ["warning W103"]),
        ("mse", ["loss mse", "metric mse"]),
    ],
)
def test_a_word_has_its_meanings(word: str, titles: list[str]) -> None:
    assert [each.title for each in explained(word)] == titles


@pytest.mark.parametrize(
    "word", ["", " ", ".", "train.", ".batch", "E999", "a" * 9000, "\x1b[31m", "é"]
)
def test_nonsense_is_refused_in_a_sentence(word: str) -> None:
    with pytest.raises(GradcliError) as caught:
        explained(word)
    assert (caught.value.exit_code, caught.value.code) == (2, "E102")
    assert len(caught.value.message) < 200
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("word", "near"),
    [("optim.lrr", "optim.lr"), ("train.epoch", "train.epochs"), ("csv.missng", "csv.missing")],
)
def test_a_mistyped_key_gets_the_nearest_of_its_owner(word: str, near: str) -> None:
    with pytest.raises(GradcliError, match=f"did you mean '{near}'"):
        explained(word)
