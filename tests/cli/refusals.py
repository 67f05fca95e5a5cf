"""What every refused command line must keep: its exit code, one message, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import points
import pytest
from points import Ended, gradcli

import gradcli as package

__all__ = ["gradcli", "refused"]

CPU_SECONDS = 2.0
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")


def files() -> list[str]:
    """Everything below ./runs, and whether it is there at all."""
    return [*sorted(str(path) for path in Path().glob("runs/**/*")), str(Path("runs").exists())]


@pytest.fixture
def refused(gradcli: Callable[..., Ended]) -> Callable[..., Ended]:
    """`refused(2, "message", "train", "a.yaml")`: ends so, at once, and writes nothing."""

    def call(code: int, message: str, *arguments: object) -> Ended:
        before, start = files(), time.process_time()
        ended = gradcli(*map(str, arguments))
        assert time.process_time() - start < CPU_SECONDS
        assert (ended.code, message in ended.err) == (code, True), ended.err
        assert ended.out == ""
        assert files() == before
        return ended

    return call


def begin(
    folder: Path,
    *arguments: str,
    before: str = "",
    environment: dict[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """`gradcli ARGUMENTS` in a process of its own, in a folder that holds dots.yaml.

    `before` is Python that runs first, in the same process; `environment` replaces variables,
    an empty value removes one.
    """
    (folder / "dots.yaml").write_text(points.CONFIG)
    code = (
        "import sys\n"
        f"sys.path[:0] = [{str(Path(points.__file__).parent)!r}]\n"
        f"sys.argv = ['gradcli', *{list(arguments)!r}]\n"
        "import points\n"
        "points.DATASETS['points'] = points.Points\n"
        f"{before}\n"
        "sys.exit(points.run(sys.argv[1:]))\n"
    )
    variables = {
        **os.environ,
        "PYTHONPATH": str(Path(package.__file__).parents[1]),
        **(environment or {}),
    }
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", code],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in variables.items() if value},
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    """How it ended; never with a traceback."""
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return Ended(process.returncode, out, err)


def alone(folder: Path, *arguments: str, **options: object) -> Ended:
    """A whole command line in a process of its own."""
    return finish(begin(folder, *arguments, **options))  # type: ignore[arg-type]
