"""docs/config.md, warnings.md and errors.md: their tables are what the code declares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gradcli import errors
from gradcli.config.cautions import CAUTIONS
from gradcli.config.reference import renewed
from gradcli.config.schema import schema_of
from gradcli.config.sections import top
from gradcli.data import DATASETS
from gradcli.error_codes import CODES, exit_code
from gradcli.train.job import TrainSettings

DOCUMENT = Path(__file__).parents[2] / "docs" / "config.md"


def test_the_tables_are_those_of_the_schemas() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    choices = {"datasets", "layers", "inits", "losses", "metrics", "optimizers", "schedules"}
    made = {"top", "train", *choices}
    assert set(re.findall(r"<!-- keys: (\w+) -->\n\|", text)) == made
    command = "gradcli check --markdown docs/config.md > new.md && mv new.md docs/config.md"
    assert renewed(text) == text, command


def test_every_key_of_a_section_says_what_it_means() -> None:
    for section in (top, TrainSettings, *DATASETS.values()):
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


def codes_of_errors(file: Path) -> Iterator[tuple[str, str]]:
    """Class and code of each error that a file makes with `code=...`, where both stand there."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=keywords):
                for keyword in keywords:
                    match keyword:
                        case ast.keyword(arg="code", value=ast.Constant(value=str(code))):
                            yield name, code


def test_every_error_has_a_row_with_its_exit_code_cause_and_cure() -> None:
    sources = Path(errors.__file__).parent
    used = {error.code for error in vars(errors).values() if hasattr(error, "exit_code")}
    for file in sources.rglob("*.py"):
        if file.name != "error_codes.py":
            used |= set(re.findall(r'"(E\d{3})"', file.read_text(encoding="utf-8")))
        for name, code in codes_of_errors(file):
            error = getattr(errors, name, None)
            if error is not None:
                assert error.exit_code == exit_code(code), f"{file}: {name} with {code}"
    assert used == set(CODES)
    assert all(code.meaning and code.cure for code in CODES.values())
    text = (DOCUMENT.parent / "errors.md").read_text(encoding="utf-8")
    command = "gradcli check --markdown docs/errors.md > new.md && mv new.md docs/errors.md"
    assert renewed(text) == text, command
