"""Words that depend on a number agree with it, in every sentence of the sources."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradcli
from gradcli.data.folder import _notes
from gradcli.wording import join_words, quantity, verb

SOURCES = Path(gradcli.__file__).parent
# Verbs that end like plurals; the value before them is a name, not a number.
VERBS = {
    "as",
    "begins",
    "changes",
    "comes",
    "compares",
    "compiles",
    "computes",
    "counts",
    "declares",
    "does",
    "ends",
    "expects",
    "falls",
    "fits",
    "gives",
    "goes",
    "grants",
    "has",
    "holds",
    "is",
    "its",
    "keeps",
    "knows",
    "lacks",
    "leads",
    "lies",
    "makes",
    "needs",
    "pads",
    "points",
    "predicts",
    "promises",
    "reaches",
    "reads",
    "repeats",
    "returns",
    "says",
    "shows",
    "stands",
    "takes",
    "this",
    "wants",
    "was",
}
# Plurals behind what is no number: a shape, a list, a name, a size with its unit, a measured ratio.
NO_NUMBER = {
    ("bench/against.py", "ms"),
    ("bench/tables.py", "times"),
    ("cli/check.py", "weights"),
    ("cli/ranks_report.py", "ms"),
    ("data/files.py", "files"),
    ("data/loader/collate.py", "parts"),
    ("engine/interop.py", "backwards"),
    ("engine/ops/index/scatter.py", "indices"),
    ("engine/ops/random/distributions.py", "rows"),
    ("engine/ops/reduce/count.py", "numbers"),
    ("engine/ops/reduce/count.py", "weights"),
    ("engine/ops/shape/pad.py", "borders"),
    ("engine/ops/shape/reshape.py", "strides"),
    ("engine/optim/optimizer.py", "strides"),
    ("engine/shape.py", "names"),
    ("train/origin.py", "others"),
    ("train/run_name.py", "names"),
}

# A name says what a thing is or what a function does. Bare participles and pronouns do not.
BARE = re.compile(
    "asked|begun|born|built|called|chosen|done|drawn|found|given|gone|got|held|kept|known|left|"
    "listed|looked|made|meant|named|needed|ones?|others|picked|put|refused|said|seen|sent|shown|"
    "spent|stated|stored|taken|told|turned|used|wanted|written"
)
# Where one is right.
BARE_NAMES = {
    # The left side, beside the right one or the top.
    ("benchmarks/gpu_products.py", "left"),
    ("gradcli/cells.py", "left"),
    ("gradcli/data/augmented.py", "left"),
    ("gradcli/data/decode.py", "left"),
    ("gradcli/data/png.py", "left"),
    ("gradcli/data/samples.py", "left"),
    ("gradcli/engine/devicecheck.py", "left"),
    ("gradcli/engine/distributed/exact.py", "left"),
    ("gradcli/engine/ops/elementwise/family.py", "left"),
    ("gradcli/engine/ops/matmul/einsum.py", "left"),
    ("gradcli/engine/ops/matmul/products.py", "left"),
    ("gradcli/engine/shape.py", "left"),
    ("gradcli/train/large_order.py", "left"),
    ("gradcli/train/part_gradients.py", "left"),
    # A tensor of ones, torch's name for it, and a 1 beside a 0.
    ("gradcli/engine/nn/init.py", "ones"),
    ("gradcli/engine/ops/creation/creation.py", "ones"),
    ("gradcli/engine/ops/index/scatter_reduce.py", "one"),
    ("gradcli/engine/ops/index/scatter_reduce.py", "ones"),
    ("gradcli/engine/ops/loss/probabilities.py", "ones"),
    # Keys that files or output have, and the number of steps that are done, which is public.
    ("benchmarks/medians.py", "kept"),
    ("gradcli/bench/sheet.py", "kept"),
    ("gradcli/data/facts.py", "stored"),
    ("gradcli/engine/program/entry.py", "done"),
}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, "file"), "0 files"),
        ((1, "file"), "1 file"),
        ((2, "file"), "2 files"),
        ((1, "class"), "1 class"),
        ((2, "class"), "2 classes"),
        ((2, "entry"), "2 entries"),
        ((2, "key"), "2 keys"),
        ((2, "batch"), "2 batches"),
        ((2, "epoch"), "2 epochs"),
        (("1", "value"), "1 value"),
        ((1, "index", "indices"), "1 index"),
        ((2, "index", "indices"), "2 indices"),
        (("2 or 3", "dimension"), "2 or 3 dimensions"),
        ((1024, "byte", "", ","), "1,024 bytes"),
    ],
)
def test_a_noun_agrees_with_its_number(arguments: tuple[int, str], text: str) -> None:
    assert quantity(*arguments) == text


def test_a_verb_agrees_with_its_number() -> None:
    assert [verb(number) for number in (0, 1, 2)] == ["are", "is", "are"]
    assert [verb(number, "lacks", "lack") for number in (0, 1, 2)] == ["lack", "lacks", "lack"]


def test_a_list_that_is_cut_says_so() -> None:
    assert join_words("abc", 3) == "a, b, c"
    assert join_words("abcd", 3) == "a, b, c, ..."
    assert join_words("abcd", 2, " or ") == "a or b or ..."
    assert join_words(()) == ""


@pytest.mark.parametrize(
    ("number", "notes"),
    [
        (0, ()),
        (1, ("1 file is no .png, .jpg, .jpeg, .webp, .bmp or .gif and is left out: a/0",)),
        (2, ("2 files are no .png, .jpg, .jpeg, .webp, .bmp or .gif and are left out: a/0, a/1",)),
    ],
)
def test_files_that_are_left_out_are_counted_in_english(
    number: int, notes: tuple[str, ...]
) -> None:
    assert _notes([Path(f"/a/{n}") for n in range(number)], Counter()) == notes


def plurals(path: Path) -> Iterator[tuple[int, str]]:
    """Line and word of each plural that stands right behind a value in an f-string."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            limit = ast.unparse(value.value).split(".")[-1].isupper()  # a constant is never 1
            counted = "quantity" in ast.unparse(value.value)
            word = re.match(r" (?:[a-z-]+ )??([a-z]+s)\b", str(text.value))
            if word and not limit and not counted:
                yield value.lineno, word[1]


def test_no_sentence_has_a_plural_that_may_stand_behind_1() -> None:
    wrong, used = [], set()
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        for line, word in plurals(path):
            if (name, word) in NO_NUMBER:
                used.add((name, word))
            elif word not in VERBS and not word.endswith("ss"):
                wrong.append(f"{name}:{line}: write quantity(..., '{word}') of gradcli/wording.py")
    assert wrong == []
    assert used == NO_NUMBER


def bound_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, argument, attribute, function and class that is bound."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def test_no_name_is_a_bare_participle_or_pronoun() -> None:
    wrong, used = [], set()
    for path in sorted([*SOURCES.rglob("*.py"), *SOURCES.parent.glob("benchmarks/*.py")]):
        file = path.relative_to(SOURCES.parent).as_posix()
        for line, name in bound_names(path):
            word = name.strip("_").lower()
            if (file, word) in BARE_NAMES:
                used.add((file, word))
            elif BARE.fullmatch(word):
                wrong.append(f"{file}:{line}: name {name} by a noun, or by a verb if it acts")
    assert wrong == []
    assert used == BARE_NAMES
