"""A first loss far above that of a guess is told, once, where a new run begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from points import CONFIG, Ended, gradcli

__all__ = ["gradcli"]

Command = Callable[..., Ended]
LARGE = CONFIG.replace("linear: 8", "linear: {out: 8, init: {name: normal, std: 500}}")


def told(ended: Ended) -> list[str]:
    assert ended.code == 0
    return [line for line in ended.err.splitlines() if "the first loss" in line]


def test_first_weights_that_are_too_large_are_told_once(gradcli: Command) -> None:
    Path("dots.yaml").write_text(LARGE)
    [line] = told(gradcli("train", "dots.yaml", "--max-steps", "9"))
    assert line.startswith("warning: the first loss is ")
    assert "and a guess has 0.6931 (ln 2); probably" in line
    assert told(gradcli("resume", "last")) == []


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (CONFIG, ()),
        (LARGE.replace("loss: cross_entropy", "loss: nll"), ()),
        (LARGE, ("--from", "dots")),
    ],
    ids=["a usual one", "another loss", "weights of another run"],
)
def test_other_first_losses_are_not_told(
    gradcli: Command, text: str, more: tuple[str, ...]
) -> None:
    if more:
        gradcli("train", "dots.yaml", "-s", "train.epochs=0")
    Path("dots.yaml").write_text(text)
    assert told(gradcli("train", "dots.yaml", *more)) == []
