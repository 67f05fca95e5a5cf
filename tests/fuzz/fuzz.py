"""Read spoilt inputs in a process of its own: `python tests/fuzz/fuzz.py csv npy --seconds 300`.

A crash, a hang or a request for too much memory ends that process only; the input in progress is
known, counts as a fault, and the next process goes on behind it. `--only N` repeats input N here.
The files of a run have other times in each run: `--saved FOLDER` repeats one of those exactly.
"""

from __future__ import annotations

import argparse
import base64
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from config_parsers import ConfigFile  # noqa: E402
from data_parsers import Cifar, Csv, Idx, Npy, Npz, Sums, Text  # noqa: E402
from long_parsers import LongText  # noqa: E402
from parsing import Files, Parser, input_of, judge  # noqa: E402
from picture_parsers import ImageSource  # noqa: E402
from published_parsers import PublishedConfig, PublishedIndex, PublishedWeights  # noqa: E402
from run_parsers import CheckpointHeader, LogFile, SmallFiles  # noqa: E402
from table_parsers import Arrow, BothReaders, JsonLines, Parquet  # noqa: E402
from tensor_parsers import Safetensors  # noqa: E402
from token_parsers import Tokens  # noqa: E402
from tokenizer_parsers import Documents, Tokenizers  # noqa: E402

PARSERS: dict[str, Callable[[Path], Parser]] = {
    "config": ConfigFile,
    "csv": Csv,
    "csv-readers": BothReaders,
    "json-lines": JsonLines,
    "parquet": Parquet,
    "arrow": Arrow,
    "idx": Idx,
    "cifar": Cifar,
    "npy": Npy,
    "npz": Npz,
    "text": Text,
    "long-text": LongText,
    "tokens": Tokens,
    "tokenizers": Tokenizers,
    "documents": Documents,
    "sums": Sums,
    "pictures": ImageSource,
    "safetensors": Safetensors,
    "published-config": PublishedConfig,
    "published-index": PublishedIndex,
    "published-weights": PublishedWeights,
    "checkpoint": CheckpointHeader,
    "log": LogFile,
    "run-files": SmallFiles,
}
# The library through which a parser reads, of those that need not be installed.
NEEDS = {"pictures": "PIL", "csv-readers": "pyarrow", "parquet": "pyarrow", "arrow": "pyarrow"}
MEMORY = 1 << 30  # bytes that one process may ask for while it reads
PATIENCE = 10  # seconds for one input
IN_C = 3 * PATIENCE  # seconds after which it hangs where no signal of ours is heard
MOST = 100  # causes after which a parser is not asked any more
STATE = struct.Struct("=qddqqdq")


@dataclass(frozen=True)
class Fault:
    """An input that a parser cannot cope with; `files` are what it was, where that is known."""

    parser: str
    number: int
    cause: str
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What other faults of the same cause have too."""
        of_an_answer = self.cause.startswith("WrongAnswerError")
        return ": ".join(self.cause.split(": ")[: 2 if of_an_answer else 1])

    def __str__(self) -> str:
        return f"  {self.parser} --only {self.number}: {self.cause}"


@dataclass
class Report:
    """What came of the inputs of one parser; of each cause the first fault."""

    parser: str
    inputs: int = 0
    refused: int = 0
    accepted: int = 0
    slowest_s: float = 0.0
    peak_mb: float = 0.0
    faults: int = 0
    causes: dict[str, Fault] = field(default_factory=dict)

    def add(self, state: State, faults: list[Fault]) -> None:
        """What one process did."""
        self.inputs += state.inputs
        self.refused += state.refused
        self.faults += len(faults)
        self.accepted = self.inputs - self.refused - self.faults
        self.slowest_s = max(self.slowest_s, round(state.slowest, 3))
        self.peak_mb = max(self.peak_mb, round(state.peak / 2**20, 1))
        for fault in faults:
            self.causes.setdefault(fault.kind, fault)

    def counters(self) -> dict[str, Any]:
        """The figures alone."""
        return {name: value for name, value in vars(self).items() if name != "causes"}

    def __str__(self) -> str:
        line = "{parser:17} {inputs:9,} inputs  {refused:9,} refused  {accepted:9,} accepted  "
        line += "slowest {slowest_s:.3f} s  peak {peak_mb:.0f} MB  {faults} faults"
        return "\n".join([line.format(**self.counters()), *map(str, self.causes.values())])


@dataclass
class State:
    """How far a process is; it lies in memory that its parent sees, whatever becomes of it.

    Attributes:
        number: of the input that it reads.
        opened: when it began with its first input; 0.0 before that.
        began: when it began with this one.
    """

    number: int
    opened: float = 0.0
    began: float = 0.0
    inputs: int = 0
    refused: int = 0
    slowest: float = 0.0
    peak: int = 0

    def pack(self) -> bytes:
        return STATE.pack(*vars(self).values())


class HangError(BaseException):
    """Raised by the alarm; no reader may catch it."""


def work(name: str, first: int, seconds: float, folder: Path) -> None:
    """Read the inputs from a number on, note each before it is read, and write down faults."""
    warnings.simplefilter("error")
    parser = begun(name, folder / "files")
    for files in parser.right():
        outcome, cause = judge(parser, files)
        if outcome != "accepted":
            raise AssertionError(f"a right input is not accepted: {cause}")
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which takes all the space there is
        resource.setrlimit(resource.RLIMIT_AS, (address_space() + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _ring)
    state = State(first, time.monotonic())
    until = state.opened + seconds
    with (folder / "state").open("r+b") as file, mmap.mmap(file.fileno(), STATE.size) as note:
        while time.monotonic() < until:
            state.began = time.monotonic()
            note[:] = state.pack()
            files = input_of(parser, name, state.number)
            cause = read_one(parser, files, state)
            if cause:
                write_down(folder / "faults", Fault(name, state.number, cause, texts_of(files)))
            state.number += 1
            state.inputs += 1
        note[:] = state.pack()


def begun(name: str, folder: Path) -> Parser:
    """A parser with a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return PARSERS[name](folder)


