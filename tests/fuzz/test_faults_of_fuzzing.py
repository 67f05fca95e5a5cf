"""Faults that were planted in readers on purpose: the fuzzer reports each of them."""

from __future__ import annotations

import importlib
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz
import pytest
from parsing import OneFile, Parser, WrongAnswerError, input_of, judge

from gradcli.config import reader
from gradcli.data import cifar, decode, idx, long_text, npy, sums, text
from gradcli.data.arrow.row_blocks import RowBlocks
from gradcli.data.bpe import documents, tokenizer
from gradcli.data.prepared.number_checks import Below
from gradcli.data.tabular import cells, json_reader
from gradcli.errors import DataError, GradcliError
from gradcli.train import checkpoint, directory, safetensors_file
from gradcli.train.published import folder, loading, shape

MOST = 3000  # inputs after which a fault must have shown
# By parser: whose attribute is replaced by what, and the words of the fault; a module that needs a
# library stands there by its name.
PLANTED: dict[str, tuple[Any, str, Any, str]] = {
    "config": (reader, "_decode", lambda data, file: data.decode(), "UnicodeDecodeError"),
    "csv": (cells, "number_of", float, "could not convert string to float"),
    "csv-readers": (RowBlocks, "_plain", lambda self, block: True, "the base reader says"),
    "json-lines": (json_reader, "_reason", lambda error: error.msg, "AttributeError"),
    "parquet": ("gradcli.data.arrow.files", "DataError", RuntimeError, "takes no keyword"),
    "arrow": ("gradcli.data.arrow.files", "DataError", RuntimeError, "takes no keyword"),
    "idx": (idx, "_refuse", lambda source, what: None, "Error at"),
    "cifar": (cifar, "parse", lambda data, *_: (data[::3073], data), "every 3073rd byte"),
    "npy": (
        npy,
        "_shape",
        lambda entry, _: tuple(map(int, entry["sizes"].split(","))),
        "at npy.py",
    ),
    "npz": (npy, "_archive", lambda data, source: zipfile.ZipFile(data), "BadZipFile"),
    "text": (text, "text_of", lambda content, *_: content.decode(), "UnicodeDecodeError"),
    "long-text": (
        long_text,
        "texts",
        lambda pieces, *_: (piece.decode() for piece in pieces),
        "UnicodeDecodeError",
    ),
    "tokens": (Below, "fault", lambda *_: None, "accepted, though"),
    "tokenizers": (tokenizer, "_translate_errors", lambda call, _: call(), "Exception"),
    "documents": (documents, "_text_in", lambda line, *_: json.loads(line)["text"], "Decode"),
    "sums": (sums, "_unescaped", lambda name: name[name.index("\\n") :], "ValueError"),
    "pictures": (decode, "_planes", lambda picture, *_: picture.tobytes(), "another size"),
    "safetensors": (safetensors_file, "_covered", lambda *_: None, "safetensors refuses it"),
    "published-config": (shape, "json_in", lambda path, _: json.loads(path.read_text()), "Decode"),
    "published-index": (folder, "_FILE", re.compile(".+"), "no file beside the index"),
    "published-weights": (loading, "_problem", lambda *_: "", "exit 2: "),
    "checkpoint": (checkpoint, "_usable", lambda *_: True, "exit 1"),
    "log": (directory, "recover_log", lambda *_: [], "the resumed log"),
    "run-files": (directory, "read_json", lambda file: json.loads(file.read_text()), "exit 1"),
}


