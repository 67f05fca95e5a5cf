"""Own code of strangers: named, and run only where --trust-code says so, by every command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from points import CONFIG, Ended, gradcli

import gradcli as package
from gradcli.cli.main import COMMANDS, cli
from gradcli.errors import ErrorGroup

__all__ = ["gradcli"]

Command = Callable[..., Ended]
# What a command needs beside the run, or the config that lies in it.
BESIDE: dict[str, tuple[str, ...]] = {
    "train": ("--max-steps", "1"),
    "resume": ("-s", "train.epochs=4"),
    "eval": ("--split", "val"),
    "predict": ("new.txt",),
    "export": ("weights.safetensors",),
    "check": (),
    "bench": ("--steps", "1", "--top", "0"),
    "plan": (),
    "report": ("--time",),
}
WITHOUT_CODE = {"watch"}  # reads the files of a run alone, as `report` does without --time
OPENING = pytest.mark.parametrize("name", BESIDE)
LAYER = """\
import gradcli
from gradcli.engine import nn


@gradcli.layer
class Twice(nn.Module):
    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()

    def forward(self, x):
        return x * 2
"""
LOSS = """\
import gradcli
from gradcli.engine import nn


@gradcli.loss
class Own(nn.Module):
    def forward(self, outputs, targets):
        return nn.functional.cross_entropy(outputs, targets)
"""
OWN = CONFIG.replace("  - dropout: 0.2\n", "  - twice\n").replace("cross_entropy", "own")


def arguments_of(name: str) -> list[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    return [str(one.metavar or one.name).upper() for one in arguments]


def opens_code(name: str) -> bool:
    return bool({"RUN", "CONFIG", "CONFIGS"} & {*arguments_of(name)})


def marking(text: str, marker: str = "marker") -> str:
    """The code, with a line that leaves a file behind."""
    return f"open({str(Path(marker).absolute())!r}, 'w').close()\n{text}"


def as_nobody(monkeypatch: pytest.MonkeyPatch, state: str = "nobody") -> Path:
    """From now on another user's list of what is trusted; gives its path."""
    folder = Path(state).absolute()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "gradcli" / "trusted"


