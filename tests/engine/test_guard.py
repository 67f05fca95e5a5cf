"""A mapped file that becomes shorter is read as zeros and noted; other bus errors stay the same.

Each test reads in a child process, which would die.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

START = """
import ctypes, mmap, os, signal, sys, threading
from gradcli import engine
from gradcli.engine.device import cpu
from gradcli.engine.device.guard import Guard

PAGE, PAGES = mmap.PAGESIZE, 64
path = sys.argv[1]
with open(path, "wb") as file:
    file.write(b"\\1" * (PAGE * PAGES))
file = open(path, "r+b")
def mapped():
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    address = cpu.address(cpu.borrow(view))
    return view, address
"""


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START + code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_what_a_file_has_lost_is_read_as_zeros_and_noted(tmp_path: Path) -> None:
    result = run(
        """
view, address = mapped()
guard = Guard(address, len(view))
assert view[0] == view[len(view) - 1] == 1 and not guard.truncated
os.ftruncate(file.fileno(), PAGE)
assert view[0] == 1 and not guard.truncated
assert view[PAGE] == 0 and guard.truncated
assert view[:] == b"\\1" * PAGE + b"\\0" * (PAGE * (PAGES - 1))
""",
        tmp_path / "file",
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_kernels_on_many_threads_read_zeros_too(tmp_path: Path) -> None:
    result = run(
        """
view, address = mapped()
guard = Guard(address, len(view))
cpu.set_threads(4)
numbers = engine.frombuffer(view, dtype=engine.uint8)
os.ftruncate(file.fileno(), PAGE * 3)
assert numbers.to(engine.float64).sum().item() == PAGE * 3 and guard.truncated
""",
        tmp_path / "file",
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_each_range_notes_its_own_loss(tmp_path: Path) -> None:
    result = run(
        """
views = [mapped() for _ in range(3)]
guards = [Guard(address, len(view)) for view, address in views]
os.ftruncate(file.fileno(), 0)
views[1][0][5]
assert [guard.truncated for guard in guards] == [False, True, False]
guards[1].take_off()
guards[1].take_off()
again = Guard(views[1][1], PAGE)
assert not again.truncated and not guards[1].truncated
""",
        tmp_path / "file",
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_forked_child_is_guarded_too(tmp_path: Path) -> None:
    result = run(
        """
view, address = mapped()
guard = Guard(address, len(view))
os.ftruncate(file.fileno(), 0)
child = os.fork()
if child == 0:
    os._exit(7 if view[0] == 0 and guard.truncated else 8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert not guard.truncated
""",
        tmp_path / "file",
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_read_outside_any_range_ends_as_without_a_guard(tmp_path: Path) -> None:
    result = run(
        """
(one, address), (other, _) = mapped(), mapped()
guard = Guard(address, PAGE)
os.ftruncate(file.fileno(), 0)
assert one[0] == 0
other[0]
""",
        tmp_path / "file",
    )
    assert result.returncode == -signal.SIGBUS


def test_a_range_that_was_taken_off_is_not_guarded(tmp_path: Path) -> None:
    result = run(
        """
view, address = mapped()
Guard(address, len(view)).take_off()
os.ftruncate(file.fileno(), 0)
view[0]
""",
        tmp_path / "file",
    )
    assert result.returncode == -signal.SIGBUS


def test_a_handler_from_before_has_what_lies_outside(tmp_path: Path) -> None:
    result = run(
        """
import faulthandler
faulthandler.enable()
(one, address), (other, _) = mapped(), mapped()
guard = Guard(address, len(one))
os.ftruncate(file.fileno(), 0)
assert one[0] == 0
print("read zeros", flush=True)
other[0]
""",
        tmp_path / "file",
    )
    assert (result.returncode, result.stdout) == (-signal.SIGBUS, "read zeros\n")
    assert "Fatal Python error: Bus error" in result.stderr


def test_a_signal_that_somebody_sends_goes_where_it_went(tmp_path: Path) -> None:
    result = run(
        """
reached = []
signal.signal(signal.SIGBUS, lambda *_: reached.append(1))
view, address = mapped()
guard = Guard(address, len(view))
os.kill(os.getpid(), signal.SIGBUS)
assert reached == [1] and not guard.truncated
""",
        tmp_path / "file",
    )
    assert (result.returncode, result.stderr) == (0, "")
    result = run(
        """
view, address = mapped()
guard = Guard(address, len(view))
os.kill(os.getpid(), signal.SIGBUS)
""",
        tmp_path / "file",
    )
    assert result.returncode == -signal.SIGBUS


def test_an_end_of_guards_is_said(tmp_path: Path) -> None:
    result = run(
        """
from gradcli.errors import DeviceError
view, address = mapped()
guards = [Guard(address, PAGE) for _ in range(1 << 14)]
try:
    Guard(address, PAGE)
except DeviceError as error:
    print(error)
guards[77].take_off()
Guard(address, PAGE)
""",
        tmp_path / "file",
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "too many files are mapped" in result.stdout
