"""`explain` through the command line: the meaning of a word, and the nearest for nonsense."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from points import Ended
from refusals import gradcli, refused

__all__ = ["gradcli", "refused"]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("batc", "did you mean 'batch'?"),
        ("dense", "did you mean 'linear'?"),
        ("qqqqqq", "docs/config.md lists them"),
        ("", "docs/config.md lists them"),
    ],
)
def test_an_unknown_word_gets_the_nearest(
    refused: Callable[..., Ended], word: str, near: str
) -> None:
    refused(2, near, "explain", word)


def test_a_word_is_explained_with_an_example(gradcli: Callable[..., Ended]) -> None:
    ended = gradcli("explain", "dropout")
    assert ended.code == 0
    assert ended.out.startswith("layer dropout\n  In training, zeroes each number")
    assert "\n  p  a number in [0, 1) (default: 0.5)\n" in ended.out
    assert "\n    model:\n      - dropout\n" in ended.out
    [meaning] = json.loads(gradcli("explain", "E104", "--json").out)["meanings"]
    assert meaning["title"] == "error E104"
