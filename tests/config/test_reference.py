"""docs/config.md: its tables are those of the schemas, which say what every key means."""

from __future__ import annotations

import re
from pathlib import Path

from gradcli.config.cautions import CAUTIONS
from gradcli.config.reference import renewed
from gradcli.config.schema import schema_of
from gradcli.config.sections import top
from gradcli.data import DATASETS
from gradcli.train.job import Settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "config.md"


def test_the_tables_are_those_of_the_schemas() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    choices = {"datasets", "layers", "inits", "losses", "metrics", "optimizers", "schedules"}
    made = {"top", "train", *choices}
    assert set(re.findall(r"<!-- keys: (\w+) -->\n\|", text)) == made
    command = "gradcli check --markdown docs/config.md > new.md && mv new.md docs/config.md"
    assert renewed(text) == text, command


def test_every_key_of_a_section_says_what_it_means() -> None:
    for section in (top, Settings, *DATASETS.values()):
        fields = schema_of(section).model.model_fields
        assert [key for key, field in fields.items() if not field.description] == []


def test_every_warning_has_a_row_with_its_cause_and_cure() -> None:
    folder = DOCUMENT.parents[1] / "gradcli" / "config"
    codes = re.compile(r'"(W\d{3})"')
    used = {
        code
        for file in folder.glob("*.py")
        if file.name != "cautions.py"
        for code in codes.findall(file.read_text(encoding="utf-8"))
    }
    assert used == set(CAUTIONS)
    assert all(all(caution) for caution in CAUTIONS.values())
    text = (DOCUMENT.parent / "warnings.md").read_text(encoding="utf-8")
    command = "gradcli check --markdown docs/warnings.md > new.md && mv new.md docs/warnings.md"
    assert renewed(text) == text, command
