"""A run as its files, written by hand: whole, or with what somebody put in their place."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from gradcli.report.run_files import RunFiles

SCRIPT = "</script><img src=x onerror=alert(1)>"
RESOLVED = """gradcli: 1
name: tiny
model:
- linear:
    out: 3
- relu
optim: {name: adam, lr: 0.01}
train: {epochs: 2, batch: 8}
expect: {test.accuracy: ">= 0.9"}
"""
STATUS = {
    "format": 1,
    "status": "finished",
    "step": 40,
    "steps": 40,
    "seconds": 1.5,
    "metrics": {"val.loss": 0.5, "val.accuracy": 0.9, "test.loss": 0.4, "test.accuracy": 0.95},
    "missed": [],
    "baseline": {"answer": "the commonest", "metrics": {"test.accuracy": 0.3}, "unbeaten": []},
}
MANIFEST = {
    "format": 2,
    "name": "tiny",
    "argv": ["gradcli", "train", "tiny.yaml"],
    "created": "2026-01-02T03:04:05+00:00",
    "versions": {"gradcli": "0.1.0", "python": "3.11.7"},
    "device": "cpu",
    "threads": 2,
}


def step(number: int, **more: object) -> dict[str, object]:
    figures = {"loss": 2.0 / number, "lr": 0.01, "seconds": 0.1 * number}
    return {"event": "step", "step": number, "epoch": 0, **figures, **more}


def evaluation(number: int, **more: object) -> dict[str, object]:
    return {
        "event": "eval",
        "step": number,
        "seconds": 0.1,
        "val.loss": 2.5 / number,
        "val.accuracy": 0.9,
        **more,
    }


LOG = [step(number) for number in range(1, 41)] + [evaluation(40)]


def write_run(folder: Path, **files: Any) -> Path:
    """A run in a folder; `status={...}` and the like replace a file, None leaves it out."""
    run = folder / "runs" / "tiny" / "20260102-030405Z-001"
    run.mkdir(parents=True)
    content: dict[str, Any] = {"status": STATUS, "manifest": MANIFEST, **files}
    (run / "resolved.yaml").write_text(content.pop("resolved", RESOLVED))
    log = content.pop("log", LOG)
    if log is not None:
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in log]
        (run / "log.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    tensors = content.pop("tensors", None)
    if tensors is not None:
        (run / "evaluation.safetensors").write_bytes(tensors)
    for name, value in content.items():
        if value is not None:
            (run / f"{name}.json").write_text(json.dumps(value))
    return run


VOID = {"meta", "link", "img", "br", "hr"}  # without an end tag


class Seen(HTMLParser):
    """The elements of a page, as a browser finds them: tags with their attributes, and texts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.words: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append((self.tags[-1][1], data))
        elif self.open and self.open[-1] == "style":
            self.styles.append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def seen(folder: Path, live: str = "", **files: Any) -> Seen:
    from gradcli.report.page import page

    made = Seen(page(RunFiles(write_run(folder, **files)), live=live))
    assert made.wrong == [] and made.open == []
    harmless(made)
    return made


def harmless(made: Seen) -> None:
    """Nothing of the page asks for another file or runs what it should not."""
    for tag, attributes in made.tags:
        assert tag not in ("iframe", "object", "embed", "base", "form", "audio", "video")
        for name, value in attributes.items():
            assert not name.startswith("on") and name != "style"
            if name in ("src", "href"):
                assert (value or "").startswith(("#", "data:"))
    [policy] = [one for _, one in made.tags if one.get("http-equiv") == "Content-Security-Policy"]
    allowed = set(re.findall(r"'sha256-([^']+)'", policy["content"] or ""))
    running = [text for attributes, text in made.scripts if "type" not in attributes]
    hashes = {
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in [*running, *made.styles]
    }
    assert hashes == allowed and len(running) == 2 + ("connect-src" in (policy["content"] or ""))
    assert (policy["content"] or "").startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in (policy["content"] or "")
