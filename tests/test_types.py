"""Types: what mypy makes of a user's script, and of calls that no one should write."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gradcli.engine import stubs

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gradcli"
SCRIPTS = ROOT / "tests" / "types"


def refused(path: Path) -> set[int]:
    """The lines that are marked so."""
    return {i for i, line in enumerate(path.read_text().splitlines(), 1) if "# refused" in line}


def test_the_script_runs() -> None:
    assert runpy.run_path(str(SCRIPTS / "right.py"))["accuracy"] >= 0


def test_mypy_takes_the_script_and_refuses_each_misuse(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="of the extra 'dev'")
    # As a package that is installed: what mypy has to say of gradcli itself is said elsewhere.
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "right.py", "wrong.py"],
        cwd=SCRIPTS,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = re.findall(r"^(\w+\.py):(\d+): error: ", done.stdout, re.MULTILINE)
    assert {(name, int(line)) for name, line in errors} == {
        ("wrong.py", line) for line in refused(SCRIPTS / "wrong.py")
    }, done.stdout


def test_type_checkers_see_every_install() -> None:
    """A wheel holds the stubs; an editable install is a path, as they follow no import hook."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert settings["package-dir"] == {"": "."}
    carried = {path for glob in settings["package-data"]["gradcli"] for path in PACKAGE.glob(glob)}
    assert {PACKAGE / "py.typed", *PACKAGE.rglob("*.pyi")} <= carried


def test_ops_are_called_by_names_that_have_types() -> None:
    """`table.exp(x)`: what OPS["exp"] gives has no type."""
    files = PACKAGE.rglob("*.py")
    assert not [path.name for path in files if re.search(r'OPS\["', path.read_text())]


def test_every_op_says_what_it_gives() -> None:
    results = re.findall(r"^def (\w+)\(.*\) -> (.*?):", stubs.table_stub(), re.MULTILINE)
    assert len(results) > 400
    assert {name for name, result in results if "Any" in result} == {"numpy"}