@pytest.fixture
def run(gradcli: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run of this user, whose code leaves `marker` behind; the marker is gone again."""
    as_nobody(monkeypatch, "mine")
    Path("layer.py").write_text(marking(LAYER))
    Path("loss.py").write_text(LOSS)
    Path("own.yaml").write_text(f"code: [loss.py, layer.py]\n{OWN}")
    Path("new.txt").write_text("0.5 0.5\n-0.5 0.5\n")
    ended = gradcli("train", "own.yaml", "--json")
    assert ended.code == 0, ended.err
    Path("marker").unlink()
    yield Path(ended.json["run"])


@pytest.fixture
def strangers(run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run as somebody else gets it: elsewhere, and with nothing that is trusted."""
    shutil.copytree(run, "stranger")
    as_nobody(monkeypatch)
    return Path("stranger")


def call(gradcli: Command, name: str, run: Path, *more: str) -> Ended:
    place = run if "RUN" in arguments_of(name) else run / "resolved.yaml"
    return gradcli(name, str(place), *BESIDE[name], *more)


def test_every_command_that_opens_a_run_or_a_config_is_tried_here() -> None:
    assert set(BESIDE) | WITHOUT_CODE == {name for name in COMMANDS if opens_code(name)}


@pytest.mark.parametrize(
    "command", [("report", "stranger"), ("compare", "stranger", "stranger"), ("runs",)]
)
def test_what_reads_files_alone_runs_no_code(
    gradcli: Command, strangers: Path, command: tuple[str, ...]
) -> None:
    ended = gradcli(*command)
    assert ended.code == 0, ended.err
    assert not Path("marker").exists()
    assert "own code" not in ended.err


@OPENING
def test_a_strangers_code_is_not_run(gradcli: Command, strangers: Path, name: str) -> None:
    files = sorted(strangers.rglob("*"))
    ended = call(gradcli, name, strangers)
    assert not Path("marker").exists()
    assert ended.code == 2, ended.err
    assert f"error[E128] own code {strangers}/layer.py was not run" in ended.err
    assert f"error[E128] own code {strangers}/loss.py was not run" in ended.err
    assert "--trust-code" in ended.err
    assert "runs own code" not in ended.err
    assert sorted(strangers.rglob("*")) == files
    assert not Path("nobody").exists()


def test_a_strangers_run_without_checkpoints_is_no_config_of_this_user(
    gradcli: Command, strangers: Path
) -> None:
    shutil.rmtree(strangers / "checkpoints")
    ended = gradcli("train", str(strangers / "resolved.yaml"))
    assert not Path("marker").exists()
    assert (ended.code, ended.err.count("error[E128]")) == (2, 2), ended.err


@pytest.mark.parametrize("name", ["resume", "eval", "predict"])
def test_code_that_a_run_lost_is_not_called_data(gradcli: Command, run: Path, name: str) -> None:
    (run / "layer.py").unlink()
    ended = call(gradcli, name, run)
    assert ended.code == 2
    assert f"error[E101] there is no file {run}/layer.py, own code" in ended.err
    assert "data has moved" not in ended.err
    assert "other data" not in ended.err


@OPENING
def test_it_is_run_where_that_is_asked_for(gradcli: Command, strangers: Path, name: str) -> None:
    ended = call(gradcli, name, strangers, "--trust-code")
    assert ended.code == 0, ended.err
    assert Path("marker").exists()
    for file in ("layer.py", "loss.py"):
        assert ended.err.count(f"runs own code {strangers}/{file}, sha256 ") == 1
    assert Path("nobody").exists() == (name == "train")


@OPENING
def test_own_runs_go_on_without_it_and_name_their_code(
    gradcli: Command, run: Path, name: str
) -> None:
    ended = call(gradcli, name, run)
    assert ended.code == 0, ended.err
    assert Path("marker").exists()
    hashes = json.loads((run / "manifest.json").read_text())["data"]
    for file in ("layer.py", "loss.py"):
        assert f"runs own code {run}/{file}, sha256 {hashes[f'code/{file}'][:16]}\n" in ended.err


@OPENING
def test_a_known_file_does_not_vouch_for_another_one(
    gradcli: Command, strangers: Path, name: str
) -> None:
    Path("loss.yaml").write_text(f"code: loss.py\n{CONFIG.replace('cross_entropy', 'own')}")
    assert gradcli("train", "loss.yaml", "--max-steps", "1").code == 0
    ended = call(gradcli, name, strangers)
    assert ended.code == 2
    assert ended.err.count("runs own code ") == ended.err.count("error[E128]") == 1
    assert not Path("marker").exists()


@pytest.mark.parametrize("name", ["check", "bench"])
def test_a_config_that_was_not_trained_is_like_one_of_a_stranger(
    gradcli: Command, run: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    as_nobody(monkeypatch)
    Path("own.yaml").write_text(Path("own.yaml").read_text().replace("lr: 0.05", "lr: -1"))
    ended = gradcli(name, "own.yaml", *BESIDE[name])
    assert not Path("marker").exists()
    assert (ended.code, ended.err.count("error[E128]")) == (2, 2)
    assert "own.yaml:1:8" in ended.err
    assert "optim.lr must be" in ended.err
    assert "no layer is called" not in ended.err


def test_weights_of_a_strangers_run_are_taken_without_its_code(
    gradcli: Command, strangers: Path
) -> None:
    Path("plain.yaml").write_text(CONFIG.replace("  - dropout: 0.2\n", "  - relu\n"))
    assert gradcli("train", "plain.yaml", "--from", str(strangers)).code == 0
    Path("plain.yaml").write_text(Path("plain.yaml").read_text() + "pretrained: {from: stranger}\n")
    for name in ("train", "check", "bench"):
        assert gradcli(name, "plain.yaml", *BESIDE[name]).code == 0
    assert not Path("marker").exists()
    assert not Path("nobody").exists()


def test_in_python_it_takes_an_argument(strangers: Path, run: Path) -> None:
    with pytest.raises(ErrorGroup, match=r"own code stranger/loss\.py was not run") as caught:
        package.load(strangers)
    assert {error.code for error in caught.value.errors} == {"E128"}
    assert "trust_code=True" in str([error.notes for error in caught.value.errors])
    assert not Path("marker").exists()
    loaded = package.load(strangers, trust_code=True)
    assert Path("marker").exists()
    assert [note[:27] for note in loaded.notes[:2]] == [
        "runs own code stranger/loss",
        "runs own code stranger/laye",
    ]


def test_python_knows_what_was_trained(run: Path) -> None:
    assert package.load(run).notes[0].startswith(f"runs own code {run}/loss.py, sha256 ")


def test_a_changed_copy_is_unknown_and_then_changed_data(gradcli: Command, run: Path) -> None:
    (run / "loss.py").write_text(LOSS.replace("return", "return 2 *"))
    assert "error[E128]" in gradcli("resume", str(run)).err
    ended = gradcli("resume", str(run), "-s", "train.epochs=4", "--trust-code")
    assert (ended.code, "error[E706]" in ended.err) == (7, True)


IMPORTING = """\
import sys
from pathlib import Path

here = Path(__file__).parent
sys.path[:0] = [str(here), str(here / "lib")]
try:
    import beside_own_code
finally:
    del sys.path[:2]
    sys.modules.pop("beside_own_code", None)
"""


@pytest.mark.parametrize("planted", ["{}.py", "{}/__init__.py", "lib/{}.py"])
def test_a_module_beside_known_code_is_not_run(gradcli: Command, run: Path, planted: str) -> None:
    """The hash of a file says nothing of what it imports from its folder."""
    planted = planted.format("beside_own_code")
    Path("loss.py").write_text(IMPORTING + LOSS)
    Path("beside_own_code.py").write_text("")
    trained = gradcli("train", "own.yaml", "--json")
    assert trained.code == 0, trained.err
    own = Path(trained.json["run"])
    (own / planted).parent.mkdir(exist_ok=True)
    (own / planted).write_text(marking("", "planted"))
    ended = gradcli("eval", str(own))
    assert (ended.code, Path("planted").exists()) == (2, False), ended.err
    assert f"{own.name}/{planted} lies beside it" in ended.err
    assert gradcli("eval", str(own), "--trust-code").code == 0
    assert Path("planted").exists()
