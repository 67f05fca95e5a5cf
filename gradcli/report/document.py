"""An HTML document that is whole in itself: template, style and scripts in one file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from gradcli import __version__
from gradcli.report.policy import policy

HERE = Path(__file__).parent


def document(
    template: str,
    facts: dict[str, Any],
    drawing: dict[str, Any],
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    live: bool = False,
) -> str:
    """Render a template with its facts, the charts' code and their data.

    `styles` and `scripts` are files beside page.css and page.js; `live` lets the page listen to its
    server.
    """
    style = "".join(map(_text, ("vendor/uPlot.min.css", "templates/page.css", *styles)))
    code = [_text(name) for name in ("vendor/uPlot.iife.min.js", "templates/page.js", *scripts)]
    return (
        _environment()
        .get_template(template)
        .render(
            **facts,
            version=__version__,
            policy=policy([style], code, live=live),
            style=Markup(style),
            scripts=[Markup(script) for script in code],
            drawing=Markup(for_script(drawing)),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def for_script(value: object) -> str:
    """JSON that may stand inside a script element: no text in it can end that."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
