"""Versions of installed packages, against importlib.metadata."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from gradcli.packages import version


def test_versions_are_those_of_the_library() -> None:
    names = {one.metadata["Name"] for one in metadata.distributions()}
    assert names >= {"pydantic", "PyYAML"}
    assert {name: version(name) for name in names} == {
        name: metadata.version(name) for name in names
    }


def test_names_are_compared_as_installers_do() -> None:
    assert version("typing.Extensions") == metadata.version("typing_extensions")


def test_a_package_that_is_not_there_has_none() -> None:
    assert version("no-such-package") == ""


@pytest.mark.parametrize("folder", ["some_tool.egg-info", "some_tool-1.0-py3.11.egg-info"])
def test_a_folder_of_an_old_installer_is_left_to_the_library(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "PKG-INFO").write_text("Name: some-tool\nVersion: 2.5\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), "/nowhere", *sys.path])
    assert version("some-tool") == metadata.version("some-tool") == "2.5"


def test_the_first_folder_on_the_path_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in ("1.0", "2.0+cu13"):
        (tmp_path / number / f"some_tool-{number}.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "2.0+cu13"), str(tmp_path / "1.0")])
    assert version("some-tool") == "2.0+cu13"
