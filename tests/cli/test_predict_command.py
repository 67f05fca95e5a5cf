"""`gradcli predict`: one line a sample, or JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from points import gradcli, only_run

from gradcli import engine
from gradcli.config.trained import open_trained
from gradcli.train.run_name import find

__all__ = ["gradcli"]


@pytest.fixture
def trained(gradcli) -> None:
    """A run that tells left from right, and two files of points."""
    gradcli("train", "dots.yaml", "-s", "train.epochs=20")
    Path("a.txt").write_text("0.9 0.1\n-0.9 0.2\n")
    Path("b.txt").write_text("-0.8 0\n")


def test_a_line_names_file_index_label_and_probability(gradcli, trained) -> None:
    ended = gradcli("predict", "last", "a.txt", "b.txt")
    assert ended.code == 0
    rows = [line.split("\t") for line in ended.out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["a.txt", "0", "right"],
        ["a.txt", "1", "left"],
        ["b.txt", "0", "left"],
    ]
    assert all(0.5 <= float(row[3]) <= 1 for row in rows)


def test_json_is_one_object_with_the_classes_ranked(gradcli, trained) -> None:
    ended = gradcli("predict", "last", "a.txt", "--json", "--top", "5")
    first = ended.json["predictions"][0]
    assert (first["file"], first["index"], first["label"]) == ("a.txt", 0, "right")
    assert [one["label"] for one in first["top"]] == ["right", "left"]
    assert sum(one["probability"] for one in first["top"]) == pytest.approx(1)


TEXT = """
gradcli: 1
data: {name: text, file: long.txt, context: 4, split: {train: 100%}}
model: [{embed: 8}, {linear: $data.vocab}]
loss: cross_entropy
optim: {name: adam, lr: 0.1}
train: {steps: 40, batch: 16}
"""


def test_of_a_text_it_names_the_token_that_comes_next(gradcli) -> None:
    Path("long.txt").write_text("ab\n" * 200)
    Path("text.yaml").write_text(TEXT)
    assert gradcli("train", "text.yaml").code == 0
    Path("new.txt").write_text("ab\nabab")
    ended = gradcli("predict", "last", "new.txt")
    assert (ended.code, len(ended.err.splitlines())) == (0, 1)  # which weights
    rows = [line.split("\t") for line in ended.out.splitlines()]
    assert [row[:3] for row in rows] == [["new.txt", "0", "b"], ["new.txt", "1", "\\n"]]


GPT = """
gradcli: 1
data: {name: text, file: long.txt, context: 8, stride: 1, split: {train: 100%}}
model:
  - embed: {dim: 16, std: 0.1, name: tokens}
  - positions
  - transformer: 2
  - linear: {out: $data.vocab, tied: tokens}
loss: cross_entropy
optim: {name: adam, lr: 0.02}
train: {steps: 60, batch: 16}
"""


def test_a_model_of_text_writes_on(gradcli) -> None:
    Path("long.txt").write_text("abcd\n" * 200)
    Path("gpt.yaml").write_text(GPT)
    assert gradcli("train", "gpt.yaml").code == 0
    ended = gradcli("predict", "last", "--prompt", "ab", "--tokens", "23", "--temperature", "0")
    assert (ended.code, ended.out) == (0, "abcd\n" * 5 + "\n")
    _weights, rate = ended.err.splitlines()
    assert re.fullmatch(r"23 tokens in \d+\.\d\d s, [\d,]+ a second", rate)
    hot = ("predict", "last", "--prompt", "ab", "--tokens", "40", "--temperature", "9", "--seed")
    one, same, other = (gradcli(*hot, seed).out for seed in ("1", "1", "2"))
    assert one == same != other
    assert gradcli(*hot, "1", "--top-k", "1").out == gradcli(*hot, "2", "--top-p", "0.01").out
    found = gradcli(*hot, "1", "--json").json
    assert found["format"] == 1
    assert (found["prompt"], "ab" + found["text"] + "\n") == ("ab", one)


OWN = """
import gradcli
from gradcli import engine
from gradcli.engine import nn

@gradcli.layer
class Beside(nn.Sequential):
    def __init__(self, shape, out: int) -> None:
        super().__init__(nn.Linear(2 * shape[-1], out))

    def forward(self, x):
        before = engine.cat([engine.zeros_like(x[:, :1]), x[:, :-1]], 1)
        return super().forward(engine.cat([x, before], -1))
