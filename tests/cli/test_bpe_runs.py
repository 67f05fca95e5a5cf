"""A run on tokens of a tokenizer: trained, resumed, and used where the text is gone."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bpe_files import STORY, write_tokenizer
from points import Ended, gradcli

import gradcli as package
from gradcli.data.bpe import tokenizer
from gradcli.train.spelling import decoder_of

__all__ = ["gradcli"]

CONFIG = """\
gradcli: 1
name: it
data: {{name: text, file: story.txt, unit: bpe, tokenizer: {tokenizer}, context: 8, cache: kept}}
model:
  - embed: {{dim: 16, name: tokens}}
  - transformer: {{heads: 2, rotary: true}}
  - linear: {{out: $data.vocab, tied: tokens}}
loss: cross_entropy
metrics: [perplexity, bits_per_byte]
optim: {{name: adam, lr: 0.01}}
train: {{steps: 12, batch: 4, sample: {{prompt: "The old", tokens: 4}}}}
"""


def write(tokenizer: str) -> None:
    Path("it.yaml").write_text(CONFIG.format(tokenizer=tokenizer))
    Path("story.txt").write_text(STORY * 12, encoding="utf-8")


def run_of(ended: Ended) -> Path:
    assert ended.code == 0, ended.err
    return Path(ended.json["run"])


@pytest.mark.parametrize("named", ["{train: 300}", "tokenizer.json"])
def test_a_run_keeps_its_tokenizer_and_goes_on_with_it(
    gradcli: Callable[..., Ended], named: str
) -> None:
    write_tokenizer(Path("tokenizer.json"))
    write(named)
    whole = gradcli("train", "it.yaml", "--json", "--no-report")
    run = run_of(whole)
    kept = (run / "tokenizer.json").read_text(encoding="utf-8")
    assert "tokenizer: tokenizer.json" in (run / "resolved.yaml").read_text().replace('"', "")
    if named == "tokenizer.json":
        assert kept == Path(named).read_text(encoding="utf-8")
        Path(named).unlink()
    stopped = gradcli("train", str(run / "resolved.yaml"), "--json", "--max-steps", "5")
    resumed = gradcli("resume", str(run_of(stopped)), "--json", "--no-report")
    assert resumed.json["weights_sha256"] == whole.json["weights_sha256"]
    evaluated = gradcli("eval", str(run), "--split", "val", "--json")
    assert evaluated.json["metrics"]["val.loss"] == whole.json["metrics"]["val.loss"]


def test_a_run_writes_on_and_reads_new_texts_without_its_own(
    gradcli: Callable[..., Ended],
) -> None:
    write("{train: 300}")
    run = run_of(gradcli("train", "it.yaml", "--json", "--no-report"))
    moved = shutil.copytree(run, "elsewhere/run")
    Path("new.txt").write_text(STORY, encoding="utf-8")
    shutil.rmtree("runs")
    Path("story.txt").unlink()
    prompt = ("--prompt", "The old king", "--tokens", "9", "--temperature", "0", "--json")
    text = gradcli("predict", moved, *prompt).json["text"]
    model = package.load(moved)
    assert model.generate("The old king", 9, temperature=0) == text
    rows = gradcli("predict", moved, "new.txt", "--json").json["predictions"]
    names = tokenizer.tokenizer_at(Path(moved)).names
    assert {row["label"] for row in rows} <= set(names)
    assert model.predict(STORY)[0]["label"] == rows[0]["label"]
    assert gradcli("eval", moved, "--data", "new.txt").code == 0


def test_bits_per_byte_are_the_loss_by_the_bytes_of_the_tokens(
    gradcli: Callable[..., Ended],
) -> None:
    write("{train: 300}")
    run = run_of(gradcli("train", "it.yaml", "--json", "--no-report"))
    Path("new.txt").write_text(STORY, encoding="utf-8")
    figures = gradcli("eval", str(run), "--data", "new.txt", "--json").json["metrics"]
    known = tokenizer.tokenizer_at(run)
    tokens = [*known.encode(STORY), known.end or 0]
    targets = tokens[1 : (len(tokens) - 1) // 8 * 8 + 1]
    count = sum(known.lengths[token] for token in targets)
    bits = figures["data.loss"] / math.log(2) * len(targets) / count
    assert figures["data.bits_per_byte"] == pytest.approx(bits, rel=1e-6)


def test_a_stop_text_ends_what_tokens_spell(gradcli: Callable[..., Ended]) -> None:
    write("{train: 300}")
    run = run_of(gradcli("train", "it.yaml", "--json", "--no-report"))
    words = ("predict", str(run), "--prompt", "The", "--tokens", "40", "--seed", "3", "--json")
    whole = gradcli(*words).json["text"]
    stop = whole[5:7]
    text = gradcli(*words, "--stop", stop).json["text"]
    assert text == whole[: whole.index(stop)]


def test_another_tokenizer_in_a_run_is_refused(gradcli: Callable[..., Ended]) -> None:
    write("{train: 300}")
    run = run_of(gradcli("train", "it.yaml", "--json", "--no-report"))
    write_tokenizer(run / "tokenizer.json", "llama3")
    prompt = ("--prompt", "a")
    ended = gradcli("predict", str(run), *prompt)
    assert ended.code == 7
    assert "tokenizer" in ended.err
    (run / "tokenizer.json").write_text("{")
    ended = gradcli("predict", str(run), *prompt)
    assert (ended.code, "tokenizer.json: not a tokenizer" in ended.err) == (3, True)
    (run / "tokenizer.json").unlink()
    ended = gradcli("predict", str(run), *prompt)
    assert (ended.code, "tokenizer.json" in ended.err) == (3, True)


def test_without_the_library_the_extra_is_named(
    gradcli: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("{train: 300}")
    monkeypatch.setattr(tokenizer, "find_spec", lambda name: None)
    ended = gradcli("check", "it.yaml")
    assert ended.code == 2
    assert "pip install 'gradcli[text]'" in ended.err


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("nothing.json", "data file 'nothing.json'"),
        ("it.yaml", "it.yaml: not a tokenizer"),
        ("{train: many}", "{'train': 'many'}"),
        ("{train: 100}", "N from 257"),
    ],
)
def test_what_is_no_tokenizer_is_told_by_check(
    gradcli: Callable[..., Ended], named: str, message: str
) -> None:
    write(named)
    ended = gradcli("check", "it.yaml")
    assert ended.code in (2, 3)
    assert ended.err.count("error[") == 1
    assert message in ended.err
    assert "--> it.yaml:3" in ended.err


def test_the_config_of_the_page_trains(gradcli: Callable[..., Ended]) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "tokenizers.md"
    config = page.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    Path("story.yaml").write_text(config)
    Path("story.txt").write_text(STORY * 30, encoding="utf-8")
    ended = gradcli("train", "story.yaml", "--no-report")
    assert (ended.code, "warning" in ended.err) == (0, False), ended.err


def test_bytes_of_an_unfinished_character_are_shown_as_such() -> None:
    letters = tokenizer.trained_tokenizer(iter([STORY]), 300)
    snowman = letters.encode("snow \u2603")
    source = SimpleNamespace(unit="bpe", bpe=SimpleNamespace(tokenizer=letters))
    facts: Any = None
    for tokens, end in ((snowman, "snow \u2603"), (snowman[:-1], "snow \ufffd")):
        decoder = decoder_of(facts, source)  # type: ignore[arg-type]
        text = "".join(map(decoder.add, tokens))
        assert (text + decoder.end(), decoder.end()) == (end, "")


def test_a_text_ends_with_its_document_or_at_a_token(gradcli: Callable[..., Ended]) -> None:
    texts = [{"text": f"{name} is cold."} for name in ("Snow", "Ice", "Frost")] * 40
    Path("facts.jsonl").write_text("\n".join(map(json.dumps, texts)))
    config = CONFIG.format(tokenizer="{train: 280}").replace("story.txt", "facts.jsonl, key: text")
    config = config.replace("steps: 12", "steps: 60")
    Path("it.yaml").write_text(config.replace(', sample: {prompt: "The old", tokens: 4}', ""))
    run = str(run_of(gradcli("train", "it.yaml", "--json", "--no-report")))
    how = ("predict", run, "--prompt", "Snow", "--tokens", "20", "--temperature", "0", "--json")
    whole = gradcli(*how)
    assert whole.json["text"] == " is cold."
    assert whole.json["tokens"] < 20
    model = package.load(run)
    assert model.generate("Snow", 20, temperature=0) == " is cold."
    further = gradcli(*how, "--ignore-end").json
    assert further["tokens"] == 20
    assert further["text"].startswith(" is cold.<|endoftext|>")
    assert model.generate("Snow", 20, temperature=0, ignore_end=True) == further["text"]
    assert gradcli(*how, "--stop-token", "d", "--stop-token", ".").json["text"] in (
        " is cold",
        " is col",
    )
    assert model.generate("Snow", 20, temperature=0, stop_token=".") == " is cold"
    several = gradcli(*how, "--samples", "2").json
    assert several["texts"] == [" is cold."] * 2
    missing = gradcli(*how[:-1], "--stop-token", "<|endoftxt|>")
    assert (missing.code, missing.err.count("error[")) == (2, 1)
    assert "did you mean '<|endoftext|>'?" in missing.err
