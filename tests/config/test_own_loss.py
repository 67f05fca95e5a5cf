"""`code:`: a user's own losses, from check to resume."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trusting import load

from gradcli import engine
from gradcli.cli.main import run
from gradcli.config.losses import LOSSES
from gradcli.errors import ErrorGroup

ROOT = Path(__file__).resolve().parents[2]
CONFIG, DATA, CODE, *_ = re.findall(
    r"```(?:yaml|python)\n(.*?)```", (ROOT / "docs" / "own-code.md").read_text(), re.S
)
PLAIN = """\
import gradcli
from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn import functional as F


@gradcli.loss
class Plain(nn.Module):
    targets = "{targets}"

    def forward(self, outputs, targets):
        return {function}(outputs, targets)
"""
SHORT = ("-s", "train.epochs=3", "-s", "data.samples=80")
Write = Callable[..., Path]
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def gradcli(capfd: pytest.CaptureFixture[str]) -> Command:
    def command(*arguments: str) -> tuple[int, str]:
        code = run(list(arguments))
        shown = capfd.readouterr()
        return code, shown.out + shown.err

    return command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The documents' rings, with the documents' loss."""
    (tmp_path / "gates.py").write_text(DATA)
    (tmp_path / "focal.py").write_text(CODE)
    text = CONFIG.replace("code: gates.py ", "code: [gates.py, focal.py] ")
    loss = "loss: {name: focal_loss, gamma: 3}"
    (tmp_path / "rings.yaml").write_text(text.replace("loss: cross_entropy", loss))
    return tmp_path


def plain(folder: Path, function: str, targets: str = "labels") -> tuple[str, str]:
    """Writes a loss that is this function; gives the change of the base config."""
    (folder / "plain.py").write_text(PLAIN.format(targets=targets, function=function))
    return ("loss: cross_entropy", "code: plain.py\nloss: plain")


def mistake(path: Path) -> str:
    with pytest.raises(ErrorGroup) as caught:
        load(path)
    [error] = caught.value.errors
    return f"{error.message} at {error.location} [{error.caret}]"


def sha256(output: str) -> str:
    [found] = re.findall(r"weights sha256 (\w+)", output)
    return found


def test_the_documents_loss_is_its_formula_with_the_keys_of_the_config(folder: Path) -> None:
    config = load(folder / "rings.yaml")
    assert config.resolved["loss"] == {"name": "focal_loss", "gamma": 3}
    outputs, labels = engine.tensor([[1.0, -0.5], [0.0, 2.0]]), engine.tensor([1, 1])
    p = engine.softmax(outputs, -1)[:, 1]
    wanted = (-((1 - p) ** 3) * p.log()).mean().item()
    assert config.loss.instance.make()(outputs, labels).item() == pytest.approx(wanted, rel=1e-6)
    again = load(folder / "rings.yaml", ["loss.gamma=null"])
    assert again.resolved["loss"] == {"name": "focal_loss", "gamma": 2.0}


def test_a_resumed_run_uses_its_copy_and_has_the_same_bits(folder: Path, gradcli: Command) -> None:
    runs, config = ("--runs", str(folder / "runs")), str(folder / "rings.yaml")
    code, whole = gradcli("train", config, *SHORT, *runs, "--name", "whole")
    assert code == 0, whole
    assert "eagerly" not in whole
    for name in ("half", "other"):
        gradcli("train", config, *SHORT, *runs, "--name", name, "--max-steps", "2")
    (folder / "focal.py").unlink()
    code, resumed = gradcli("resume", "half", *runs)
    assert code == 0, resumed
    assert sha256(resumed) == sha256(whole)
    [copy] = (folder / "runs").glob("other/*/focal.py")
    copy.write_text(CODE.replace("mean()", "sum()"))
    code, refused = gradcli("resume", "other", *runs)
    assert code not in (0, 1)
    assert "focal.py" in refused


