"""`gradcli ops`: the table of declared ops, and the files that are made from it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ConfigError
from gradcli.registry import did_you_mean
from gradcli.table import Column, lines
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine import describe


@click.command("ops")
@click.argument("name", required=False, shell_complete=completion.ops)
@click.option(
    "--markdown",
    type=click.Choice(["ops", "api"]),
    is_flag=False,
    flag_value="ops",
    help="Print docs/ops.md, or docs/api.md.",
)
@click.option(
    "--stub",
    type=click.Choice(["tensor", "table"]),
    is_flag=False,
    flag_value="tensor",
    help="Print gradcli/engine/tensor.pyi, or table.pyi.",
)
@options.json
@options.basic
def command(name: str | None, markdown: str | None, stub: str | None, as_json: bool) -> None:
    """List all ops, or show the op NAME."""
    from gradcli.engine import describe

    if markdown or stub:
        output.say_as_is(_file(markdown, stub).rstrip("\n"))
        return
    rows = {row.name: row for row in describe.facts()}
    if name is not None and name not in rows:
        hint = did_you_mean(name, rows, "`gradcli ops` lists them all")
        raise ConfigError(f"no op is called '{name}'; {hint}", code="E102")
    selection = list(rows.values()) if name is None else [rows[name]]
    if as_json:
        output.say_json({"ops": [row.as_object() for row in selection]})
    elif name is None:
        _show_all(selection)
    else:
        _show_one(selection[0])


def _file(markdown: str | None, stub: str | None) -> str:
    from gradcli.cli import api_page
    from gradcli.engine import describe, stubs

    if stub:
        return stubs.STUBS[stub]()
    return api_page.markdown() if markdown == "api" else describe.markdown()


def _show_all(rows: list[describe.OpFacts]) -> None:
    columns = (Column(22, "name", gap=2), Column(1, "text"))
    texts = lines(columns, [(row.name, row.meaning) for row in rows], output.width(sys.stdout))
    family = ""
    for row, line in zip(rows, texts, strict=True):
        if row.family != family:
            output.say(("" if not family else "\n") + row.family)
            family = row.family
        output.say(line)
    output.say(f"\n{quantity(len(rows), 'op')}; `gradcli ops NAME` shows one of them")


def _show_one(row: describe.OpFacts) -> None:
    output.say(row.signature)
    output.say(f"  {row.meaning}")
    for label, value in (
        ("family", row.family),
        ("formula", row.formula),
        ("gradient", row.gradient),
        ("keeps", ", ".join(row.saves) or "nothing"),
        ("decomposed", row.decomposition or ""),
        ("types", ", ".join(row.dtypes)),
        ("devices", ", ".join(row.devices)),
        ("samples", str(row.samples)),
    ):
        if value:
            output.say(f"  {label:<10} {value}", indent=13)
