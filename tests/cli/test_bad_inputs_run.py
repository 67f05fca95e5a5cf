"""Rows 53 to 61: the command line, the run's directory, the machine and the surroundings."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import points
import pytest
from points import CONFIG, Ended, only_run
from refusals import alone, begin, finish, gradcli, needs_proc, refused

from gradcli.engine.device import cpu
from gradcli.train.directory import RunDirectory

__all__ = ["gradcli", "refused"]

Refused = Callable[..., Ended]
EVERY_2 = ("-s", "train.checkpoint_every=2")


@pytest.fixture
def stopped(gradcli: Refused) -> Path:
    """A run stopped after 4 of 18 steps."""
    assert gradcli("train", "dots.yaml", *EVERY_2, "--max-steps", "4").code == 0
    return only_run()


@pytest.fixture
def whole(gradcli: Refused) -> str:
    """The weights of a run that nothing disturbs."""
    return str(gradcli("train", "dots.yaml", "--json", "--name", "whole").json["weights_sha256"])


# 53: usage.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Usage: gradcli"),
        (("trian", "dots.yaml"), "did you mean 'train'?"),
        (("train", "dots.yaml", "--nmae", "x"), "--name"),
        (("train", "dots.yaml", "--name"), "requires an argument"),
        (("train",), "Missing argument 'CONFIG'"),
        (("train", "dots.yaml", "--max-steps", "-1"), "-1 is not in the range"),
    ],
)
def test_wrong_usage_is_refused(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert "Usage: gradcli" in refused(2, message, *arguments).err


# 54: overrides.


@pytest.mark.parametrize(
    "text",
    [
        "optim.lr=1e-400",
        "optim.lr=1e400",
        "train.lr=abc",
        "train.lr.x=1",
        "=",
        "train.batch",
        "optim.lr=abc",
        "optim.lr.x=1",
    ],
)
def test_a_wrong_override_is_shown(refused: Refused, text: str) -> None:
    refused(2, f"--> -s {text}", "train", "dots.yaml", "-s", text)


def test_an_override_given_twice_is_refused(refused: Refused) -> None:
    twice = ("-s", "train.batch=1", "--set", "train.batch=2")
    refused(2, "'train.batch' is overridden twice", "train", "dots.yaml", *twice)


# 55, 56: one run a directory, one process a run.


def test_a_new_run_never_goes_into_an_old_one(gradcli: Refused) -> None:
    runs = [gradcli("train", "dots.yaml", "--json").json["run"] for _ in range(2)]
    assert runs[0] != runs[1]
    before = {path: path.read_bytes() for path in Path(runs[0]).rglob("*") if path.is_file()}
    assert gradcli("train", "dots.yaml", "--name", "dots").code == 0
    assert {
        path: path.read_bytes() for path in Path(runs[0]).rglob("*") if path.is_file()
    } == before
    assert len(list(Path("runs/dots").iterdir())) == 3


def test_a_run_in_use_is_refused_with_its_holder(refused: Refused, stopped: Path) -> None:
    with RunDirectory(stopped):
        ended = refused(7, f"in use by process {os.getpid()} on", "resume", "last")
    assert f"on {socket.gethostname()}, started 20" in ended.err


# 57: disks.


LIMIT = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))"
LONG = ("-s", "train.epochs=60", "-s", "train.checkpoint_every=50")


def test_a_disk_that_is_full_at_the_first_save_leaves_nothing(tmp_path: Path) -> None:
    wide = ("-s", "model=[linear: 400, linear: 2]")
    ended = alone(tmp_path, "train", "dots.yaml", *wide, before=LIMIT.format(8000))
    assert (ended.code, "cannot save" in ended.err) == (7, True)
    assert list(tmp_path.glob("runs/dots/*")) == []


def test_a_disk_that_is_full_at_the_log_keeps_the_checkpoint(gradcli: Refused) -> None:
    ended = alone(Path.cwd(), "train", "dots.yaml", *LONG, before=LIMIT.format(16_000))
    assert (ended.code, "cannot write" in ended.err) == (7, True)
    assert "log.jsonl" in ended.err
    whole = gradcli("train", "dots.yaml", "--json", "--name", "whole", *LONG).json
    assert gradcli("resume", "dots", "--json").json["weights_sha256"] == whole["weights_sha256"]


@needs_proc
def test_a_disk_that_is_full_at_the_last_save_keeps_the_one_before(
    gradcli: Refused, whole: str, monkeypatch
) -> None:
    usual = os.fsync

    def full(handle: int) -> None:
        name = str(Path(f"/proc/self/fd/{handle}").readlink())
        if (
            "/checkpoints/" in name
            and (only_run() / "checkpoints/step-00000012.safetensors").exists()
        ):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        usual(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        ended = gradcli("train", "dots.yaml")
    assert ended.code == 7
    assert "No space left on device; older checkpoints are untouched" in ended.err
    assert json.loads((only_run() / "status.json").read_text())["status"] == "failed"
    assert gradcli("resume", "dots", "--json").json["weights_sha256"] == whole


def test_a_place_that_cannot_be_written_is_refused_at_the_start(
    refused: Refused, monkeypatch
) -> None:
    refused(7, "cannot make a run in", "train", "dots.yaml", "--runs", "dots.yaml/runs")

    def readonly(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "mkdir", readonly)
    refused(7, "Read-only file system", "train", "dots.yaml")


# 59, 60: devices and threads.


@pytest.mark.parametrize("command", ["train", "resume", "eval", "bench"])
@pytest.mark.parametrize("device", ["cuda", "cuda:7", "metal"])
def test_a_device_that_is_not_there_is_never_replaced(
    refused: Refused, command: str, device: str
) -> None:
    refused(4, f"device '{device}' cannot be used", command, "dots.yaml", "--device", device)


@pytest.mark.parametrize("count", ["0", "-1", "10000", "many"])
def test_an_impossible_number_of_threads_is_refused(refused: Refused, count: str) -> None:
    message = f"a number of threads is a whole number from 1 to 256, got {count}"
    refused(2, message, "train", "dots.yaml", "--threads", count)


@pytest.mark.parametrize("command", ["train", "resume", "eval"])
@pytest.mark.parametrize("name", ["sse9", "AVX2", "", "neon,avx2", "\udcff"])
def test_an_instruction_set_that_is_not_there_is_refused(
    refused: Refused, command: str, name: str
) -> None:
    message = f"it has {', '.join(cpu.usable_isas())}"
    ended = refused(2, message, command, "dots.yaml", "--isa", name)
    assert "this machine has no instruction set '" in ended.err


# 58: a limit on memory.

# The process may have so many bytes of addresses more than it has now.
ROOM = """
import resource
from pathlib import Path
limit = {0} + 4096 * int(Path('/proc/self/statm').read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
"""
LARGE = points.CONFIG.replace("linear: 8", "linear: 4000\n  - linear: 4000")


@needs_proc
@pytest.mark.parametrize("more", [0, 1 << 20])
def test_memory_that_is_used_up_is_named_with_its_limit(tmp_path: Path, more: int) -> None:
    ended = alone(tmp_path, "train", "dots.yaml", before=ROOM.format(more))
    assert (ended.code, ended.out) == (4, "")
    (told,) = re.findall(
        r"^error\[E402\] the memory of this process is used up: `ulimit -v` allows ([\d,]+) bytes; "
        r"free: ([\d,]+) bytes\n$",
        ended.err,
    )
    limit, free = (int(number.replace(",", "")) for number in told)
    assert limit > 10 * free
    assert not (tmp_path / "runs").exists()


@needs_proc
def test_a_training_that_needs_more_than_the_limit_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text(LARGE)  # 16 million parameters with adam: 257 MB
    ended = alone(tmp_path, "train", "large.yaml", before=ROOM.format(250 << 20))
    assert (ended.code, ended.out) == (4, "")
    assert re.match(r"error\[E402\] training needs .* MB, this machine has .* MB avail", ended.err)
    assert not (tmp_path / "runs").exists()


# Each thread asks for a stack of 100 MB, and the process may have 300 MB more than it has now.
BIG_STACKS = ("sh", "-c", 'ulimit -s 102400 && exec "$@"', "sh")
FEW_THREADS = """
import resource
from pathlib import Path
used = 4096 * int(Path('/proc/self/statm').read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), used + (300 << 20)))
"""


@needs_proc
@pytest.mark.skipif(
    0 <= resource.getrlimit(resource.RLIMIT_STACK)[1] < 100 << 20, reason="stacks are limited"
)
def test_threads_that_the_machine_refuses_are_a_warning(tmp_path: Path) -> None:
    options = ("--threads", "256", "-s", "train.epochs=1")
    ended = alone(tmp_path, "train", "dots.yaml", *options, before=FEW_THREADS, prefix=BIG_STACKS)
    assert ended.code == 0
    assert "warning: asked for 256 threads, the machine grants " in ended.err


# 61: surroundings.


@pytest.fixture(scope="module")
def commas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A locale that writes 0,5 for a half."""
    folder = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef") is None:
        pytest.skip("needs localedef")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
    subprocess.run(made, capture_output=True, check=False)
    if not (folder / "de_DE.UTF-8").exists():
        pytest.skip("needs the sources of the locale de_DE")
    return {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8"}


ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SURROUNDINGS = [
    {"LANG": "C", "LC_ALL": "C"},
    {**ASCII, "PYTHONIOENCODING": "ascii"},
    {"COLUMNS": "20"},
    {"HOME": ""},
    {"TERM": "dumb"},
]


@pytest.mark.parametrize("environment", SURROUNDINGS, ids=lambda one: next(iter(one)))
def test_a_training_does_not_depend_on_its_surroundings(
    tmp_path: Path, whole: str, environment: dict[str, str]
) -> None:
    ended = alone(tmp_path, "train", "dots.yaml", "--json", environment=environment)
    assert (ended.code, ended.err) == (0, "")
    assert ended.json["weights_sha256"] == whole


def test_numbers_have_a_point_where_the_country_writes_a_comma(
    tmp_path: Path, whole: str, commas: dict[str, str]
) -> None:
    local = "import locale\nlocale.setlocale(locale.LC_ALL, '')\nassert locale.str(0.5) == '0,5'"
    ended = alone(tmp_path, "train", "dots.yaml", environment=commas, before=local)
    assert ended.code == 0
    assert f"weights sha256 {whole}" in ended.out
    assert "test.accuracy 0." in ended.out
    (run,) = (tmp_path / "runs/dots").iterdir()
    assert all(json.loads(line) for line in (run / "log.jsonl").read_text().splitlines())
    assert "lr: 0.05" in (run / "resolved.yaml").read_text()


def test_a_name_that_the_terminal_lacks_is_escaped(tmp_path: Path) -> None:
    ended = alone(tmp_path, "train", "d\xf6ts.yaml", environment={"PYTHONIOENCODING": "ascii"})
    assert (ended.code, "d\\xf6ts.yaml" in ended.err) == (2, True)


def test_a_tilde_without_a_home_is_a_data_error(refused: Refused) -> None:
    source = "{name: csv, file: ~no-such-user/t.csv, target: y, numeric: [n]}"
    Path("dots.yaml").write_text(CONFIG.replace("{name: points}", source))
    refused(3, "~no-such-user/t.csv", "train", "dots.yaml")


def test_a_clock_that_is_set_back_makes_no_negative_time(gradcli: Refused, monkeypatch) -> None:
    clock = iter(range(10**9, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    assert gradcli("train", "dots.yaml", "--json").json["seconds"] >= 0


# Each exit code once more, in a process of its own.


def test_every_exit_code_is_that_of_the_process(tmp_path: Path) -> None:
    missing = "data={name: csv, file: no.csv, target: y, numeric: [n]}"
    commands = {
        0: ("train", "dots.yaml", "-s", "train.epochs=1"),
        2: ("train", "dots.yaml", "-s", "optim.lr=fast"),
        3: ("train", "dots.yaml", "-s", missing),
        4: ("train", "dots.yaml", "--device", "metal", "--name", "metal"),
        5: ("train", "dots.yaml", "-s", "optim={name: sgd, lr: 1e30}", "-s", "train.epochs=9"),
        6: ("train", "dots.yaml", "-s", 'expect={test.accuracy: ">= 2"}'),
        7: ("resume", "nothing"),
    }
    processes = {code: begin(tmp_path, *arguments) for code, arguments in commands.items()}
    assert {code: finish(process).code for code, process in processes.items()} == {
        code: code for code in commands
    }
