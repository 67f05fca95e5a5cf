"""`code:`: a user's own layers and datasets, from check to resume."""

from __future__ import annotations

import importlib.util
import py_compile
import re
import shutil
from pathlib import Path

import pytest
from trusting import load

from gradcli import engine
from gradcli.cli.main import run
from gradcli.config import build
from gradcli.config.planned import build_all
from gradcli.config.trust import Trust
from gradcli.engine import nn
from gradcli.engine.nn.generation import cache_obstacle
from gradcli.errors import ErrorGroup

ROOT = Path(__file__).resolve().parents[2]
CONFIG, CODE, _, OF_TEXT, _ = re.findall(
    r"```(?:yaml|python)\n(.*?)```", (ROOT / "docs" / "own-code.md").read_text(), re.S
)
SHORT = ("-s", "train.epochs=3", "-s", "data.samples=80")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gates.py").write_text(CODE)
    (tmp_path / "rings.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def gradcli(capfd: pytest.CaptureFixture[str]):
    def command(*arguments: str) -> tuple[int, str]:
        code = run(list(arguments))
        shown = capfd.readouterr()
        return code, shown.out + shown.err

    return command


def mistakes(path: Path) -> str:
    with pytest.raises(ErrorGroup) as caught:
        load(path)
    return "\n".join(f"{e.message} {e.location} {e.caret}" for e in caught.value.errors)


def sha256(output: str) -> str:
    [found] = re.findall(r"weights sha256 (\w+)", output)
    return found


def test_the_documents_example_is_planned_with_shapes_and_parameters(folder: Path) -> None:
    config = load(folder / "rings.yaml")
    assert [str(layer.output) for layer in config.model] == ["16", "2"]
    assert [layer.parameters for layer in config.model] == [2 * (2 * 16 + 16), 2 * 16 * 2]
    assert config.facts.sizes == {"train": 300, "val": 100}
    model = build(config).model
    assert sum(p.numel() for p in model.parameters()) == 96 + 64


def test_a_layer_that_asks_for_numbers_is_tried_on_zeros(folder: Path) -> None:
    asking = "return self.gate(x).sigmoid() * float(x.sum().item() < 1)  #"
    (folder / "gates.py").write_text(CODE.replace("return self.gate(x).sigmoid()", asking))
    assert [str(layer.output) for layer in load(folder / "rings.yaml").model] == ["16", "2"]


def test_the_documents_layer_of_text_writes_with_a_cache(config_file, tmp_path: Path) -> None:
    (tmp_path / "shift.py").write_text(OF_TEXT)
    path = config_file(
        ("  - flatten\n  - linear: 16\n  - relu\n", "  - embed: 12\n  - token_shift\n"),
        ("linear: {out: $data.classes, name: head}", "linear: $data.vocab"),
        ("{name: fake}", "{name: fake, kind: text}\ncode: shift.py"),
    )
    engine.manual_seed(1)
    model = build_all(load(path).model).double().eval()
    assert cache_obstacle(model) == ""
    x = engine.randint(0, 65, (2, 8))
    cache = nn.KeyValueCache(model, 8)
    found = engine.cat([cache(part) for part in x.split([3, 1, 4], 1)], 1)
    assert (found - model(x)).abs().amax().item() < 1e-12


def test_a_run_is_evaluated_and_resumed_by_its_own_copy(folder: Path, gradcli) -> None:
    runs, config = ("--runs", str(folder / "runs")), str(folder / "rings.yaml")
    code, whole = gradcli("train", config, *SHORT, *runs, "--name", "whole")
    assert code == 0, whole
    gradcli("train", config, *SHORT, *runs, "--name", "half", "--max-steps", "2")
    (folder / "gates.py").unlink()
    code, resumed = gradcli("resume", "half", *runs)
    assert code == 0, resumed
    assert sha256(resumed) == sha256(whole)
    code, measured = gradcli("eval", "whole", "--split", "val", *runs)
    assert code == 0, measured
    assert sha256(measured) == sha256(whole)


@pytest.mark.parametrize("ends", ["\r\n", "\r", "\n"])
def test_the_copy_in_a_run_is_the_same_file(folder: Path, gradcli, ends: str) -> None:
    (folder / "gates.py").write_bytes(CODE.replace("\n", ends).encode("utf-8-sig"))
    runs = ("--runs", str(folder / "runs"))
    code, said = gradcli("train", str(folder / "rings.yaml"), *SHORT, *runs, "--max-steps", "1")
    assert code == 0, said
    [copy] = (folder / "runs").glob("*/*/gates.py")
    assert copy.read_bytes() == (folder / "gates.py").read_bytes()
    assert gradcli("eval", "last", "--split", "val", *runs)[0] == 0


def test_what_python_compiled_before_is_not_run(folder: Path, gradcli) -> None:
    """A planted cache says that it need not be compared with the source."""
    runs = ("--runs", str(folder / "runs"))
    gradcli("train", str(folder / "rings.yaml"), *SHORT, *runs, "--max-steps", "1")
    [copy] = (folder / "runs").glob("*/*/gates.py")
    (folder / "planted.py").write_text(f"open({str(folder / 'marker')!r}, 'w').close()\n{CODE}")
    cache = importlib.util.cache_from_source(str(copy))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(folder / "planted.py"), cache, invalidation_mode=unchecked, doraise=True)
    assert gradcli("eval", "last", "--split", "val", *runs)[0] == 0
    assert not (folder / "marker").exists()


