"""What `init` refuses: one sentence each, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended
from refusals import gradcli, refused

__all__ = ["gradcli", "refused"]

ROWS = "".join(f"{i % 7},{i % 2}\n" for i in range(30))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the table is empty: no header and no rows"),
        (b"a,b\n", "the table is empty: no rows below the header"),
        (b"a\n1\n2\n", "the table has one column"),
        (b"a,b\n1,2\n", "1 row; a model needs 10 or more"),
        (b"a,b\n" + b",NA\n" * 20, "the column 'b' cannot be predicted: no value"),
        (b"a,b\n" + b"1,2\n" * 20, "cannot be predicted: the same value in every row"),
        (b"a,b\n" + b",1\n,2\n" * 20, "no column is left to predict 'b' from: 'a' (no value)"),
        (b"a,a\n" + b"1,2\n" * 20, "the last column, 'a', appears twice"),
        (b"a,b\n" + b"1,2\n,\n" * 6, "cannot be predicted: one value and gaps"),
        (b"a,b\n" + b"1,\n" * 20 + b"1,3\n2,4\n", "the column 'b' has 2 values"),
        (bytes(range(256)) * 9, "this is a binary file, not a table; save it as CSV"),
        (b"a,b\n1,\xff\n" * 9, "not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "this is a PNG picture, not a table"),
        (b"a,b\n1\n", "1 cell, the header has 2"),
    ],
)
def test_a_table_that_no_model_learns_from(
    refused: Callable[..., Ended], content: bytes, message: str
) -> None:
    Path("own.csv").write_bytes(content)
    refused(3, message, "init", "own.csv")
    assert not Path("own.yaml").exists() and not Path("gradcli.schema.json").exists()


def test_a_target_that_the_table_lacks(refused: Callable[..., Ended]) -> None:
    Path("own.csv").write_text("size,kind\n" + ROWS)
    refused(
        3,
        "the column 'kid' is not there; did you mean 'kind'?",
        *["init", "own.csv", "--target", "kid"],
    )


def test_a_table_that_is_nobody_s_to_read(
    refused: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path("own.csv")
    path.write_text("a,b\n" + ROWS)
    if os.geteuid():
        path.chmod(0)
    else:  # whom no mode of a file stops
        real = os.open

        def refuse(name: os.PathLike[str], *others: int, **more: int) -> int:
            if Path(name).name == "own.csv":
                raise PermissionError(13, "Permission denied", str(name))
            return real(name, *others, **more)

        monkeypatch.setattr("os.open", refuse)
    refused(3, "data file 'own.csv' cannot be read: Permission denied", "init", "own.csv")
    assert not Path("own.yaml").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a text of 0 characters"),
        (b"short", "a text of 5 characters; a model needs 200 or more"),
        (b"a\0" * 300, "this is a binary file, not a text"),
        (b"%PDF-1.7" + b"x" * 300, "this is a PDF document, not a text"),
    ],
)
def test_a_text_that_is_none(refused: Callable[..., Ended], content: bytes, message: str) -> None:
    Path("own.txt").write_bytes(content)
    refused(3, message, "init", "own.txt")
    assert not Path("own.yaml").exists()


def test_a_folder_without_pictures(refused: Callable[..., Ended]) -> None:
    pytest.importorskip("PIL")
    Path("own/cat").mkdir(parents=True)
    refused(3, "own/cat holds no picture", "init", "own")
    Path("own/cat/1.png").write_text("no picture")
    refused(3, "own has one folder, 'cat'", "init", "own")
    Path("own/dog").mkdir()
    for number in range(9):
        Path(f"own/dog/{number}.png").write_text("no picture")
    refused(3, "not a whole PNG, JPEG, WebP, BMP or GIF picture", "init", "own")
    Path("own/dog/8.png").unlink()
    refused(3, "own holds 9 pictures; a model needs 10 or more", "init", "own")
    Path("empty").mkdir()
    refused(3, "empty holds no folders; each class is a folder of pictures", "init", "empty")


def test_nothing_is_overwritten(
    refused: Callable[..., Ended], gradcli: Callable[..., Ended]
) -> None:
    Path("own.csv").write_text("a,b\n" + ROWS)
    Path("own.yaml").write_text("mine")
    refused(2, "own.yaml is there, and nothing is overwritten; write elsewhere", "init", "own.csv")
    assert Path("own.yaml").read_text() == "mine"
    Path("penguins.yaml").symlink_to("nowhere")
    refused(2, "penguins.yaml is there", "init", "penguins")
    Path("gradcli.schema.json").write_text("mine too")
    assert gradcli("init", "own.csv", "-o", "other.yaml").code == 0
    assert Path("gradcli.schema.json").read_text() == "mine too"


def test_nothing_is_left_where_a_config_does_not_pass(
    refused: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("own.csv").write_text("a,b\n" + ROWS)
    monkeypatch.setattr("gradcli.starter.tables._layers", lambda rows, classes: ["linear: 3"])
    refused(3, "own.csv: no config for it can be written: ", "init", "own.csv")
    assert not Path("own.yaml").exists() and not Path("gradcli.schema.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nonsense", "'nonsense' is no template, and no file or folder is there"),
        ("pengins", "did you mean 'penguins'?"),
        ("x" * 5000, "is no template, and no file or folder is there"),
        ("own.bin", "'own.bin' has no ending that says what it is"),
        ("own.txt --target a", "--target names a column of a table, and this is a text"),
        ("own --target a", "--target names a column of a table, and this is a folder of pictures"),
        ("penguins --target a", "--target names a column of a table, and this is a template"),
    ],
)
def test_what_is_no_data(refused: Callable[..., Ended], words: str, message: str) -> None:
    Path("own.bin").write_text("x")
    Path("own.txt").write_text("x")
    Path("own").mkdir()
    refused(2, message, "init", *words.split())


@pytest.mark.parametrize("words", ["--target a", "--out own.yaml"])
def test_an_option_without_data_is_refused(refused: Callable[..., Ended], words: str) -> None:
    refused(2, f"{words.split()[0]} is of a config to write: say of what", "init", *words.split())


@pytest.mark.parametrize("what", ["own.csv", "penguins"])
@pytest.mark.parametrize("out", ["own.txt", "own", "own.yaml.bak", "own.YAML", ".yaml", ".", ".."])
def test_a_config_has_the_ending_of_one(
    refused: Callable[..., Ended], gradcli: Callable[..., Ended], what: str, out: str
) -> None:
    Path("own.csv").write_text("a,b\n" + ROWS)
    before = {*Path().iterdir()}
    refused(2, f"the name of a config ends in .yaml or .yml, got '{out}'", "init", what, "-o", out)
    assert {*Path().iterdir()} == before
    assert gradcli("init", what, "-o", "own.yml").code == 0


@pytest.mark.parametrize("what", ["own.csv", "penguins"])
def test_a_place_that_cannot_be_written_is_named(refused: Callable[..., Ended], what: str) -> None:
    Path("own.csv").write_text("a,b\n" + ROWS)
    refused(7, "cannot write own.csv: File exists", "init", what, "-o", "own.csv/own.yaml")
    refused(7, "cannot write /proc/own.yaml: ", "init", what, "-o", "/proc/own.yaml")


def test_the_command_to_go_on_with_can_be_pasted(gradcli: Callable[..., Ended]) -> None:
    Path("own.csv").write_text("a,b\n" + ROWS)
    assert "gradcli train 'my own.yaml'\n" in gradcli("init", "own.csv", "-o", "my own.yaml").err
