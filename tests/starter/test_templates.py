"""Templates are the shipped configs: the same content, comments added, data beside them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from gradcli.config import load
from gradcli.starter import templates as shipped
from gradcli.starter.templates import templates
from gradcli.starter.writing import FIRST_LINE, write

ROOT = Path(__file__).parents[2]
CONFIGS = {path.stem: path for path in (ROOT / "configs").rglob("*.yaml")}


def test_every_shipped_config_is_a_template() -> None:
    assert templates().keys() == CONFIGS.keys()
    assert all(each.what for each in templates().values())


@pytest.mark.parametrize("name", CONFIGS)
def test_a_template_says_what_its_config_says(name: str, tmp_path: Path) -> None:
    template = templates()[name]
    plain: dict[str, Any] = yaml.safe_load(CONFIGS[name].read_text())
    if "file" in plain["data"]:
        plain["data"]["file"] = plain["data"]["file"].replace("../", "")
    assert yaml.safe_load(template.text()) == plain
    out = tmp_path / f"{name}.yaml"
    write(template.text(), out)
    assert out.read_text().startswith(f"{FIRST_LINE}# What: ")
    assert f"gradcli train {name}.yaml\n" in out.read_text()
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    assert load(out, room=None).warnings == ()


def test_data_of_a_template_that_came_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {str(to) for _, to in templates()["penguins"].data()}
    assert "datasets/penguins/penguins.csv" in listed
    assert "datasets/penguins/SHA256SUMS" in listed
    monkeypatch.setattr(shipped, "root", lambda: tmp_path)
    folder = tmp_path / "datasets" / "mnist"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "make.py").write_text("")
    template = shipped.Template("mnist", CONFIGS["mnist"])
    assert list(template.data()) == []


def test_what_a_wheel_takes_along_are_the_configs_and_small_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """setup.py names it once; a wheel of two megabytes more is for nobody."""
    setuptools = pytest.importorskip("setuptools")
    monkeypatch.setattr(setuptools, "setup", lambda **named: None)
    patterns = runpy.run_path(str(ROOT / "setup.py"))["SHIPPED"]
    files = {file for pattern in patterns for file in ROOT.glob(pattern)}
    assert set(CONFIGS.values()) <= files
    assert ROOT / "datasets/penguins/penguins.csv" in files
    assert ROOT / "datasets/shakespeare/shakespeare.txt.gz" in files
    assert sum(file.stat().st_size for file in files) < 600_000
