"""The tool that mutates kernels tells a caught mutant from one that survives.

No kernel is compiled here: the tool itself runs by hand.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kernel_mutants
import mutant_rules
import mutant_trials
import pytest
from c_mutants import Mutant, mutants_of
from kernel_mutants import Report, Trials
from mutant_build import NoValidCError

from gradcli.engine.device.kernels import FACTS

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="mutants are compiled with gcc")


def test_places_are_spread_over_the_files_and_the_seed_alone_decides() -> None:
    sources = kernel_mutants.texts()
    every = kernel_mutants.places(sources)
    parts = [next(kernel_mutants.draws(every, part, 50, seed=1)) for part in range(50)]
    assert parts == [next(kernel_mutants.draws(every, part, 50, seed=1)) for part in range(50)]
    assert parts != [next(kernel_mutants.draws(every, part, 50, seed=2)) for part in range(50)]
    folders = {str(Path(one.file).parent) for one in parts}
    assert len({one.file for one in parts}) > 25
    assert len(folders) > 10


def test_every_rule_leaves_some_out_and_every_equivalent_one_exists() -> None:
    sources = kernel_mutants.texts()
    every = [(one, text) for file, text in sources.items() for one in mutants_of(file, text)]
    rules = {mutant_rules.rule_of(one, text) for one, text in every}
    assert {rule.name for rule in mutant_rules.RULES} <= rules
    left_out = sum(bool(mutant_rules.rule_of(one, text)) for one, text in every)
    assert left_out < 0.02 * len(every)
    assert set(mutant_rules.EQUIVALENT) <= {one.key(text) for one, text in every}
    assert all(len(reason) > 20 for reason in mutant_rules.EQUIVALENT.values())


def test_each_file_is_tried_with_tests_of_its_own() -> None:
    listed = mutant_trials.kernels_by_file()
    structured = {name for name, facts in FACTS.items() if facts.shapes or name == "chain"}
    assert {kernel for kernels in listed.values() for kernel in kernels} <= structured
    assert "gather" in mutant_trials.ops_of("gradcli/csrc/cpu/index/gather.h", "")
    assert mutant_trials.ops_of("gradcli/csrc/scalar_ops.h", "UNARY(erf,  m_erf(x),") == ["erf"]
    assert "tests/engine/test_calls.py" in mutant_trials.own_tests("gradcli/csrc/cpu/check.c")
    assert mutant_trials.own_tests("gradcli/csrc/cpu/conv/conv2d.h") == ["tests/engine/ops/conv"]


TOY = "int f(int x) {\n  return x < 3 ? x + 1 : 7;\n}\n"
TOY_TEST = """\
import ctypes, pathlib
KERNELS = str(pathlib.Path({kernels!r}).resolve())
def test_small(): assert ctypes.CDLL(KERNELS).f(1) == 2
def test_large(): assert ctypes.CDLL(KERNELS).f(9) == 7
def test_that_always_fails(): assert False
"""


@dataclass
class ToyBench:
    """Compiles the toy alone."""

    def build(self, file: str, text: str, kernels: Path) -> bool:
        kernels.parent.mkdir(parents=True, exist_ok=True)
        kernels.unlink(missing_ok=True)
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(kernels)]
        if subprocess.run(command, input=text.encode(), check=False).returncode:
            raise NoValidCError
        return True


TOY_FILES = ("test_toy.py", "tests/test_ops.py")


class ToyTree(mutant_trials.Tree):
    """A folder with the toy's tests and nothing else."""

    def __post_init__(self) -> None:
        text = TOY_TEST.format(kernels=mutant_trials.KERNELS)
        (self.folder / "tests").mkdir(exist_ok=True)
        for name in TOY_FILES:
            (self.folder / name).write_text(text, encoding="utf-8")
        (self.folder / "pytest.ini").write_text("[pytest]\nmarkers = parity\n", encoding="utf-8")


@needs_gcc
@pytest.mark.parametrize("file", TOY_FILES)
def test_a_caught_mutant_is_told_from_one_that_survives(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stage in ("near", "far"):
        monkeypatch.setattr(kernel_mutants, stage, lambda *_: {"toy": [file]})
    report = Report(seed=0)
    trials = Trials(tmp_path, tmp_path, report, {"toy.c": TOY}, "")
    trials.free.put((ToyBench(), ToyTree(tmp_path)))  # type: ignore[arg-type]
    by_key = {one.key(TOY).partition("| ")[2]: one for one in mutants_of("toy.c", TOY)}
    tried = ("sum: + -> -", "order: < -> <=")  # nobody asks for f(3)
    left = [trials.draw(iter([by_key[name]])) for name in tried]
    assert left == [None, by_key[tried[1]]]
    trials.ask_all(by_key[tried[1]])
    assert trials.failing == [f"{file}::test_that_always_fails"]
    assert [key.partition("| ")[2] for key in report.catches] == [tried[0]]
    assert [key.partition("| ")[2] for key in report.survivors] == [tried[1]]
    counts: Any = report.counts()
    assert (counts["mutants"], counts["caught"], counts["equivalent"]) == (2, 1, 0)


@pytest.mark.parametrize(
    ("body", "says"),
    [("os.abort()", "ends by SIGABRT"), ("time.sleep(60)", mutant_trials.SILENT), ("pass", "")],
)
def test_a_crash_and_a_test_that_hangs_are_failures(
    body: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutant_trials, "PATIENCE", 10.0)
    tree = ToyTree(tmp_path)
    (tmp_path / "test_toy.py").write_text(f"import os, time\ndef test_it(): {body}\n")
    assert tree.failures(["test_toy.py"]) == ([says] if says else [])


def test_what_is_left_out_is_counted_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report(seed=0)
    mutant = next(one for one in mutants_of("a/memory.c", "enum { NEAR = 2 };\n"))
    assert isinstance(mutant, Mutant)
    assert not kernel_mutants.admits(mutant, "enum { NEAR = 2 };\n", report)
    assert report.counts()["left_out"] == {"which kept rooms serve": 1}
    plain = next(iter(mutants_of("a.c", "n = 2;\n")))
    monkeypatch.setattr(kernel_mutants, "EQUIVALENT", {plain.key("n = 2;\n"): "a reason"})
    assert not kernel_mutants.admits(plain, "n = 2;\n", report)
    assert report.counts()["equivalent"] == 1


def test_a_run_goes_on_from_the_survivors_of_another() -> None:
    report = Report(seed=0)
    report.catches.append("caught")
    report.survivors += ["one", "another"]
    report.left_out["no valid C"] += 3
    later = Report(seed=5)
    later.go_on(report.counts())
    later.catches.append("one")
    later.survivors.append("another")
    counts = later.counts()
    assert (counts["seed"], counts["mutants"], counts["caught"]) == (0, 3, 2)
    assert counts["left_out"] == {"no valid C": 3}