"""
LOOKING_BACK = """
gradcli: 1
code: own.py
data: {name: text, file: long.txt, context: 8, stride: 1, split: {train: 100%}}
model: [embed: 16, LAYER, linear: $data.vocab]
loss: cross_entropy
optim: {name: adam, lr: 0.02}
train: {steps: 200, batch: 16}
"""


def test_a_layer_that_needs_all_steps_is_named_and_writes_without_cache(gradcli) -> None:
    Path("long.txt").write_text("abac\n" * 200)  # what follows an a depends on what went before
    Path("own.py").write_text(OWN)
    how = ("predict", "last", "--prompt", "ab", "--tokens", "23", "--temperature", "0")
    for layer, note in (
        ("beside: 16", "layer '1' (Beside) does not say that it works step by step"),
        ("residual: {layers: [beside: 16]}", "layer '1.0' (Beside) does not say that it works st"),
        ("lstm: 16", ""),
    ):
        Path("own.yaml").write_text(LOOKING_BACK.replace("LAYER", layer))
        assert gradcli("train", "own.yaml").code == 0
        ended = gradcli(*how)
        assert (ended.code, ended.out) == (0, "abac\n" * 5 + "\n")
        own, _weights, *others, _rate = ended.err.splitlines()
        assert own.startswith("runs own code ")
        assert len(others) == ended.err.count("without cache") == bool(note)
        assert f"generates without cache: {note}" in ended.err or not note
        assert gradcli(*how, "--json").json["text"] == "ac\n" + "abac\n" * 4


def test_it_says_whose_answers_these_are(gradcli) -> None:
    gradcli("train", "dots.yaml", "-s", "train.keep=9")
    Path("new.txt").write_text("0.5 -0.25\n")
    step = (only_run() / "best").read_text()[5:13].lstrip("0")
    both = " and last" if step == "18" else ""
    said = gradcli("predict", "dots@best", "new.txt")
    assert said.err == f"{only_run()}: step {step} (best{both})\n"
    assert gradcli("predict", "dots@12", "new.txt").err.startswith(f"{only_run()}: step 12")
    assert gradcli("predict", "dots@best", "new.txt", "--json").err == ""


@pytest.mark.parametrize("unit", ["characters", "bytes"])
def test_a_prompt_is_written_in_the_tokens_of_the_text(gradcli, unit) -> None:
    Path("long.txt").write_text("äöü\n" * 200)
    Path("gpt.yaml").write_text(GPT.replace("context", f"unit: {unit}, context"))
    assert gradcli("train", "gpt.yaml", "-s", "train.steps=150").code == 0
    count = "7" if unit == "characters" else "12"
    how = ("--tokens", count, "--temperature", "0")
    assert gradcli("predict", "last", "--prompt", "ä", *how).out == "äöü\näöü\n\n"
    ended = gradcli("predict", "last", "--prompt", "z")
    if unit == "characters":
        assert (ended.code, "the character 'z' did not occur in the training" in ended.err) == (
            3,
            True,
        )
    else:
        assert ended.code == 0
    assert gradcli("predict", "last", "--prompt", "").code == 2


def test_only_models_of_text_take_a_prompt(gradcli, trained) -> None:
    ended = gradcli("predict", "last", "--prompt", "a")
    assert (ended.code, "this run has other data" in ended.err) == (2, True)


def test_a_tied_weight_stays_tied_when_a_run_goes_on(gradcli) -> None:
    Path("long.txt").write_text("abcd\n" * 200)
    Path("gpt.yaml").write_text(GPT)
    whole = gradcli("train", "gpt.yaml", "--json").json["weights_sha256"]
    gradcli("train", "gpt.yaml", "--max-steps", "25")
    assert gradcli("resume", "last", "--json").json["weights_sha256"] == whole


TABLE = """
gradcli: 1
data: {name: csv, file: line.csv, target: y, task: regression, numeric: [x]}
model: [{linear: 1}]
loss: mse
metrics: [mae]
optim: {name: sgd, lr: 0.1}
train: {epochs: 40, batch: 8, best: val.loss}
expect: {test.mae: "< 0.01"}
"""


def test_of_a_regression_it_gives_the_values(gradcli) -> None:
    Path("line.csv").write_text("x,y\n" + "".join(f"{x},{2 * x + 1}\n" for x in range(40)))
    Path("table.yaml").write_text(TABLE)
    assert gradcli("train", "table.yaml").code == 0
    Path("new.csv").write_text("x\n3\n10\n")
    ended = gradcli("predict", "last", "new.csv")
    values = [float(line.split("\t")[2]) for line in ended.out.splitlines()]
    assert values == pytest.approx([7, 21], abs=0.1)
    rows = gradcli("predict", "last", "new.csv", "--json").json["predictions"]
    assert [row["values"]["y"] for row in rows] == pytest.approx(values, rel=1e-5)
    assert gradcli("predict", "last", "new.csv", "--out", "out.csv").code == 0
    header, *cells = Path("out.csv").read_text().splitlines()
    assert header == "file,index,name,values.y"
    assert cells == [
        f"new.csv,{i},new.csv:{i + 2},{row['values']['y']}" for i, row in enumerate(rows)
    ]
    ended = gradcli("predict", "last", "new.csv", "--top", "2")
    assert (ended.code, "there are no classes to rank" in ended.err) == (2, True)


BINARY = """
gradcli: 1
data: {name: csv, file: side.csv, target: side, numeric: [x]}
model: [{linear: 1}]
loss: {name: bce_with_logits, pos_weight: 1.5}
metrics: [accuracy]
optim: {name: adam, lr: 0.1}
train: {epochs: 40, batch: 8, best: val.accuracy}
expect: {test.accuracy: ">= 0.99"}
"""


@pytest.mark.parametrize("loss", ["bce_with_logits", "bce"])
def test_one_output_predicts_one_of_two_classes(gradcli, loss: str) -> None:
    rows = "".join(f"{x},{'high' if x > 20 else 'low'}\n" for x in range(42))
    Path("side.csv").write_text("x,side\n" + rows)
    text = BINARY.replace("bce_with_logits, pos_weight: 1.5", loss)
    if loss == "bce":
        text = text.replace("{linear: 1}", "{linear: 1}, sigmoid")
    Path("side.yaml").write_text(text)
    ended = gradcli("train", "side.yaml")
    assert ended.code == 0
    assert "warning" not in ended.err and "eager" not in ended.err
    Path("new.csv").write_text("x\n3\n40\n")
    ended = gradcli("predict", "last", "new.csv", "--json", "--top", "2")
    found = ended.json["predictions"]
    assert [row["label"] for row in found] == ["low", "high"]
    for row in found:
        assert sum(one["probability"] for one in row["top"]) == pytest.approx(1)
        assert row["probability"] > 0.5


def test_data_that_moved_is_found_at_the_place_written_into_the_run(gradcli) -> None:
    Path("long.txt").write_text("ab\n" * 200)
    Path("text.yaml").write_text(TEXT)
    run = Path(gradcli("train", "text.yaml", "--json", "--max-steps", "20").json["run"])
    Path("new").mkdir()
    Path("long.txt").rename("new/long.txt")
    assert gradcli("predict", "last", "new/long.txt").code == 0  # it needs the new file alone
    ended = gradcli("eval", "last", "--split", "train")
    assert ended.code == 3
    assert f"write its new place into {run}/resolved.yaml" in ended.err
    resolved = run / "resolved.yaml"
    resolved.write_text(resolved.read_text().replace("long.txt", "new/long.txt"))
    assert gradcli("predict", "last", "new/long.txt").code == 0
    assert gradcli("resume", "last").code == 0
    resolved.write_text(resolved.read_text().replace("context: 4", "context: 5"))
    assert gradcli("predict", "last", "new/long.txt").code == 7  # not only a place


def test_files_are_needed(gradcli) -> None:
    ended = gradcli("predict", "last")
    assert ended.code == 2
    assert "predict needs files, or --prompt, and not both" in ended.err
    assert gradcli("predict", "last", "a.txt", "--prompt", "a").code == 2


def test_a_place_that_cannot_be_written_is_named(gradcli, trained) -> None:
    ended = gradcli("predict", "last", "a.txt", "--out", "no/such/folder.jsonl")
    assert (ended.code, "cannot write no/such/folder.jsonl" in ended.err) == (7, True)


AUTOENCODER = """\
gradcli: 1
name: again
data: {name: idx, images: bytes, labels: labels, target: input}
model: [conv: {out: 2, kernel: 3, padding: 1}, tanh, conv: {out: 1, kernel: 1}]
loss: mse
optim: {name: adam, lr: 0.01}
train: {steps: 2, batch: 4}
"""


def test_the_values_of_an_image_are_its_pixels_row_by_row(gradcli) -> None:
    pixels = bytes(range(0, 240, 2))
    Path("bytes").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 4, 0, 0, 0, 5]) + pixels)
    Path("labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 6, *[0] * 6]))
    Path("again.yaml").write_text(AUTOENCODER)
    assert gradcli("train", "again.yaml").code == 0
    rows = gradcli("predict", "last", "bytes", "--json").json["predictions"]
    job = open_trained(find(Path("runs"), "last").path, "last", "cpu").job
    x = engine.tensor(list(pixels), dtype=engine.float32).reshape(6, 1, 4, 5) / 255.0
    with engine.no_grad():
        wanted = job.model(x).reshape(6, 20).tolist()
    names = [str(pixel) for pixel in range(20)]
    assert [[*row["values"]] for row in rows] == [names] * 6
    found = [[*row["values"].values()] for row in rows]
    assert found == [pytest.approx(one, abs=1e-6) for one in wanted]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("some.txt", "--tokens", "5"), "--tokens goes with --prompt"),
        (("some.txt", "--top-k", "5"), "--top-k goes with --prompt"),
        (("--prompt", "a", "--out", "x.jsonl"), "--out goes with files"),
        (("--prompt", "a", "--top", "2"), "--top goes with files"),
    ],
)
def test_an_option_of_the_other_way_is_refused(gradcli, arguments: tuple[str, ...], says) -> None:
    ended = gradcli("predict", "last", *arguments)
    assert ended.code == 2
    assert says in ended.err
