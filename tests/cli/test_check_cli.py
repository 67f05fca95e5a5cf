"""The rows of bad configs, each through the command line: exit code, message, nothing left."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.cli import main

Write = Callable[..., Path]


@pytest.fixture
def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs `gradcli check`; gives exit code and stderr, and looks for what may never be there."""

    def run(*args: object) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        start = time.process_time()
        code = main.run(["check", *map(str, args)])
        assert time.process_time() - start < 2
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        assert not (tmp_path / "runs").exists()
        return code, shown.err

    return run


Check = Callable[..., tuple[int, str]]

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
    ("14 documents", ("loss:", "---\nloss:"), 2, "a second one begins here"),
    ("15 layer", ("relu", "relo"), 2, "layers: flatten, linear"),
    ("15 dotted", ("relu", "torch.nn.ReLU"), 2, "layers: flatten, linear"),
    ("15 optimizer", ("name: sgd", "name: sdg"), 2, "known here: sgd, adam, adamw"),
    ("15 schedule", ("name: cosine", "name: cosin"), 2, "known here: constant, step, cosine"),
    ("15 data", ("name: fake", "name: imagenet"), 2, "no data is called 'imagenet'"),
    ("16 sizes", ("linear: 16", "linear: {in: 800, out: 16}"), 2, "layer 1, linear: 'in' says 800"),
    ("17 conv", ("- flatten", "- conv: {out: 2, kernel: 30}"), 2, "the output height would be -1"),
    ("17 pool", ("- flatten", "- maxpool: 40"), 2, "input height 28, kernel 40, stride 40"),
    ("18 dropout 1", ("relu", "dropout: 1.0"), 2, "a number in [0, 1), got 1.0"),
    ("18 dropout", ("relu", "dropout: 1.5"), 2, "a number in [0, 1), got 1.5"),
    ("18 momentum", ("lr: 0.1", "lr: 0.1, momentum: 1.0"), 2, "a number in [0, 1), got 1.0"),
    ("18 betas", ("sgd, lr: 0.1", "adam, betas: [0.9, 1.5]"), 2, "each in [0, 1), got 1.5"),
    ("19 classes", ("$data.classes", "12"), 2, "gives 12 values a sample; the data has 10 classes"),
    ("19 loss", ("cross_entropy", "mse"), 2, "loss 'mse' is for values, this data has labels"),
    ("20 memory", ("linear: 16", "linear: 2147483647"), 4, "training needs about"),
    ("20 overflow", ("  - relu", "  - linear: 2147483647\n  - linear: 2147483647"), 2, "64 bits"),
    ("21 warm-up", ("warmup: 5%", "warmup: 21"), 2, "takes 21 steps, the whole run has 20"),
    ("21 milestone", ("cosine, warmup: 5%", "step, at: [99]"), 0, "at 99 is never reached"),
    ("22 batch", ("batch: 10", "batch: 200, drop_last: true"), 2, "set train.drop_last to false"),
    ("24 conflict", ("epochs: 2", "epochs: 2, steps: 9"), 2, "train.epochs and train.steps both"),
]