def test_an_own_loss_of_a_function_trains_to_the_bits_of_the_built_in(
    folder: Path, gradcli: Command
) -> None:
    (folder / "focal.py").write_text(PLAIN.format(targets="labels", function="F.cross_entropy"))
    found = []
    for loss in ("plain", "cross_entropy"):
        options = (*SHORT, "-s", f"loss={loss}", "-s", "train.micro_batch=7", "--name", loss)
        runs = str(folder / "runs")
        code, shown = gradcli("train", str(folder / "rings.yaml"), *options, "--runs", runs)
        assert code == 0, shown
        found.append((sha256(shown), re.findall(r"val.loss ([0-9.]+)", shown)))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["cross_entropy", "mse"])
def test_outputs_and_targets_come_as_to_the_built_in(
    config_file: Write, tmp_path: Path, name: str
) -> None:
    """(batch, steps, classes) as rows; one output a value in the shape of the values."""
    changes = {
        "cross_entropy": [
            ("  - flatten\n  - linear: 16\n  - relu\n", "  - embed: 12\n"),
            ("linear: {out: $data.classes, name: head}", "linear: $data.vocab"),
            ("{name: fake}", "{name: fake, kind: text}"),
        ],
        "mse": [
            ("fake", "fake, kind: values"),
            ("$data.classes", "1"),
            ("[accuracy]", "[mae]"),
            ("val.accuracy", "val.mae"),
            ("test.accuracy", "test.mae"),
        ],
    }[name]
    kind = "values" if name == "mse" else "labels"
    function = "F.mse_loss" if name == "mse" else "F.cross_entropy"
    config = load(config_file(plain(tmp_path, function, kind), *changes))
    assert load(config_file(text=json.dumps(config.resolved))).resolved == config.resolved
    targets = engine.randn(5, 1) if name == "mse" else engine.randint(0, 65, (5, 8))
    outputs = engine.randn(5) if name == "mse" else engine.randn(5, 8, 65)
    wanted = LOSSES[name]().make()(outputs, targets)
    assert config.loss.instance.make()(outputs, targets).item() == wanted.item()


def body(lines: str) -> tuple[str, str]:
    return ("return F.cross_entropy(outputs, targets)", lines)


ONE = "must give one floating-point number, the mean loss of the batch, as a tensor of shape ()"
NONE = "has no gradient with respect to the outputs"
COUNTS = (
    "def __init__(self):\n        super().__init__()\n"
    '        self.register_buffer("n", engine.zeros(()))\n\n    def forward'
)
WEIGHTED = COUNTS.replace('self.register_buffer("n", ', "self.n = nn.Parameter(")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([("(nn.Module)", "")], "Plain is marked as a loss and is no nn.Module"),
        ([('"labels"', '"classes"')], "has targets = 'classes'; it must be 'labels' or 'values'"),
        (
            [("self, outputs, targets", "self, outputs")],
            "must have forward(self, outputs, targets)",
        ),
        ([("def forward", "def backward")], "NotImplementedError: Plain has no forward"),
        ([("class Plain", "class Mse")], "the name 'mse' is taken; rename the class"),
        (
            [("(nn.Module):", "(nn.Module):\n    def __init__(self, a: 'Int'): 1")],
            "'Int' is not",
        ),
        ([body("return F.cross_entropy(outputs, targets, reduction='none')")], ONE),
        ([body("return 0.5")], f"{ONE}; it gave float; mean() makes one number of many"),
        (
            [body("return (outputs.argmax(-1) != targets).sum()")],
            f"{ONE}; it gave int64 of",
        ),
        ([body("return F.cross_entropy(outputs.detach(), targets)")], NONE),
        ([body("return engine.tensor(outputs.exp().sum().item())")], NONE),
        (
            [body("return F.cross_entropy(outputs, targets) + self.w")],
            "plain.py:12: Attribute",
        ),
        ([body("return (outputs - targets).abs().mean()")], "own code, "),
        (
            [("def forward", COUNTS), body("self.n += 1\n        return outputs.mean() * self.n")],
            "Plain changes its buffers, which no checkpoint keeps",
        ),
        (
            [
                (
                    "def forward",
                    COUNTS.replace('self.register_buffer("n", ', "self.n = nn.Parameter("),
                )
            ],
            "Plain has parameters, and only those of the model are trained",
        ),
    ],
)
def test_a_mistake_in_an_own_loss_is_told_by_check(
    config_file: Write, tmp_path: Path, changes: list[tuple[str, str]], says: str
) -> None:
    loss = plain(tmp_path, "F.cross_entropy")
    code = (tmp_path / "plain.py").read_text()
    for old, new in changes:
        assert code.count(old) == 1
        code = code.replace(old, new)
    (tmp_path / "plain.py").write_text(code)
    assert says.lower() in mistake(config_file(loss)).lower()