def test_a_fault_is_planted_in_every_parser() -> None:
    assert PLANTED.keys() == fuzz.PARSERS.keys()


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_reported(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, attribute, replacement, words = PLANTED[name]
    pytest.importorskip(fuzz.NEEDS.get(name, "gradcli"), reason="it reads them")
    owner = importlib.import_module(owner) if isinstance(owner, str) else owner
    parser = fuzz.begun(name, tmp_path)
    monkeypatch.setattr(owner, attribute, replacement)
    assert words in first_fault(parser, name)


def first_fault(parser: Parser, name: str) -> str:
    """What is wrong with the first input that is a fault; "" where none of so many is."""
    outcomes = (judge(parser, input_of(parser, name, number)) for number in range(MOST))
    return next((said for outcome, said in outcomes if outcome == "fault"), "")


class One(OneFile):
    """A parser that does one thing with every input."""

    def __init__(self, folder: Path, act: Callable[[], None]) -> None:
        super().__init__(folder)
        self.act = act

    def seeds(self) -> list[bytes]:
        return [b"right"]

    def parse(self, data: bytes) -> None:
        self.act()


def fail(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (lambda: None, "accepted"),
        (fail(DataError("a sentence")), "refused"),
        (fail(DataError("")), "fault"),
        (fail(DataError("long " * 9000)), "fault"),
        (fail(DataError("long" * 9000)), "refused"),  # one long name is cut to fit a screen
        (fail(GradcliError("this is a bug")), "fault"),
        (fail(WrongAnswerError("another number")), "fault"),
        (fail(KeyError("shape")), "fault"),
        (fail(RecursionError()), "fault"),
    ],
)
def test_each_outcome_is_told_from_the_others(
    act: Callable[[], None], outcome: str, tmp_path: Path
) -> None:
    assert judge(One(tmp_path, act), {"input": b""})[0] == outcome


DYING = """\
import os, sys, time
sys.path[:0] = [{folder!r}]
import fuzz

class Dying(fuzz.Sums):
    count = 0

    def parse(self, data):
        self.count += 1
        if self.count == 20 and not os.path.exists(__file__ + ".dead"):
            open(__file__ + ".dead", "w").close()
            {death}
        super().parse(data)

fuzz.PARSERS["dying"] = Dying
fuzz.PATIENCE = 2
fuzz.main()
"""


@pytest.mark.parametrize(
    ("death", "words"),
    [
        ("os.abort()", "the process ended, SIGABRT"),
        ("os._exit(3)", "the process ended, exit 3"),
        ("time.sleep(60)", "no answer in 2 s"),
        ("while True: pass", "no answer in 2 s"),
        ("bytes(fuzz.MEMORY + (1 << 28))", "MemoryError"),
        ("int('no number')", "ValueError"),
    ],
)
def test_a_death_is_a_fault_of_its_input_and_the_next_inputs_are_read(
    death: str, words: str, tmp_path: Path
) -> None:
    program = tmp_path / "dying.py"
    program.write_text(DYING.format(folder=str(Path(fuzz.__file__).parent), death=death))
    report = fuzz.fuzz("dying", 4, program=str(program))
    fault = next(iter(report.causes.values()))
    assert words in fault.cause
    assert fault.number == 20 - 1 - len(fuzz.Sums(tmp_path).right())
    assert report.inputs > fault.number + 10


def test_a_process_that_no_signal_reaches_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "IN_C", 3)
    program, deaf = (
        tmp_path / "deaf.py",
        "import signal; signal.pthread_sigmask(0, [14]); time.sleep(60)",
    )
    program.write_text(DYING.format(folder=str(Path(fuzz.__file__).parent), death=deaf))
    report = fuzz.fuzz("dying", 4, program=str(program))
    assert "SIGKILL" in next(iter(report.causes.values())).cause


def test_a_saved_fault_is_repeated_by_its_folder(tmp_path: Path) -> None:
    report = fuzz.Report("sums")
    names = {"SHA256SUMS": b"\x00", "checkpoints/one": b"two"}
    fault = fuzz.Fault("sums", 7, "KeyError at x.py:1: 'y'", fuzz.texts_of(names))
    report.add(fuzz.State(9, inputs=9), [fault, fault])
    fuzz.save(report, tmp_path)
    assert (report.faults, len(report.causes)) == (2, 1)
    assert fuzz.files_in(tmp_path / "sums-7") == names
    assert (tmp_path / "sums-7.txt").read_text() == "KeyError at x.py:1: 'y'\n"


def test_the_figures_are_those_of_the_scoreboard() -> None:
    report = fuzz.Report("csv")
    report.add(fuzz.State(9, inputs=9, refused=5, slowest=0.25, peak=3 << 20), [])
    assert report.counters() == {
        "parser": "csv",
        "inputs": 9,
        "refused": 5,
        "accepted": 4,
        "slowest_s": 0.25,
        "peak_mb": 3.0,
        "faults": 0,
    }
