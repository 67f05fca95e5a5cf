"""Rows 1 to 24, wrong configs: `gradcli train` refuses each, with one message and no trace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended
from refusals import gradcli, needs_proc, refused

__all__ = ["gradcli", "refused"]

Refused = Callable[..., Ended]
Write = Callable[..., Path]

ROWS: list[tuple[str, tuple[str, str], int, str]] = [
    ("5 duplicate key", ("lr: 0.1", "lr: 0.1, lr: 0.2"), 2, "key 'lr' is given twice"),
    ("6 unknown key", ("lr: 0.1", "learning_rte: 0.1"), 2, "did you mean 'lr'?"),
    ("7 exponent", ("lr: 0.1", "lr: 1e-3"), 0, ""),
    ("8 quoted number", ("lr: 0.1", 'lr: "0.1"'), 2, "got text '0.1'"),
    ("8 word", ("lr: 0.1", "lr: fast"), 2, "finite number >= 0, got text 'fast'"),
    ("8 no", ("lr: 0.1", "lr: no"), 2, "got text 'no'"),
    ("8 list", ("lr: 0.1", "lr: [0.1]"), 2, "got a list"),
    ("8 nothing", ("lr: 0.1", "lr: "), 2, "got no value (null)"),
    ("9 nan", ("lr: 0.1", "lr: .nan"), 2, "finite number >= 0, got nan"),
    ("9 inf", ("lr: 0.1", "lr: .inf"), 2, "finite number >= 0, got inf"),
    ("9 negative", ("lr: 0.1", "lr: -0.1"), 2, "got -0.1"),
    ("9 overflow", ("lr: 0.1", "lr: 1e400"), 2, "1e400 is too large"),
    ("9 underflow", ("lr: 0.1", "lr: 1e-400"), 2, "1e-400 is too small"),
    ("10 zero", ("batch: 10", "batch: 0"), 2, "whole number from 1 to 1000000, got 0"),
    ("10 negative", ("batch: 10", "batch: -4"), 2, "got -4"),
    ("10 fraction", ("batch: 10", "batch: 2.5"), 2, "got 2.5"),
    ("10 truth", ("batch: 10", "batch: true"), 2, "got the truth value true"),
    ("10 leading zero", ("batch: 10", "batch: 017"), 2, "has a leading zero; write 17"),
    ("10 huge", ("batch: 10", "batch: 1000000000000"), 2, "got 1000000000000"),
    ("11 no epochs", ("epochs: 2", "epochs: 0"), 0, ""),
    ("11 negative epochs", ("epochs: 2", "epochs: -1"), 2, "got -1"),
    ("12 tag", ("lr: 0.1", "lr: !!python/name:os.system "), 2, "YAML tags are not allowed"),
    ("12 call", ("lr: 0.1", "lr: !!python/object/apply:os.mkdir [runs]"), 2, "tags are not"),
    ("13 alias", ("lr: 0.1", "lr: &a 0.1, momentum: *a"), 2, "YAML aliases (*) are not allowed"),
    ("13 merge", ("lr: 0.1", "<<: {lr: 0.1}"), 2, "YAML merge keys (<<) are not allowed"),
    ("13 nesting", ("lr: 0.1", "lr: " + "[" * 10_000), 2, "nested deeper than 32 levels"),
    ("13 anchors", ("lr: 0.1", "lr: &a [&b [&c [1]]]"), 2, "YAML anchors (&) are not allowed"),
    ("14 documents", ("loss:", "---\nloss:"), 2, "a second one begins here"),
    ("15 layer", ("relu", "relo"), 2, "layers: flatten, "),
    ("15 dotted", ("relu", "torch.nn.ReLU"), 2, "layers: flatten, "),
    ("15 optimizer", ("name: sgd", "name: sdg"), 2, "known here: sgd, adam, adamw"),
    ("15 schedule", ("name: cosine", "name: cosin"), 2, "known here: constant, step, multi_step"),
    ("15 loss", ("cross_entropy", "torch.nn.NLLLoss"), 2, "known here: cross_entropy, mse"),
    ("15 data", ("name: fake", "name: imagenet"), 2, "no data is called 'imagenet'"),
    ("16 sizes", ("linear: 16", "linear: {in: 800, out: 16}"), 2, "layer 1, linear: 'in' says 800"),
    ("17 conv", ("- flatten", "- conv: {out: 2, kernel: 30}"), 2, "the output would be -1 x -1"),
    ("17 pool", ("- flatten", "- max_pool: 40"), 2, "input 1x28x28, kernel (40, 40)"),
    ("18 dropout 1", ("relu", "dropout: 1.0"), 2, "a number in [0, 1), got 1.0"),
    ("18 dropout", ("relu", "dropout: 1.5"), 2, "a number in [0, 1), got 1.5"),
    ("18 momentum", ("lr: 0.1", "lr: 0.1, momentum: 1.0"), 2, "a number in [0, 1), got 1.0"),
    ("18 betas below", ("sgd, lr: 0.1", "adam, betas: [-0.1, 0.9]"), 2, "in [0, 1), got -0.1"),
    ("18 betas", ("sgd, lr: 0.1", "adam, betas: [0.9, 1.5]"), 2, "each in [0, 1), got 1.5"),
    (
        "18 group",
        ("sgd, lr: 0.1", "adam, groups: [{match: [head], momentum: 0.9}]"),
        2,
        "keys here: match, lr, betas, eps, weight_decay, amsgrad, maximize",
    ),
    (
        "18 nesterov of a group",
        ("lr: 0.1", "lr: 0.1, groups: [{match: [head], nesterov: true}]"),
        2,
        "optim.groups.0 (sgd): nesterov needs momentum above 0",
    ),
    ("19 classes", ("$data.classes", "12"), 2, "gives 12 values a sample; the data has 10 classes"),
    ("19 loss", ("cross_entropy", "mse"), 2, "loss 'mse' is for values, this data has labels"),
    ("19 metric", ("[accuracy]", "[perplexity]"), 2, "metric 'perplexity' is for texts, this data"),
    ("19 top_k", ("[accuracy]", "[{top_k: 10}]"), 2, "with k 10 is always 1, this data has 10"),
    (
        "19 list",
        ("[accuracy]", "[{recall: {average: none, name: accuracy}}]"),
        2,
        "train.best: metric 'accuracy' is a list with a figure for each class",
    ),
    ("20 memory", ("linear: 16", "linear: 2147483647"), 4, "training needs more than"),
    (
        "20 overflow",
        ("  - relu", "  - linear: 2147483647\n  - linear: 2147483647"),
        2,
        "2^61 bytes",
    ),
    ("21 warm-up", ("warmup: 5%", "warmup: 21"), 2, "takes 21 steps, the whole run has 20"),
    ("21 share", ("warmup: 5%", "warmup: 101%"), 2, "101%"),
    ("21 milestone", ("cosine, warmup: 5%", "step, at: [99]"), 0, "at 99 is never reached"),
    ("22 batch", ("batch: 10", "batch: 200, drop_last: true"), 2, "set train.drop_last to false"),
    ("24 conflict", ("epochs: 2", "epochs: 2, steps: 9"), 2, "train.epochs and train.steps both"),
]


@pytest.mark.parametrize(
    ("change", "code", "message"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_wrong_config_is_refused(
    gradcli: Refused,
    refused: Refused,
    config_file: Write,
    change: tuple[str, str],
    code: int,
    message: str,
) -> None:
    path = config_file(change)
    if code:
        refused(code, message, "train", path)
    else:
        ended = gradcli("check", str(path))
        assert (ended.code, message in ended.err, "error[" in ended.err) == (0, True, False)


def test_a_config_that_cannot_be_read(refused: Refused, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "mnist.yaml").write_text("a: 1")
    ended = refused(2, "there is no file", "train", tmp_path / "mnits.yaml")
    assert "mnist.yaml" in ended.err
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner.yaml").write_text("a: 1")
    ended = refused(2, "is a directory", "train", tmp_path / "folder")
    assert "inner.yaml" in ended.err
    (tmp_path / "circle.yaml").symlink_to("circle.yaml")
    refused(2, "cannot be read: Too many levels", "train", tmp_path / "circle.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    refused(2, "is not a regular file", "train", tmp_path / "pipe.yaml")

    def forbidden(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    refused(2, "cannot be read: Permission denied", "train", tmp_path / "mnist.yaml")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~"])
def test_an_empty_config(refused: Refused, config_file: Write, text: str) -> None:
    refused(2, "is empty", "train", config_file(text=text))


@pytest.mark.parametrize(
    ("data", "message", "place"),
    [
        (b"a:\n\t- relu\n", "a tab cannot indent YAML", "text.yaml:2:1"),
        (b"a: [1\n", "YAML cannot be read here", "text.yaml:2:1"),
        (b"a: \xff", "byte 0xff at byte offset 3", "text.yaml:1:4"),
        (b"a: \0", "character 0x0000 is not allowed", "text.yaml:1:4"),
    ],
    ids=["tab", "bracket", "utf-8", "nul"],
)
def test_broken_text_has_its_place(
    refused: Refused, tmp_path: Path, data: bytes, message: str, place: str
) -> None:
    (tmp_path / "text.yaml").write_bytes(data)
    assert place in refused(2, message, "train", tmp_path / "text.yaml").err


def test_a_byte_order_mark_and_crlf_are_accepted(gradcli: Refused, config_file: Write) -> None:
    path = config_file()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    ended = gradcli("check", str(path))
    assert (ended.code, ended.err) == (0, "")


def test_a_duplicate_key_names_both_lines(refused: Refused, config_file: Write) -> None:
    path = config_file(("optim: {name: sgd, lr: 0.1}", "optim:\n  lr: 1\n  name: sgd\n  lr: 2"))
    refused(2, "key 'lr' is given twice: at line 12 and at line 14", "train", path)


BOMBS = {
    "aliases": b"a: &a [x]\n" + b"".join(b"b%d: &b%d [*a, *a, *a]\n" % (i, i) for i in range(9999)),
    "merge keys": b"a: &a {x: 1}\n" + b"".join(b"b%d: {<<: [*a, *a]}\n" % i for i in range(9999)),
    "10,000 levels": b"a: " + b"[" * 10_000 + b"]" * 10_000,
    "50 MB": b"",
}
PEAK = """
import sys
from pathlib import Path
from gradcli.cli.main import run
code = run(sys.argv[1:])
status = Path('/proc/self/status').read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith('VmHWM')))
sys.exit(code)
"""


@needs_proc
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_below_100_megabytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_bytes(BOMBS[name])
    if not BOMBS[name]:
        os.truncate(path, 50_000_000)
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "train", str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    after = os.times()
    assert done.returncode == 2
    assert (
        "not allowed" in done.stderr or "deeper than 32" in done.stderr or "at most" in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert int(done.stdout) < 100_000
    assert after.children_user - before.children_user < 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["bomb.yaml"]


def test_a_list_at_the_top(refused: Refused, config_file: Write) -> None:
    path = config_file(text="- a\n- b\n")
    refused(2, "a config is a map of sections, this is a list", "train", path)


def test_an_epoch_without_a_step_shows_counts_and_two_ways_out(
    refused: Refused, config_file: Write
) -> None:
    path = config_file(("batch: 10", "batch: 200, drop_last: true"))
    ended = refused(2, "an epoch has no step: 100 training samples, batch 200", "train", path)
    assert "set train.batch to 100 or less" in ended.err
    assert "or set train.drop_last to false" in ended.err


def test_batchnorm_and_a_last_batch_of_one(refused: Refused, config_file: Write) -> None:
    path = config_file(("relu", "batch_norm"), ("batch: 10", "batch: 11"))
    message = "batches of 11 from 100 training samples leave one of 1"
    ended = refused(2, message, "train", path)
    assert "set train.drop_last to true" in ended.err
    assert "or choose another train.batch" in ended.err


def test_a_scale_for_targets_that_have_none(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    data = "{name: csv, file: t.csv, target: y, numeric: [x], target_scale: standard"
    rest = "optim: {name: sgd, lr: 0.1}\ntrain: {epochs: 1, batch: 8}\n"
    for task, loss, message in (
        ("classification", "bce_with_logits", "only targets that are values, one or a row of them"),
        ("regression", "poisson_nll", "loss 'poisson_nll' needs the targets as they are; use none"),
    ):
        path = tmp_path / f"{task}.yaml"
        path.write_text(
            f"gradcli: 1\ndata: {data}, task: {task}}}\nmodel: [linear: 1]\nloss: {loss}\n{rest}"
        )
        refused(2, f"data.target_scale: {message}", "train", path)


def test_more_classes_than_outputs(refused: Refused, config_file: Write) -> None:
    path = config_file(("{name: fake}", "{name: fake, classes: 12}"), ("$data.classes", "10"))
    refused(2, "gives 10 values a sample; the data has 12 classes", "train", path)