def test_the_numbers_of_two_classes_do_not_fit_by_chance(
    config_file: Write, tmp_path: Path
) -> None:
    loss = plain(tmp_path, "(lambda a, b: (a - b).abs().mean())")
    assert "own code, " in mistake(config_file(loss, ("{name: fake}", "{name: fake, classes: 2}")))


@pytest.mark.parametrize(
    ("function", "warnings"),
    [
        ("F.cross_entropy", 0),
        ("(lambda a, b: F.cross_entropy(a, b, reduction='sum'))", 1),
        ("(lambda a, b: F.cross_entropy(a, b) + (a @ a.T).sum())", 1),
        ("(lambda a, b: F.cross_entropy(a, b) * float('nan'))", 0),
    ],
)
def test_a_loss_that_is_no_mean_is_a_warning(
    config_file: Write, tmp_path: Path, function: str, warnings: int
) -> None:
    before = engine.get_rng_state().tolist()
    found = load(config_file(plain(tmp_path, function))).warnings
    assert [warning.code for warning in found] == ["W108"] * warnings
    assert all("loss 'plain': a batch of the same samples twice" in str(one) for one in found)
    assert engine.get_rng_state().tolist() == before


def test_a_loss_that_looks_at_numbers_is_tried_on_zeros(config_file: Write, tmp_path: Path) -> None:
    function = "(lambda a, b: F.cross_entropy(a, b) * (1 + a.sum().item()))"
    load(config_file(plain(tmp_path, function)))


def test_an_own_loss_for_other_targets_is_refused_with_the_cure(
    config_file: Write, tmp_path: Path
) -> None:
    found = mistake(config_file(plain(tmp_path, "F.mse_loss", "values")))
    assert "loss 'plain' is for values, this data has labels as targets (10 classes)" in found
    assert found.endswith('[if it takes them, write targets = "labels" in its class]')


def test_wrong_keys_are_told_like_those_of_any_other_loss(folder: Path) -> None:
    path = folder / "rings.yaml"
    path.write_text(path.read_text().replace("gamma: 3", "gama: 3"))
    assert "did you mean 'gamma'?" in mistake(path)
    path.write_text(path.read_text().replace("gama: 3", "gamma: much"))
    assert "loss.gamma must be a finite number, got text 'much'" in mistake(path)


def test_mixed_labels_are_tried_too(config_file: Write, tmp_path: Path) -> None:
    keys = f"dir: {ROOT}/datasets/mnist, split: {{train: 90%, val: 10%}}, augment: [{{mixup: 0.2}}]"
    mixed = ("data: {name: fake}", f"data: {{name: mnist, {keys}}}")

    def path(function: str) -> Path:
        return config_file(plain(tmp_path, function), mixed)

    load(path("F.cross_entropy"))
    assert "own code, " in mistake(path("F.nll_loss"))


@pytest.mark.parametrize(
    ("late", "says"),
    [
        ("assert targets.shape[0] < 5, 'too many'", "AssertionError: too many"),
        ("outputs.reshape(3, -1)", "called in own code, {}"),
    ],
)
def test_what_it_raises_while_training_is_told_with_its_line(
    folder: Path, gradcli: Command, late: str, says: str
) -> None:
    code = CODE.replace("        log = ", f"        {late}\n        log = ")
    (folder / "focal.py").write_text(code)
    line = code[: code.index(late)].count("\n") + 1
    config, runs = str(folder / "rings.yaml"), str(folder / "runs")
    status, shown = gradcli("train", config, *SHORT, "--runs", runs, "-s", "train.batch=11")
    assert status == 2, shown
    assert says.format(folder / f"focal.py:{line}") in shown
    assert f"focal.py:{line}" in shown
    assert "bug" not in shown
