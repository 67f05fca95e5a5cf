"""docs/data.md by what a user has: each section begins with a config that trains as it stands."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from data_files import arrays, pictures, series, table, text, tokens
from points import Ended, gradcli

__all__ = ["gradcli"]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", SECTIONS[section], re.DOTALL | re.MULTILINE)


def own_code(_: random.Random) -> None:
    [program] = blocks("Own code", "python")
    Path("spirals.py").write_text(program)


# What each section's config reads; in the order of the page.
DATA: dict[str, Callable[[random.Random], None]] = {
    "A table": table,
    "Pictures": pictures,
    "Text": text,
    "Tokens": tokens,
    "Arrays": arrays,
    "A time series": series,
    "Own code": own_code,
}


def test_every_section_with_a_config_is_tried() -> None:
    with_config = [section for section in SECTIONS if blocks(section, "yaml")]
    assert with_config == list(DATA)
    assert list(SECTIONS)[: len(DATA)] == list(DATA)  # what a user has comes first


@pytest.mark.parametrize("section", DATA)
def test_the_configs_of_a_section_train(gradcli: Callable[..., Ended], section: str) -> None:
    DATA[section](random.Random(4))
    for number, config in enumerate(blocks(section, "yaml")):
        file = Path(f"config{number}.yaml")
        file.write_text(config)
        ended = gradcli("train", str(file), "--max-steps", "3")
        assert ended.code == 0, ended.err
        assert "warning" not in ended.err