def texts_of(files: Files) -> dict[str, str]:
    """The content of files as JSON can have it."""
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def write_down(path: Path, fault: Fault) -> None:
    with path.open("a") as faults:
        faults.write(json.dumps(asdict(fault)) + "\n")


def read_one(parser: Parser, files: Files, state: State) -> str:
    """Read an input; the cause where that is a fault, else ""."""
    began = time.process_time()
    signal.alarm(PATIENCE)
    try:
        outcome, cause = judge(parser, files)
    except HangError as error:
        frame = error.__traceback__
        while frame and frame.tb_next:
            frame = frame.tb_next
        line = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else ""
        outcome, cause = "fault", f"no answer in {PATIENCE} s, at {line}"
    finally:
        signal.alarm(0)
    state.slowest = max(state.slowest, time.process_time() - began)
    state.refused += outcome == "refused"
    unit = 1 if sys.platform == "darwin" else 1024
    state.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return cause if outcome == "fault" else ""


def _ring(number: int, frame: FrameType | None) -> None:
    raise HangError


def address_space() -> int:
    """Bytes of address space that this process has; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 2 << 30


def fuzz(name: str, seconds: float, first: int = 0, program: str = __file__) -> Report:
    """Read inputs for so long, in processes of a program."""
    report, again = Report(name), False
    while seconds > 0 and len(report.causes) < MOST:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="gradcli-fuzz-") as folder:
            first, opened = _one_process(report, first, seconds, Path(folder), program)
        seconds -= time.monotonic() - (started if again else opened)
        again = True
    return report


def _one_process(
    report: Report, first: int, seconds: float, folder: Path, program: str
) -> tuple[int, float]:
    """Add what one process did; the number behind its last input, and when it began its first."""
    note, faults = folder / "state", folder / "faults"
    note.write_bytes(State(first).pack())
    faults.touch()
    arguments = [report.parser, "--work", str(first), str(seconds), str(folder)]
    with (
        (folder / "stderr").open("w+b") as err,
        subprocess.Popen([sys.executable, program, *arguments], stderr=err) as process,
    ):
        _wait(process, note)
        err.seek(0)
        said = err.read().decode(errors="replace").strip()
    state = State(*STATE.unpack(note.read_bytes()))
    if not state.opened or process.returncode == 1:
        raise RuntimeError(f"the fuzzer itself failed at {report.parser} {state.number}:\n{said}")
    listed = [Fault(**json.loads(line)) for line in faults.read_text().splitlines()]
    if process.returncode:
        how = f"exit {process.returncode}"
        if process.returncode < 0:
            how = signal.Signals(-process.returncode).name
        listed.append(
            Fault(report.parser, state.number, f"the process ended, {how}: {said[-300:]}")
        )
        state.number += 1
        state.inputs += 1
    report.add(state, listed)
    return state.number, state.opened


def _wait(process: subprocess.Popen[bytes], note: Path) -> None:
    """Until it ends; one that does not come to its next input is killed."""
    while True:
        try:
            process.wait(0.2)
            return
        except subprocess.TimeoutExpired:
            began = State(*STATE.unpack(note.read_bytes())).began
            if began and time.monotonic() - began > IN_C:
                process.kill()


def save(report: Report, folder: Path) -> None:
    """The files of the first fault of each cause, and what became of them."""
    for fault in report.causes.values():
        place = folder / f"{fault.parser}-{fault.number}"
        for name, text in fault.files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(base64.b64decode(text))
        place.mkdir(parents=True, exist_ok=True)
        place.with_suffix(".txt").write_text(f"{fault.cause}\n")


def files_in(folder: Path) -> Files:
    """Every file in a folder, by its path in there."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def repeat(name: str, number: int | None, saved: Path | None) -> None:
    """One input, by its number or from where it was saved, read here: a fault is raised."""
    with tempfile.TemporaryDirectory(prefix="gradcli-fuzz-") as scratch:
        parser = begun(name, Path(scratch))
        files = input_of(parser, name, number or 0) if saved is None else files_in(saved)
        for file, content in files.items():
            sys.stdout.write(f"{file}: {content[:2000]!r}\n")
        parser.read(files)


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parsers", nargs="*", choices=[*PARSERS, []], help="all if none is named")
    options.add_argument("--seconds", type=float, default=300.0, help="for each parser")
    options.add_argument("--first", type=int, default=0, help="the number of the first input")
    options.add_argument("--faults", type=Path, help="a folder for the inputs at fault")
    options.add_argument("--json", action="store_true", help="one JSON object a parser")
    options.add_argument("--only", type=int, help="repeat the input of this number")
    options.add_argument("--saved", type=Path, help="repeat an input from this folder of --faults")
    options.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        first, seconds, folder = chosen.work
        work(chosen.parsers[0], int(first), float(seconds), Path(folder))
        return
    if chosen.only is not None or chosen.saved is not None:
        repeat(chosen.parsers[0], chosen.only, chosen.saved)
        return
    for name in chosen.parsers or PARSERS:
        report = fuzz(name, chosen.seconds, chosen.first)
        if chosen.faults:
            save(report, chosen.faults)
        sys.stdout.write(f"{json.dumps(report.counters()) if chosen.json else report}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
