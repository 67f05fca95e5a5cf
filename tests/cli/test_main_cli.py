from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gradcli.cli import main, options, output
from gradcli.errors import ConfigError, DataError, ErrorGroup, GradcliError, Location


def gradcli(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradcli.cli.main", *args],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
    )


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Makes the command `ops` raise what the test gives."""

    def install(error: BaseException) -> None:
        @click.command("ops")
        @options.common
        def command(**given: object) -> None:
            raise error

        monkeypatch.setattr(main.CommandTable, "get_command", lambda self, ctx, name: command)

    return install


def test_help_lists_every_command_and_imports_click_alone() -> None:
    found = gradcli("--help")
    assert found.returncode == 0
    assert all(name in found.stdout for name in main.COMMANDS)
    code = (
        "import sys; from gradcli.cli.main import run; run(['--help']);"
        "heavy = {'yaml', 'pydantic', 'tqdm', 'safetensors', 'gradcli.engine', 'gradcli.config'};"
        "sys.exit(repr(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help_answers_at_once() -> None:
    # Processor time of the child: a busy machine makes it wait, not work.
    times = []
    for _ in range(5):
        before = os.times()
        gradcli("--help")
        after = os.times()
        times.append(
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
    assert min(times) < 0.15


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "Usage: gradcli"),
        (("trian",), "there is no command 'trian'; did you mean 'train'?"),
        (("xyzzy",), "commands: init, train, resume"),
        (("--vresion",), "--version"),
        (("check", "--jsn"), "--json"),
        (("check", "-s"), "requires an argument"),
        (("check",), "check needs a config file, or --schema"),
        (("check", "--schema", "a.yaml"), "--schema is the same for all configs"),
    ],
)
def test_wrong_usage_exits_2_with_a_suggestion(args: tuple[str, ...], expected: str) -> None:
    found = gradcli(*args)
    assert found.returncode == 2
    assert expected in found.stderr
    assert "Usage: gradcli" in found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout == ""


@pytest.mark.parametrize("count", ["0", "-1", "10000", "many", "1.5"])
def test_impossible_thread_counts_are_refused(
    count: str, failing: object, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(AssertionError("the command must not start"))  # type: ignore[operator]
    assert main.run(["ops", "--threads", count]) == 2
    message = f"a number of threads is a whole number from 1 to 256, got {count}"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "a.yaml", "--max-steps", "1e3"], "'1e3' is not a whole number."),
        (["predict", "last", "--seed", "x"], "'x' is not a whole number."),
        (["predict", "last", "--temperature", "hot"], "'hot' is not a number."),
    ],
)
def test_what_is_no_number_is_told_plainly(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "code", "expected"),
    [
        ("cuda", 4, "device 'cuda' cannot be used: "),
        ("cuda:1", 4, "device 'cuda:1' cannot be used: "),
        ("metal", 4, "metal"),
        ("tpu", 2, "'tpu' is not one of auto, cpu, cuda, metal"),
    ],
)
def test_a_device_that_is_not_there_is_never_replaced(
    device: str, code: int, expected: str, failing: object, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(AssertionError("the command must not start"))  # type: ignore[operator]
    assert main.run(["ops", "--device", device]) == code
    assert expected in capsys.readouterr().err


def test_metal_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert options.unavailable("metal") == (
        "it needs macOS 14 or newer on Apple silicon, this is Linux x86-64"
    )
    assert options.unavailable("cpu") == ""


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (DataError("no file x"), 3, "error[E301] no file x"),
        (ErrorGroup([ConfigError("one"), DataError("two")]), 2, "error[E301] two"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 4, "memory of this machine is used up"),
        (ZeroDivisionError("oops"), 1, "this is a bug in gradcli: ZeroDivisionError: oops"),
    ],
)
def test_every_end_has_its_exit_code(
    error: BaseException,
    code: int,
    expected: str,
    failing: object,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(error)  # type: ignore[operator]
    assert main.run(["ops"]) == code
    shown = capsys.readouterr().err
    assert expected in shown
    assert "Traceback" not in shown


def test_debug_shows_the_traceback(failing: object, capsys: pytest.CaptureFixture[str]) -> None:
    failing(ZeroDivisionError("oops"))  # type: ignore[operator]
    assert main.run(["ops", "--debug"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_json_errors_are_objects(failing: object, capsys: pytest.CaptureFixture[str]) -> None:
    failing(ConfigError("bad", location=Location("a.yaml", 3, 4), caret="here", notes=("do x",)))  # type: ignore[operator]
    assert main.run(["ops", "--json"]) == 2
    found = json.loads(capsys.readouterr().err)
    assert found["exit_code"] == 2
    assert found["errors"] == [
        {
            "code": "E101",
            "message": "bad",
            "file": "a.yaml",
            "line": 3,
            "column": 4,
            "caret": "here",
            "notes": ["do x"],
        }
    ]


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        ("| sleep 0", 141, ""),
        (">&-", 0, ""),
        pytest.param(
            "> /dev/full",
            7,
            "error[E703] cannot write: No space left on device\n",
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full"),
        ),
    ],
)
def test_an_output_that_nobody_takes_ends_quietly(
    redirection: str, code: int, message: str
) -> None:
    command = f"{sys.executable} -m gradcli.cli.main check --schema"
    shell = f"{{ {command}; echo $? >&2; }} {redirection}"
    done = subprocess.run(
        ["/bin/sh", "-c", shell], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.stderr == f"{message}{code}\n"


def test_a_closed_stderr_never_moves_messages_to_stdout() -> None:
    command = f"{sys.executable} -m gradcli.cli.main xyz 2>&-; echo $?"
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout == "2\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(("arguments", "code"), [("xyz", 2), ("xyz --json", 2), ("", 2)])
def test_a_stderr_that_is_full_keeps_the_exit_code(arguments: str, code: int) -> None:
    command = f"{sys.executable} -m gradcli {arguments} 2> /dev/full; echo $?"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
    )
    assert done.stdout == f"{code}\n"


def test_the_message_has_place_line_caret_and_notes() -> None:
    line = "optim: {name: adamw, lr: 1e-3, weight_decy: 0.01}"
    problem = GradcliError(
        "unknown key 'weight_decy' in optim (adamw)",
        code="E103",
        location=Location("configs/mnist.yaml", 14, 32, 11, line),
        caret="did you mean 'weight_decay'?",
        notes=("keys here: lr",),
    )
    assert output.render(problem) == (
        "error[E103] unknown key 'weight_decy' in optim (adamw)\n"
        "  --> configs/mnist.yaml:14:32\n"
        f"14 | {line}\n"
        "   |                                ^^^^^^^^^^^ did you mean 'weight_decay'?\n"
        "   = keys here: lr"
    )


def test_long_lines_are_cut_around_the_caret() -> None:
    place = Location("a.yaml", 1, 5001, 3, "x" * 5000 + "bad" + "y" * 5000)
    lines = output.render(GradcliError("m", location=place)).splitlines()
    assert all(len(line) < 200 for line in lines)
    column = lines[3].index("^")
    assert lines[2][column : column + 3] == "bad"


def test_a_name_that_is_too_long_to_read_is_cut_in_every_line() -> None:
    name, path = "x" * 5000, "/".join(["folder"] * 100)
    shown = output.render(GradcliError(f"no '{name}' in {path}", notes=(f"say {name}",)))
    assert len(shown) < 2200
    assert path in shown
    assert shown.count("xxx...xxx") == 2


def test_control_characters_never_reach_the_terminal() -> None:
    shown = output.render(GradcliError("bad \x1b[2J name\x07"))
    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown
