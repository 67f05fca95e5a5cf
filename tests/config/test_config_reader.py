from __future__ import annotations

import math
import os
import time
from pathlib import Path

import pytest

from gradcli.config import load
from gradcli.config.node import ErrorReport
from gradcli.config.reader import MAX_BYTES, read_file, read_yaml
from gradcli.errors import ConfigError, GradcliError, members


def values(text: str) -> object:
    report = ErrorReport()
    node = read_yaml(text, "f.yaml", report)
    assert report.errors == []
    return node.plain()


def mistakes(text: str) -> list[str]:
    report = ErrorReport()
    try:
        read_yaml(text, "f.yaml", report)
    except ConfigError as error:
        report.errors.append(error)
    return [f"{error.location}: {error.message}" for error in report.errors]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1.5E+2", 150.0),
        (".5", 0.5),
        ("-12", -12),
        ("+3", 3),
        ("0", 0),
        ("0x1F", 31),
        ("0o17", 15),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("~", None),
        ("", None),
        ("null", None),
        ("'1'", "1"),
        ('"true"', "true"),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("5%", "5%"),
        ("$a.b", "$a.b"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    found = values(f"a: {text}")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)  # type: ignore[index]


def test_nan_is_read_as_nan() -> None:
    assert math.isnan(values("a: .nan")["a"])  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 017", "f.yaml:1:4: 017 has a leading zero; write 17"),
        ("a: -007", "f.yaml:1:4: -007 has a leading zero; write 7"),
        ("a: 1e400", "f.yaml:1:4: 1e400 is too large"),
        ("a: -1E-400", "f.yaml:1:4: -1E-400 is too small: numbers begin at 4.9e-324"),
        ("a: [1, .00" + "0" * 400 + "1]", "is too small"),
        ("a: " + "9" * 5000, "has 5000 digits; at most 300"),
        ("a: 0x" + "f" * 400, "has 400 digits; at most 300"),
        ("a: 1\nb: 2\na: 3", "f.yaml:3:1: key 'a' is given twice: at line 1 and at line 3"),
        ("a: !!python/object/apply:os.system [ls]", "f.yaml:1:4: YAML tags are not allowed"),
        ("a: !!python/name:os.system", "tags are not allowed"),
        ("a: !x 1", "tags are not allowed (here: !x)"),
        ("a: &x 1", "f.yaml:1:4: YAML anchors (&) are not allowed"),
        ("a: &x 1\nb: *x", "f.yaml:2:4: YAML aliases (*) are not allowed"),
        ("<<: {a: 1}", "f.yaml:1:1: YAML merge keys (<<) are not allowed"),
        ("? [a]\n: 1", "f.yaml:1:3: a key is one word"),
        ("a: 1\n--- \nb: 2", "f.yaml:2:1: a config is one YAML document"),
        ("%YAML 1.1\n---\na: 1", "directives (%) are not allowed"),
        ("a:\n\tb: 1", "f.yaml:2:1: a tab cannot indent YAML"),
        ("a: [1, 2", "f.yaml:2:1: YAML cannot be read here"),
        ("a: [1\nb: 2", "f.yaml:2:2: YAML cannot be read here"),
        ("a: 'x", "YAML cannot be read here"),
        ("a: b: c", "f.yaml:1:5: YAML cannot be read here"),
        ("a: x\x00y", "f.yaml:1:5: character 0x0000 is not allowed"),
        ("a: \x1b[31m", "f.yaml:1:4: character 0x001b is not allowed"),
        ("a: \udcff", "f.yaml:1:4: character 0xdcff is not allowed"),
        ("[" * 40, "f.yaml:1:33: nested deeper than 32 levels"),
    ],
)
def test_what_is_refused_and_where(text: str, message: str) -> None:
    found = mistakes(text)
    assert any(message in line for line in found), found


def test_another_indentation_is_explained() -> None:
    with pytest.raises(ConfigError) as caught:
        read_yaml("model:\n  - relu\n - tanh\n", "f.yaml", ErrorReport())
    assert "what belongs together begins in the same column" in caught.value.notes


def test_all_readable_mistakes_are_reported_together() -> None:
    assert len(mistakes("a: 017\nb: !x 1\na: 2\nc: 1e400")) == 4


def test_equal_keys_keep_the_first_value() -> None:
    node = read_yaml("a: 1\na: 2", "f.yaml", ErrorReport())
    assert node.plain() == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "[" * 10_000 + "]" * 10_000,
        "\n".join(" " * i + "a:" for i in range(1300)),
        "- " * 100_000,
        "a: &a [x]\n" + "\n".join(f"b{i}: &b{i} [*a, *a, *a, *a]" for i in range(20_000)),
        "? " * 100_000,
    ],
)
def test_bombs_are_refused_within_a_second(text: str) -> None:
    assert len(text) <= MAX_BYTES
    start = time.process_time()
    assert mistakes(text)
    assert time.process_time() - start < 1


def test_places_have_line_column_width_and_source() -> None:
    node = read_yaml("é: {ö: 'abc', b: [1, 22]}\n", "f.yaml", ErrorReport())
    inner = node.map()["é"]
    place = inner.map()["ö"].location
    assert (place.line, place.column, place.width) == (1, 8, 5)
    assert place.text == "é: {ö: 'abc', b: [1, 22]}"
    assert inner.keys["b"].column == 15
    assert inner.map()["b"].list()[1].location.column == 22


def test_carriage_returns_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb:\r\n  - 2\r\n")
    assert values(read_file(path)) == {"a": 1, "b": [2]}


def test_bad_utf8_names_the_byte_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match="0xff at byte offset 8") as caught:
        read_file(path)
    assert (caught.value.location.line, caught.value.location.column) == (2, 4)  # type: ignore[union-attr]


def test_a_missing_file_names_a_near_one(tmp_path: Path) -> None:
    (tmp_path / "mnist.yaml").write_text("a: 1")
    with pytest.raises(ConfigError, match="there is no file") as caught:
        read_file(tmp_path / "mnits.yaml")
    assert "mnist.yaml" in caught.value.notes[0]


def test_a_directory_lists_its_yaml_files(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("a: 1")
    with pytest.raises(ConfigError, match="is a directory") as caught:
        read_file(tmp_path)
    assert "one.yaml" in caught.value.notes[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_gives_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    with pytest.raises(ConfigError, match="Permission denied"):
        read_file(path)


def test_a_pipe_is_not_a_config(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_file(tmp_path / "pipe")


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(ConfigError, match="50000000 bytes; a config has at most 1000000"):
        read_file(path)


def test_data_in_the_place_of_a_config_has_a_way_on(tmp_path: Path) -> None:
    for content in (b"a,b\n1,2\n", b"PAR1\xff\xff", b"x" * 1_000_001):
        path = tmp_path / "own data.csv"
        path.write_bytes(content)
        with pytest.raises(GradcliError) as caught:
            load(path)
        [error] = members(caught.value)
        assert error.notes[-1].endswith(f"; `gradcli init '{path}'` writes one")
