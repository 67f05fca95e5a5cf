"""Where ops are declared: in a folder for each kind, and what belongs together in one file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradcli.engine import describe, ops
from gradcli.engine.gradcheck import Row, every_op
from gradcli.engine.op import Op

FOLDER = Path(ops.__path__[0])
KINDS = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
CSRC = FOLDER.parents[1] / "csrc"
# What is made of the ops of every folder, or used by them all.
BESIDE = {"__init__", "along", "inplace", "operators", "order", "overwrite"}
# A name, and another that a reader looks for in the same file.
TOGETHER = {
    r"(\w+)1d(\w*)": r"\g<1>2d\2",
    r"(tril|triu)_indices": r"\1",
    r"new_(\w+)": r"\1_like",
    r"nan(sum|mean|median)": r"\1",
    r"(\w+)_mean": r"\1",
    r"arg(max|min|sort)": r"\1",
    r"(cum)max": r"\1sum",
    r"clip": "clamp",
    r"(aminmax|min)": "amax",
    r"(chunk|tensor_split|unbind)": "split",
    r"(fliplr|flipud|roll|rot90)": "flip",
    r"(ravel|squeeze|view_as)": "reshape",
    r"(take|embedding)": "index_select",
    r"(\w+_|alpha_)dropout": "dropout",
    r"soft(min)": "softmax",
}


def modules() -> dict[str, str]:
    """The module of engine/ops that declares each op."""
    return {row.name: module_of(row).removeprefix("gradcli.engine.ops.") for row in every_op()}


def module_of(row: Row) -> str:
    return (row.forward if isinstance(row, Op) else row.plain).__module__


def test_only_what_serves_every_folder_stands_beside_them() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == BESIDE
    assert {name.partition(".")[0] for name in modules().values()} <= KINDS | BESIDE


def test_each_folder_has_a_section_in_the_docs() -> None:
    text = describe.markdown()
    assert set(re.findall(r"^## (\w+)$", text, re.M)) == KINDS | {"inplace", "Memory"}
    names = re.findall(r"^\| `(\w+)\(", text, re.M)
    assert len(names) == len(set(names)) == len(every_op())


@pytest.mark.parametrize("pattern", TOGETHER)
def test_names_that_belong_together_stand_in_one_file(pattern: str) -> None:
    where = modules()
    found = {
        name: match.expand(TOGETHER[pattern])
        for name in where
        if (match := re.fullmatch(pattern, name))
    }
    pairs = {name: other for name, other in found.items() if other in where}
    assert pairs
    assert not {pair for pair in pairs.items() if where[pair[0]] != where[pair[1]]}


def test_kernels_stand_in_folders_of_the_same_names() -> None:
    """Beside them what runs calls; a source file for each instruction set in `builds`."""
    for target, own in ("cpu", {"builds", "optim"}), ("gpu", {"optim"}):
        folders = {path.name for path in (CSRC / target).iterdir() if path.is_dir()}
        assert folders <= KINDS | own
    assert not list((CSRC / "gpu").glob("*.gc"))
