"""Colour: where a terminal has it, and nowhere else."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from points import CONFIG, gradcli
from terminal import in_terminal

import gradcli as package
from gradcli.cli import output
from gradcli.errors import ConfigError, DataError, Location, Stopped

__all__ = ["gradcli"]

ESCAPE = "\x1b["
VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM")
COLORFUL = {"TERM": "xterm-256color"}


class Stream(io.StringIO):
    """A stream that is a terminal, or is none."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def environment(monkeypatch):
    """Sets the variables that say something of colour, and no other of them."""

    def install(**variables: str) -> None:
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    yield install
    output.choose_color([])


@pytest.fixture
def streams(monkeypatch):
    """Puts terminals or pipes in the place of (stdout, stderr), and gives them."""

    def install(*are_terminals: bool) -> tuple[Stream, Stream]:
        out, err = map(Stream, are_terminals)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        return out, err

    return install


@pytest.mark.parametrize(
    ("choice", "variables", "is_terminal", "expected"),
    [
        ("auto", COLORFUL, True, True),
        ("auto", COLORFUL, False, False),
        ("auto", {}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {**COLORFUL, "NO_COLOR": "1"}, True, False),
        ("auto", {**COLORFUL, "NO_COLOR": "0"}, True, False),
        ("auto", {**COLORFUL, "NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "0"}, False, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("always", {"TERM": "dumb", "NO_COLOR": "1"}, False, True),
        ("never", {**COLORFUL, "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_where_there_is_colour(
    choice: str, variables: dict[str, str], is_terminal: bool, expected: bool, environment, streams
) -> None:
    environment(**variables)
    out, err = streams(is_terminal, is_terminal)
    output.choose_color(["check", "--color", choice])
    output.say("finished: it", "good")
    output.say_aside("warning: careful")
    assert (ESCAPE in out.getvalue()) is expected
    assert (ESCAPE in err.getvalue()) is expected
    assert (out.getvalue() == "\x1b[32m\x1b[1mfinished:\x1b[0m it\n") is expected
    assert (err.getvalue() == "\x1b[33m\x1b[1mwarning:\x1b[0m careful\n") is expected


@pytest.mark.parametrize("is_terminal", [(True, False), (False, True)])
def test_each_stream_has_colour_for_itself(is_terminal, environment, streams) -> None:
    environment(**COLORFUL)
    out, err = streams(*is_terminal)
    output.say("finished: it", "good")
    output.say_aside("warning: careful")
    assert (ESCAPE in out.getvalue(), ESCAPE in err.getvalue()) == is_terminal


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "a.yaml"], False),
        (["--color", "always", "train", "a.yaml"], True),
        (["train", "a.yaml", "--color=always"], True),
        (["--color", "always", "train", "a.yaml", "--color", "never"], False),
        (["--color=never", "train", "--color", "always", "a.yaml"], True),
        (["train", "a.yaml", "--color", "always", "--json"], False),
        (["train", "a.yaml", "--color", "sometimes"], False),
        (["train", "a.yaml", "--color"], False),
        (["train", "--colorful", "always"], False),
    ],
)
def test_the_option_counts_before_and_behind_the_command(
    arguments: list[str], expected: bool, environment
) -> None:
    environment()
    output.choose_color(arguments)
    assert output.has_color(Stream(False)) is expected


def test_an_error_has_its_kind_and_its_carets_in_colour(environment, streams) -> None:
    environment(**COLORFUL)
    _, err = streams(True, True)
    place = Location("a.yaml", 12, 3, 2, "  lr: fast  # ^ no caret of ours")
    output.errors([ConfigError("wrong", location=place, caret="here", notes=("a way",))], 2, False)
    assert err.getvalue() == (
        "\x1b[31m\x1b[1merror[E101]\x1b[0m wrong\n"
        "  --> a.yaml:12:3\n"
        "12 |   lr: fast  # ^ no caret of ours\n"
        "   |   \x1b[31m\x1b[1m^^ here\x1b[0m\n"
        "   = a way\n"
    )


def test_warnings_and_stops_are_yellow(environment, streams) -> None:
    environment(**COLORFUL)
    _, err = streams(True, True)
    output.warnings([ConfigError("odd", code="W101")])
    output.errors([Stopped("stopped at 3")], 75, False)
    assert err.getvalue().splitlines() == [
        "\x1b[33m\x1b[1mwarning[W101]\x1b[0m odd",
        "\x1b[33m\x1b[1mstopped[E751]\x1b[0m stopped at 3",
    ]


def test_an_error_itself_knows_nothing_of_colour(environment, streams) -> None:
    environment(**COLORFUL)
    streams(True, True)
    error = DataError("broken", location=Location("a.csv", 1, 1, 1, "x"), caret="here")
    assert ESCAPE not in output.render(error) + str(error) + str(output.as_object(error))


def test_escapes_come_of_one_file() -> None:
    folder = Path(package.__file__).parent
    escapes = re.compile(r"click\.(style|secho)|\\x1b|\\033")
    files = [path for path in folder.rglob("*.py") if escapes.search(path.read_text())]
    assert [path.relative_to(folder).as_posix() for path in files] == ["cli/output.py"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_a_real_terminal(variables: dict[str, str], expected: bool, tmp_path, environment) -> None:
    environment()
    (tmp_path / "wrong.yaml").write_text("gradcli: 2\n")
    screen = in_terminal(80, ["check", "wrong.yaml"], tmp_path, **variables)
    assert screen.code == 2
    assert "error[E" in screen.text
    assert ("\x1b[31m\x1b[1merror[E" in screen.text) is expected
    assert (ESCAPE in screen.text) is expected


def test_a_screen_asked_for_colour_has_it(gradcli, environment) -> None:
    environment()
    Path("wrong.yaml").write_text(CONFIG.replace("lr: 0.05", "lr: fast"))
    plain = gradcli("check", "wrong.yaml")
    colored = gradcli("check", "wrong.yaml", "--color", "always")
    assert plain.code == colored.code == 2
    assert ESCAPE not in plain.err
    assert "\x1b[31m\x1b[1merror[E" in colored.err
    assert "\x1b[31m\x1b[1m^^^^" in colored.err
    assert re.sub(r"\x1b\[\d*m", "", colored.err) == plain.err


def test_a_summary_has_its_status_in_colour(gradcli, environment) -> None:
    environment()
    ended = gradcli("train", "dots.yaml", "--color", "always")
    assert "\x1b[32m\x1b[1mfinished:\x1b[0m runs/dots/" in ended.out
    ended = gradcli("train", "dots.yaml", "--color", "always", "--max-steps", "2")
    assert "\x1b[33m\x1b[1mstopped:\x1b[0m runs/dots/" in ended.out
    ended = gradcli("check", "dots.yaml", "--color", "always")
    assert ended.out.startswith("\x1b[1mdots.yaml:\x1b[0m dots, ")


def test_a_wrong_choice_is_refused(gradcli) -> None:
    for arguments in (("check", "--color", "red"), ("--color", "red", "check")):
        ended = gradcli(*arguments)
        assert ended.code == 2
        assert "'red' is not one of 'auto', 'always', 'never'" in ended.err


def test_json_and_files_never_have_colour(gradcli, environment) -> None:
    environment(FORCE_COLOR="1")
    ended = gradcli("train", "dots.yaml", "--json", "--color", "always")
    assert ended.json["status"] == "finished"
    assert ESCAPE not in ended.out + ended.err
    gradcli("train", "dots.yaml", "--color", "always", "--runs", "others")
    written = [path for path in Path().rglob("*.*") if path.suffix in (".yaml", ".json", ".jsonl")]
    assert len(written) > 8
    assert not [path for path in written if ESCAPE in path.read_text()]
    Path("points.txt").write_text("0.5 0.5\n-0.5 0.5\n")
    ended = gradcli("predict", "last", "points.txt", "--out", "p.csv", "--color", "always")
    assert ended.code == 0
    assert ESCAPE not in Path("p.csv").read_text()