def test_the_bytes_that_were_admitted_are_those_that_run(folder: Path) -> None:
    """However the file changes meanwhile."""

    class Swapping(Trust):
        def admit(self, path: Path, sha256: str) -> None:
            super().admit(path, sha256)
            path.write_text(f"open({str(folder / 'marker')!r}, 'w').close()\n{CODE}")

    config = load(folder / "rings.yaml", trust=Swapping(everything=True))
    assert config.code == {"gates.py": CODE}
    assert not (folder / "marker").exists()


def test_resuming_with_changed_code_is_refused(folder: Path, gradcli) -> None:
    runs = ("--runs", str(folder / "runs"))
    short = (*SHORT, "--name", "half", "--max-steps", "2")
    gradcli("train", str(folder / "rings.yaml"), *short, *runs)
    [copy] = (folder / "runs").glob("half/*/gates.py")
    copy.write_text(CODE.replace("self.value(x)", "self.value(x) * 2.0"))
    code, refused = gradcli("resume", "half", *runs)
    assert code not in (0, 1)
    assert "gates.py" in refused


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("import gradcli\n", "import gradcli\n1 / 0\n", "gates.py:2: ZeroDivisionError"),
        ("import gradcli\n", "import gradcli\ndef (\n", "gates.py:2: SyntaxError"),
        ("import gradcli\n", "import gradcli\nraise SystemExit(3)\n", "gates.py:2: SystemExit: 3"),
        (
            "import nn\n",
            "import nn\n\n@gradcli.layer\nclass Plain: pass\n",
            "the first parameter of",
        ),
        ("(nn.Module)", "", "GatedLinear is marked as a layer and is no nn.Module"),
        ("@gradcli.layer\n", "", "no layer is called 'gated_linear'"),
        ("class GatedLinear", "class Linear", "the name 'linear' is taken"),
        ("def splits(self)", "def parts(self)", "has no method splits()"),
        ('{"train"', '{"training"', "must give a dict with 'train'"),
        (".sigmoid() *", ".sigmoid() @", "own code, "),
        ("out: int,", 'out: "Int",', "gates.py: NameError: name 'Int' is not defined"),
        ("samples: int", 'samples: "Int"', "gates.py: NameError: name 'Int' is not defined"),
        ("samples: int = 60\n", "samples: list[int] = []\n", "gates.py: ValueError: mutable"),
        ("return self", "return x.sum()  #", "must give a tensor with the batch in front"),
        ("out: int,", "out: str,", "out must be text"),
    ],
)
def test_a_mistake_in_own_code_is_told(folder: Path, old: str, new: str, message: str) -> None:
    assert CODE.count(old) >= 1
    (folder / "gates.py").write_text(CODE.replace(old, new))
    assert message in mistakes(folder / "rings.yaml")


@pytest.mark.parametrize("where", ["{}/rings.yaml", "rings.yaml"])
def test_an_error_in_own_code_names_its_line(
    folder: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "gates.py").write_text(CODE.replace("self.value(x)\n", "self.valu(x)\n"))
    line = CODE[: CODE.index("self.value(x)")].count("\n") + 1
    monkeypatch.chdir(folder)
    assert f"gates.py:{line}" in mistakes(Path(where.format(folder)))


def test_an_error_while_training_is_that_of_the_own_code(folder: Path, gradcli) -> None:
    late = CODE.replace("return self", 'assert str(x.device) == "meta"\n        return self')
    line = late[: late.index("assert")].count("\n") + 1
    (folder / "gates.py").write_text(late)
    config, runs = str(folder / "rings.yaml"), str(folder / "runs")
    code, output = gradcli("train", config, *SHORT, "--runs", runs)
    assert code == 2, output
    assert f"gates.py:{line}: AssertionError" in output
    assert "bug" not in output


def test_names_are_not_missed_where_own_code_cannot_be_run(folder: Path) -> None:
    (folder / "gates.py").write_text("def (")
    (folder / "rings.yaml").write_text(CONFIG.replace("lr: 0.02", "lr: -1"))
    [in_code, in_config] = mistakes(folder / "rings.yaml").splitlines()
    assert "SyntaxError" in in_code
    assert "optim.lr" in in_config


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("missing.py", "missing.py, own code that `code:` names"),
        ("folder.py", "folder.py is no regular file; code names Python files"),
        ("dangling.py", "dangling.py is no regular file"),
        ("rings.yaml", "code names Python files"),
        ("[gates.py, other/gates.py]", "two files of own code are called gates.py"),
        ("empty.py", "has no class with @gradcli.layer, @gradcli.dataset, @gradcli.loss or"),
    ],
)
def test_a_wrong_file_is_told(folder: Path, code: str, message: str) -> None:
    (folder / "empty.py").write_text("")
    (folder / "folder.py").mkdir()
    (folder / "dangling.py").symlink_to("nowhere")
    (folder / "other").mkdir()
    shutil.copy(folder / "gates.py", folder / "other")
    (folder / "rings.yaml").write_text(CONFIG.replace("code: gates.py", f"code: {code}"))
    assert message in mistakes(folder / "rings.yaml")


def test_wrong_keys_of_an_own_layer_are_told_like_any_other(folder: Path) -> None:
    (folder / "rings.yaml").write_text(CONFIG.replace("bias: false", "bais: false"))
    assert "did you mean 'bias'?" in mistakes(folder / "rings.yaml")
