"""CI's plugin: a test that passed is not run again, one that failed or was skipped is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """\
import os
import pytest

def test_right():
    pass

def test_wrong():
    assert "MENDED" in os.environ

@pytest.mark.skipif("MENDED" not in os.environ, reason="needs a library")
def test_elsewhere():
    pass
"""


def outcome(folder: Path, *options: str, **environment: str) -> str:
    """The last line of a run of the tests in `folder`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "once", *options, "test_three.py"]
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": paths, "GRADCLI_PASSED": "passed", **environment}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    return ended.stdout.strip().splitlines()[-1].rpartition(" in ")[0]


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "with workers"])
def test_what_passed_on_this_build_is_not_run_again(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "test_three.py").write_text(TESTS)
    assert outcome(tmp_path, *options) == "1 failed, 1 passed, 1 skipped"
    second = "2 passed" + ("" if options else ", 1 deselected")  # xdist does not say so
    assert outcome(tmp_path, *options, MENDED="1") == second
    assert sorted((tmp_path / "passed").read_text().split()) == [
        "test_three.py::test_elsewhere",
        "test_three.py::test_right",
        "test_three.py::test_wrong",
    ]
    assert "passed" not in outcome(tmp_path, *options, MENDED="1")
    assert outcome(tmp_path, *options, MENDED="1", GRADCLI_PASSED="") == "3 passed"
