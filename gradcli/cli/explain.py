"""`gradcli explain`: what a word of a config or the code of an error means, with an example."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from gradcli.cli import completion, options, output

if TYPE_CHECKING:
    from gradcli.starter.words import Explained


@click.command("explain")
@click.argument("word", shell_complete=completion.words)
@options.json
@options.basic
def command(word: str, as_json: bool) -> None:
    """Explain WORD: a key, layer, loss, metric, dataset, schedule, optimizer or error code."""
    from gradcli.starter.words import explained

    meanings = explained(word)
    if as_json:
        output.say_json({"word": word, "meanings": [_as_object(each) for each in meanings]})
        return
    for number, each in enumerate(meanings):
        if number:
            output.say()
        _show(each)


def _show(each: Explained) -> None:
    output.say(each.title, "heading")
    if each.text:
        output.say(f"  {each.text}")
    width = max((len(label) for label, _ in each.rows), default=0)
    for label, text in each.rows:
        output.say(f"  {label:<{width}}  {text}", indent=width + 4)
    if each.example:
        output.say("  example")
        output.say(textwrap.indent(each.example.text, "    "), indent=8)


def _as_object(each: Explained) -> dict[str, object]:
    example = each.example.text if each.example else None
    return {"title": each.title, "text": each.text, "keys": dict(each.rows), "example": example}
