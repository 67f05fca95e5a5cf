"""A plugin for CI: `-p once` leaves out tests that already passed on the same build of the kernels.

$GRADCLI_PASSED names the file that lists them. Without it nothing changes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

passed: set[str] = set()


def _file() -> Path | None:
    name = os.environ.get("GRADCLI_PASSED")
    return Path(name) if name else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what passed before; all workers of pytest-xdist read the same file."""
    file = _file()
    if file is None or not file.exists():
        return
    before = set(file.read_text(encoding="utf-8").splitlines())
    repeats = [item for item in items if item.nodeid in before]
    items[:] = [item for item in items if item.nodeid not in before]
    config.hook.pytest_deselected(items=repeats)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that ran and passed; skipped ones may run in another environment."""
    if report.when == "call" and report.passed:
        passed.add(report.nodeid)
    elif report.failed:
        passed.discard(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add them to the list, once for all workers."""
    file = _file()
    if file is None or hasattr(session.config, "workerinput"):
        return
    with file.open("a", encoding="utf-8") as lines:
        lines.writelines(f"{nodeid}\n" for nodeid in sorted(passed))
