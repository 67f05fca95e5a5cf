"""Checkpoints with a right seal and odd facts: one sentence with the checkpoint and the field."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from points import Ended, gradcli
from sealed import metadata, rewrite
from tiny_data import CASES

from gradcli.train import checkpoint

__all__ = ["gradcli"]

Command = Callable[..., Ended]
DEEP: Any = {}
for _ in range(300):
    DEEP = {"a": DEEP}

# By kind of data: path of keys, value in its place, and the field that the sentence names.
ABSENT = object()
EVERYWHERE: list[tuple[str, Any, str]] = [
    ("", [], "facts"),
    ("", 7, "facts"),
    ("", "x", "facts"),
    ("input", ABSENT, "facts.input"),
    ("input", [], "facts.input"),
    ("input", [0], "facts.input"),
    ("input", [-3], "facts.input"),
    ("input", 4, "facts.input"),
    ("input", [True], "facts.input.0"),
    ("input", [2.5], "facts.input.0"),
    ("input_kind", "complex", "facts.input_kind"),
    ("target", [0], "facts.target"),
    ("target", None, "facts.target"),
    ("classes", 0, "facts.classes"),
    ("classes", "2", "facts.classes"),
    ("classes", [], "facts.classes"),
    ("vocab", -1, "facts.vocab"),
    ("labels", {}, "facts.labels"),
    ("labels", [1, 2], "facts.labels.0"),
    ("labels", ["one"], "facts.labels"),
    ("sizes", [], "facts.sizes"),
    ("sizes", {"train": 0}, "facts.sizes"),
    ("sizes", {"val": 3}, "facts.sizes"),
    ("sizes", {"train": "many"}, "facts.sizes.train"),
    ("mixed", 0, "facts.mixed"),
    ("version", 2, "facts.version"),
    ("version", "1", "facts.version"),
    ("version", 0, "facts.version"),
    ("state", [], "facts.state"),
    ("unknown", 1, "facts.unknown"),
    ("targets", [], "facts.targets"),
    ("targets", {"counts": [1]}, "facts.targets"),
    ("targets", {"counts": "many"}, "facts.targets.counts"),
    ("unit", "words", "facts.unit"),
    ("missing", 3, "facts.missing"),
    ("mean", {"a": 1}, "facts.mean"),
    ("state", DEEP, "metadata"),  # refused before its fields are read
]
TABLE: list[tuple[str, Any, str]] = [
    ("missing", None, "facts.missing"),
    ("numeric", ABSENT, "facts.input"),
    ("numeric", {}, "facts.numeric"),
    ("numeric", [["area", 1, 1, 1]], "facts.numeric.0"),
    ("numeric.0", {"name": "area"}, "facts.numeric.0.fill"),
    ("numeric.0.name", 7, "facts.numeric.0.name"),
    ("numeric.0.scale", 0, "facts.numeric"),
    ("numeric.0.scale", "wide", "facts.numeric.0.scale"),
    ("numeric.0.shift", None, "facts.numeric.0.shift"),
    ("numeric.0.other", 1, "facts.numeric.0.other"),
    ("numeric.1.name", "area", "facts.numeric"),
    ("numeric.0.name", "size", "facts.numeric"),
    ("missing", "drop", "facts.missing"),
    ("category", None, "facts.category"),
    ("category.0.shares", [["Rome"]], "facts.category.0.shares.0.1"),
    ("category.0.shares", [["Rome", "often"]], "facts.category.0.shares.0.1"),
    ("category.0.shares", [["Rome", 1], ["Rome", 1], ["Oslo", 0]], "facts.category"),
    ("category.0.shares", [["Rome", 1]], "facts.input"),
]
PICTURES: list[tuple[str, Any, str]] = [
    ("stored", None, "facts.stored"),
    ("stored", [28, 28], "facts.stored"),
    ("stored", [1, 64, 64], "facts.stored"),
    ("mean", [0.1, 0.2], "facts.mean"),
    ("mean", "half", "facts.mean"),
    ("std", 0, "facts.std"),
    ("std", [], "facts.std"),
    ("std", -1.0, "facts.std"),
    ("input", [1, 40, 40], "facts.input"),
]
WORDS: list[tuple[str, Any, str]] = [
    ("unit", None, "facts.unit"),
    ("unit", "bytes", "facts.vocab"),
    ("labels.0", "two", "facts.labels"),
    ("labels.0", "t", "facts.labels"),
    ("input", [4, 4], "facts.input"),
    ("target", [9], "facts.target"),
    ("vocab", None, "facts.vocab"),
]
VALUES: list[tuple[str, Any, str]] = [
    ("targets", None, "facts.targets"),
    ("targets", {}, "facts.targets"),
    ("targets.mean", [1.0, 2.0], "facts.targets"),
    ("targets.mean", ["much"], "facts.targets.mean.0"),
    ("targets.std", [0.0], "facts.targets"),
    ("targets.std", [], "facts.targets"),
]
KINDS = {"csv, classes": TABLE, "csv, values": VALUES, "mnist": PICTURES, "text": WORDS}


def changed(facts: Any, path: str, value: Any) -> Any:
    """The facts with another value at a path of keys."""
    if not path:
        return value
    facts = copy.deepcopy(facts)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inside = facts
    for step in way:
        inside = inside[step]
    if value is ABSENT:
        del inside[last]
    else:
        inside[last] = value
    return facts


@pytest.mark.parametrize("case", KINDS)
def test_odd_facts_are_refused_with_their_field(gradcli: Command, case: str) -> None:
    Path("moved.yaml").write_text(CASES[case].config())
    run = Path(gradcli("train", "moved.yaml", "--json").json["run"])
    path = run / "checkpoints" / checkpoint.names(run / "checkpoints")[0]
    told = metadata(path.read_bytes())
    assert gradcli("predict", str(run), *CASES[case].files).code == 0
    for keys, value, field in [*EVERYWHERE, *KINDS[case]]:
        rewrite(path, {**told, "facts": changed(told["facts"], keys, value)})
        ended = gradcli("predict", str(run), *CASES[case].files)
        what = f"{keys} = {value!r:.60}: {ended}"
        assert (ended.code, ended.out) == (7, ""), what
        assert field in ended.err.splitlines()[0].replace("'", " ").replace(":", " ").split(), what
        assert path.name in ended.err, what
    rewrite(path, told)
    assert gradcli("predict", str(run), *CASES[case].files).code == 0


def test_a_number_that_json_has_not_is_refused(gradcli: Command) -> None:
    Path("moved.yaml").write_text(CASES["mnist"].config())
    run = Path(gradcli("train", "moved.yaml", "--json").json["run"])
    path = run / "checkpoints" / checkpoint.names(run / "checkpoints")[0]
    told = metadata(path.read_bytes())
    for value in (float("nan"), float("inf")):
        rewrite(path, {**told, "facts": {**told["facts"], "mean": value}})
        ended = gradcli("predict", str(run), *CASES["mnist"].files)
        assert (ended.code, "'facts.mean': expected a finite number" in ended.err) == (7, True)
