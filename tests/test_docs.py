"""Documents that are made from the code, or hold code: neither may drift."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.cli import api_page
from gradcli.engine import describe, stubs

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"^<!-- (\S+) \| (new|before (.+?)) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


def test_the_table_of_ops_is_up_to_date() -> None:
    assert (ROOT / "docs" / "ops.md").read_text() == describe.markdown(), (
        "run: gradcli ops --markdown > docs/ops.md"
    )


def test_the_page_of_the_api_is_up_to_date_and_says_what_each_name_means() -> None:
    text = api_page.markdown()
    assert (ROOT / "docs" / "api.md").read_text() == text, (
        "run: gradcli ops --markdown api > docs/api.md"
    )
    assert [row for row in text.splitlines() if row.endswith("|  |")] == []
    assert " at 0x" not in text


@pytest.mark.parametrize("name", stubs.STUBS)
def test_the_stubs_of_the_ops_are_up_to_date(name: str) -> None:
    assert (stubs.FOLDER / f"{name}.pyi").read_text() == stubs.STUBS[name](), (
        f"run: gradcli ops --stub {name} > gradcli/engine/{name}.pyi"
    )


def run(arguments: list[str], folder: Path) -> str:
    """What a Python program prints, started in a copy of the project."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with every block of the two guides put where it says."""
    copy = tmp_path_factory.mktemp("adding") / "project"
    built = shutil.ignore_patterns("*.so", "*.o", "__pycache__", "_cpu.c", ".*")
    for folder in ("gradcli", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=built)
    shutil.copy(ROOT / "pyproject.toml", copy)
    guides = (ROOT / "docs" / name for name in ("adding-an-op.md", "adding-a-layer.md"))
    blocks = [block for guide in guides for block in BLOCK.findall(guide.read_text())]
    assert len(blocks) >= 12
    for name, where, anchor, text in blocks:
        path = copy / name
        if where == "new":
            path.write_text(text)
            continue
        old = path.read_text()
        assert anchor in old, f"{name} holds no {anchor!r}"
        path.write_text(old.replace(anchor, text + anchor, 1))
    run(["tests/build_kernels.py", "-O0"], copy)
    return copy


def test_the_ops_of_the_guide_pass_gradcheck(extended: Path) -> None:
    check = ["-m", "gradcli.cli.main", "gradcheck", "bent", "fading_sum"]
    for options, name in ([], "gradcheck"), (["--second-order"], "gradcheck --second-order"):
        printed = run([*check, *options], extended)
        assert re.search(name + r": 2 ops, \d+ cases, all right", printed)


def test_the_ops_of_the_guide_pass_the_suite(extended: Path) -> None:
    options = ["-p", "no:cacheprovider", "-k", "bent or fading_sum"]
    printed = run(["-m", "pytest", "tests/test_ops.py", *options], extended)
    assert int(re.findall(r"(\d+) passed", printed)[-1]) > 50


def test_the_ops_of_the_guide_are_described(extended: Path) -> None:
    table = run(["-m", "gradcli.cli.main", "ops", "--markdown"], extended)
    assert "| `bent(x)` |" in table
    assert "| `fading_sum(x, dim, keep)` |" in table.split("## reduce\n")[1].split("\n## ")[0]


def test_the_layer_of_the_guide_is_known_to_python_and_yaml(extended: Path) -> None:
    printed = run(
        ["-c", "from gradcli.engine import nn, ones; print(nn.Bent(2.0)(ones(1)).item())"], extended
    )
    assert float(printed) == pytest.approx(2 + 2**0.5 - 1)
    (extended / "a.csv").write_text("x,y,z\n" + "1,2,3\n4,5,6\n7,9,8\n" * 10)
    (extended / "a.yaml").write_text(
        "gradcli: 1\ndata: {name: csv, file: a.csv, target: z, numeric: [x, y], task: regression}\n"
        "model: [{linear: 4}, {bent: {scale: 0.5}}, {linear: 1}]\n"
        "loss: mse\noptim: {name: sgd, lr: 0.01}\ntrain: {batch: 3, epochs: 1}\n"
    )
    assert "bent" in run(["-m", "gradcli.cli.main", "check", "a.yaml"], extended)


def test_the_example_of_the_readme_prints_what_it_says() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert run(["-c", example], ROOT).splitlines() == re.findall(r"#  ?(.*)", example)


def test_the_example_of_captured_steps_runs() -> None:
    text = (ROOT / "docs" / "capture.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(8,)\n", "")


def test_the_example_of_tensors_in_files_prints_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "runs.md").read_text(), re.DOTALL)
    (example,) = (block for block in blocks if "save_tensors" in block)
    (tmp_path / "example.py").write_text(example)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "example.py"]
    printed = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
    assert printed.splitlines() == re.findall(r"#  ?(.*)", example)


def test_the_readme_fits_on_a_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


def test_links_in_the_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    broken = [
        (document.name, target)
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text())
        if not (document.parent / target).exists()
    ]
    assert not broken
