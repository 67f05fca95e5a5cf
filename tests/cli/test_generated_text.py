"""`gradcli predict --prompt`: how a text goes on, and where it ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from points import gradcli

__all__ = ["gradcli"]

GPT = """
gradcli: 1
name: NAME
data: {name: text, file: long.txt, UNITcontext: 16, stride: 1, split: {train: 100%}}
model:
  - {embed: 16}
  - positions
  - {transformer: {heads: 2}}
  - {linear: $data.vocab}
loss: cross_entropy
optim: {name: adam, lr: 0.02}
train: {steps: 40, batch: 16}
"""


@pytest.fixture
def texts(gradcli: Any) -> Any:
    """Runs of characters and of bytes."""
    Path("long.txt").write_text("abäd\n" * 100)
    for name, unit in (("letters", ""), ("octets", "unit: bytes, ")):
        Path("gpt.yaml").write_text(GPT.replace("NAME", name).replace("UNIT", unit))
        assert gradcli("train", "gpt.yaml", "-s", "train.steps=80").code == 0

    def write(*options: str, run: str = "letters") -> Any:
        ended = gradcli("predict", run, "--prompt", "ab", "--json", *options)
        assert ended.code == 0, ended.err
        return ended.json

    return write


@pytest.mark.parametrize("run", ["letters", "octets"])
def test_a_text_ends_right_before_its_stop(gradcli: Any, texts: Any, run: str) -> None:
    sure = "--temperature", "0", "--tokens", "60"
    whole = texts(*sure, run=run)["text"]
    assert whole.startswith("äd\nabäd\n")
    for stops, text in ((("d\na",), "ä"), (("bä", "\nabx"), "äd\na"), (("zz",), whole)):
        found = texts(*sure, *(part for stop in stops for part in ("--stop", stop)), run=run)
        assert found["text"] == text
        if text != whole:
            assert found["tokens"] < 12
    ended = gradcli("predict", run, "--prompt", "ab", *sure, "--stop-token", "a")
    assert (ended.code, "no tokenizer; --stop TEXT ends its texts" in ended.err) == (2, True)
    ended = gradcli("predict", run, "--prompt", "ab", *sure, "--stop", "d\na")
    assert ended.out == "abä\n"
    assert " tokens in " in ended.err


def test_several_texts_are_those_of_their_seeds(gradcli: Any, texts: Any) -> None:
    hot = "--temperature", "3", "--tokens", "60"
    alone = [texts(*hot, "--seed", str(seed))["text"] for seed in (5, 6, 7)]
    found = texts(*hot, "--seed", "5", "--samples", "3")
    assert (found["texts"], found["tokens"]) == (alone, 180)
    assert "text" not in found
    assert found["seconds"] > 0
    ended = gradcli("predict", "letters", "--prompt", "ab", *hot, "--seed", "5", "--samples", "3")
    assert ended.out == "".join(
        f"--- {i + 1} of 3, seed {5 + i} ---\nab{text}\n" for i, text in enumerate(alone)
    )


def test_more_texts_than_there_is_memory_for_are_refused(gradcli: Any, texts: Any) -> None:
    how = ("--prompt", "ab", "--tokens", "20", "--samples", "2000000000")
    ended = gradcli("predict", "letters", *how)
    assert (ended.code, ended.out) == (4, "")
    assert re.search(r"E402\] --samples 2000000000: .* take about [\d.,]+ GB", ended.err), ended.err


def test_each_text_ends_by_itself(texts: Any) -> None:
    hot = "--temperature", "3", "--tokens", "60", "--stop", "b"
    alone = [texts(*hot, "--seed", str(seed)) for seed in range(4)]
    found = texts(*hot, "--samples", "4")
    assert found["texts"] == [one["text"] for one in alone]
    assert found["tokens"] == sum(one["tokens"] for one in alone)


def test_a_penalty_avoids_what_was_written(texts: Any) -> None:
    sure = "--temperature", "0", "--tokens", "3", "--repetition-penalty"
    assert texts(*sure, "1")["text"] == "äd\n"
    assert len(set("ab" + texts(*sure, "1e9")["text"])) == 5  # each of its characters once


def test_keys_in_bfloat16_need_a_cache(gradcli: Any, texts: Any) -> None:
    sure = "--temperature", "0", "--tokens", "60"
    assert texts(*sure, "--cache-bf16")["text"] == texts(*sure)["text"]
    Path("own.py").write_text(
        "import gradcli\nfrom gradcli.engine import nn\n\n@gradcli.layer\nclass Own(nn.Module):\n"
        "    def __init__(self, shape) -> None:\n        super().__init__()\n\n"
        "    def forward(self, x):\n        return x + 0.0\n"
    )
    config = GPT.replace("NAME", "own").replace("UNIT", "").replace("- positions", "- own")
    Path("own.yaml").write_text(config.replace("loss:", "code: own.py\nloss:"))
    assert gradcli("train", "own.yaml", "--trust-code").code == 0
    ended = gradcli("predict", "own", "--prompt", "ab", "--cache-bf16", "--trust-code")
    assert ended.code == 2
    assert "--cache-bf16: this model generates without cache: layer '1' (Own)" in ended.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--stop", ""), "'--stop': an empty text would end it at once"),
        (("--stop-token", ""), "'--stop-token': an empty text would end it at once"),
        (("--samples", "0"), "'--samples': 0 is not in the range x>=1"),
        (("--repetition-penalty", "0"), "'--repetition-penalty': 0.0 is not in the range x>0"),
        (("--repetition-penalty", "nan"), "'--repetition-penalty': expected a finite number"),
    ],
)
def test_a_value_that_makes_no_sense_names_its_option(
    gradcli: Any, options: tuple[str, ...], says: str
) -> None:
    ended = gradcli("predict", "last", "--prompt", "a", *options)
    assert (ended.code, says in ended.err) == (2, True), ended.err


@pytest.mark.parametrize(
    "options",
    [
        ("--stop", "a"),
        ("--stop-token", "a"),
        ("--ignore-end",),
        ("--samples", "2"),
        ("--repetition-penalty", "2"),
        ("--cache-bf16",),
    ],
)
def test_options_of_a_text_go_with_a_prompt(gradcli: Any, options: tuple[str, ...]) -> None:
    ended = gradcli("predict", "last", "some.txt", *options)
    assert (ended.code, f"{options[0]} goes with --prompt" in ended.err) == (2, True)