@pytest.mark.parametrize(
    ("change", "code", "message"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_bad_configs(
    check: Check, config_file: Write, change: tuple[str, str], code: int, message: str
) -> None:
    found, shown = check(config_file(change))
    assert message in shown
    assert found == code
    assert code or "error[" not in shown


def test_row_1_missing_directory_and_unreadable(check: Check, tmp_path: Path) -> None:
    (tmp_path / "mnist.yaml").write_text("")
    code, shown = check(tmp_path / "mnits.yaml")
    assert (code, "there is no file" in shown, "mnist.yaml" in shown) == (2, True, True)
    code, shown = check(tmp_path)
    assert (code, "is a directory" in shown) == (2, True)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~"])
def test_row_2_an_empty_config(check: Check, config_file: Write, text: str) -> None:
    code, shown = check(config_file(text=text))
    assert code == 2
    assert "is empty" in shown


def test_row_3_broken_text_has_its_place(check: Check, config_file: Write, tmp_path: Path) -> None:
    assert "a tab cannot indent YAML" in check(config_file(("  - relu", "\t- relu")))[1]
    assert "config.yaml:2:1" in check(config_file(text="a: [1\n"))[1]
    (tmp_path / "x.yaml").write_bytes(b"a: \xff")
    code, shown = check(tmp_path / "x.yaml")
    assert (code, "byte offset 3" in shown) == (2, True)
    assert "character 0x0000" in check(config_file(text="a: \x00"))[1]


def test_row_4_byte_order_mark_and_crlf(check: Check, config_file: Write) -> None:
    path = config_file()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert check(path) == (0, "")


def test_row_14_a_list_at_the_top(check: Check, config_file: Write) -> None:
    code, shown = check(config_file(text="- a\n- b\n"))
    assert (code, "a config is a map of sections, this is a list" in shown) == (2, True)


def test_row_23_batchnorm_and_a_last_batch_of_one(check: Check, config_file: Write) -> None:
    code, shown = check(config_file(("relu", "batchnorm"), ("batch: 10", "batch: 11")))
    assert code == 2
    assert "100 training samples in batches of 11 leave one of 1" in shown
    assert "set train.drop_last to true" in shown


@pytest.mark.parametrize(
    "text", ["train.lr=abc", "train.lr.x=1", "=", "train.batch", "optim.lr=abc"]
)
def test_row_54_a_wrong_override_is_shown(check: Check, config_file: Write, text: str) -> None:
    code, shown = check(config_file(), "-s", text)
    assert code == 2
    assert f"--> -s {text}" in shown


def test_row_54_overrides_given_twice(check: Check, config_file: Write) -> None:
    code, shown = check(config_file(), "-s", "train.batch=1", "--set", "train.batch=2")
    assert (code, "'train.batch' is overridden twice" in shown) == (2, True)


def test_a_right_config_shows_its_layers(
    config_file: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["check", str(config_file())]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "tiny, train 100, val 20, test 20 samples, 20 steps" in lines[0]
    assert lines[2].split() == ["1", "linear", "16", "16", "12,560"]
    assert lines[4].split() == ["3", "linear", "'head'", "10", "170"]
    assert lines[5].split() == ["total", "12,730"]


def test_a_repeat_shows_one_turn(config_file: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = config_file(("- relu", "- repeat: {times: 3, layers: [linear: 16, relu]}"))
    assert main.run(["check", str(path)]) == 0
    indices = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert indices == ["0", "1", "2", "2.0.0", "2.0.1", "3", "total"]


def test_all_configs_are_checked(check: Check, config_file: Write) -> None:
    right = config_file(name="right.yaml")
    code, shown = check(right, config_file(("lr: 0.1", "lr: -1"), name="a.yaml"), "missing.yaml")
    assert code == 2
    assert "a.yaml:11:24" in shown
    assert "there is no file missing.yaml" in shown


def test_json_gives_the_same_as_objects(
    config_file: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [config_file(name="right.yaml"), config_file(("lr: 0.1", "lr: -1"))]
    assert main.run(["check", "--json", *map(str, paths)]) == 2
    found = json.loads(capsys.readouterr().out)
    right, wrong = found["configs"]
    assert (found["exit_code"], right["ok"], wrong["ok"]) == (2, True, False)
    assert right["parameters"] == 12730
    assert right["layers"][3]["output"] == [10]
    assert right["resolved"]["optim"]["momentum"] == 0.0
    assert (wrong["errors"][0]["line"], wrong["errors"][0]["code"]) == (11, "E104")


def test_resolved_is_a_config_again(config_file: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["check", "--resolved", str(config_file()), "-s", "name=no-1e3"]) == 0
    text = capsys.readouterr().out
    path = config_file(text=text, name="again.yaml")
    assert main.run(["check", "--resolved", str(path)]) == 0
    assert capsys.readouterr().out == text


def test_schema_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["check", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "gradcli config"


def test_train_refuses_the_same_before_anything_is_written(
    config_file: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = config_file(("lr: 0.1", "lr: -1"), ("relu", "relo"))
    assert main.run(["train", str(path)]) == 2
    shown = capsys.readouterr().err
    assert shown.count("error[") == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["config.yaml"]


def test_missing_data_are_a_data_error_at_the_path(check: Check, config_file: Write) -> None:
    source = "{name: csv, file: no.csv, target: y, numeric: [x]}"
    code, shown = check(config_file(("{name: fake}", source)))
    assert code == 3
    assert "'no.csv'" in shown
    assert "config.yaml:3:25" in shown
