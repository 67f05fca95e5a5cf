"""The fixture `agree` of tests/parity, and the table of what agreed: a plugin of tests/conftest.py.

Not a second conftest.py: two modules of one name would hide each other from type hints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger import Ledger, names

_KEY = pytest.StashKey[Ledger]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Two ways to use the table."""
    parser.addoption("--parity-table", metavar="FILE", help="write what was compared with torch")
    parser.addoption("--parity-check", metavar="FILE", help="fail if this table is not true")


def pytest_configure(config: pytest.Config) -> None:
    """One ledger a process."""
    config.stash[_KEY] = Ledger()


@pytest.fixture(autouse=True)
def _same_torch(request: pytest.FixtureRequest) -> None:
    """Torch computes as at its start, whatever a test before has set: threads decide its bits."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and request.node.get_closest_marker("parity"):
        torch.set_num_threads(1)
        torch.set_float32_matmul_precision("highest")


@pytest.fixture
def agree(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """`agree(name, ours, theirs)`: equal up to rounding, and booked under this name."""
    ledger = request.config.stash[_KEY]

    def compare(name: str, found: Any, expected: Any, *, terms: int = 128) -> None:
        from both import close

        dtype = str(expected.dtype).removeprefix("torch.")
        ledger.enter(name, request.node.nodeid, dtype, close(found, expected, terms=terms))

    yield compare


class _Collector:
    """Gathers what the processes of pytest-xdist found."""

    @staticmethod
    def pytest_testnodedown(node: Any, error: object) -> None:
        """A process has ended."""
        node.config.stash[_KEY].add(getattr(node, "workeroutput", {}).get("parity", {}))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Only pytest-xdist's main process knows the hook above."""
    if session.config.pluginmanager.hasplugin("dsession"):
        session.config.pluginmanager.register(_Collector())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Hand the ledger over, write it, or hold it against the table."""
    config = session.config
    ledger = config.stash[_KEY]
    if hasattr(config, "workeroutput"):
        config.workeroutput["parity"] = ledger.packed()
        return
    if config.getoption("--parity-table") and exitstatus == 0:
        Path(config.getoption("--parity-table")).write_text(ledger.table())
    if config.getoption("--parity-check"):
        written = Path(config.getoption("--parity-check")).read_text()
        if names(written) != names(ledger.table()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            sys.stderr.write("\nthe table of parity is stale; write it with --parity-table\n")
