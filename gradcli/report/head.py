"""The head of a page: what came out, whether it was enough, how the run ended, how to go on."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from gradcli.report.fields import count, duration, figure, items, mapping, moment, size, text, whole
from gradcli.report.run_files import RunFiles, number
from gradcli.train.lock import is_held
from gradcli.wording import quantity

STATES = {
    "finished": "good",
    "stopped": "warn",
    "interrupted": "warn",
    "failed": "bad",
    "running": "busy",
    "killed": "warn",
}
MOST_TILES = 12


class FigureTile(NamedTuple):
    """A figure in large letters, what it is, and what it is to be compared with."""

    value: str
    label: str
    beside: str = ""


def blank(run: RunFiles) -> dict[str, Any]:
    """A head without a figure, for a run whose files say nothing that can be shown."""
    return {
        "name": run.path.absolute().parent.name,
        "folder": run.path.absolute().name,
        "state": "unknown",
        "mood": "warn",
        "ending": "its files cannot be shown",
        **dict.fromkeys(("error", "way_on", "command", "unbeaten"), ""),
        **dict.fromkeys(("facts", "tiles", "expectations"), ()),
    }


def head(run: RunFiles, expect: dict[str, Any]) -> dict[str, Any]:
    """Everything in the head of the page."""
    status, manifest = run.status, run.manifest
    state = _state(run)
    versions = mapping(manifest.get("versions"))
    return {
        "name": run.name,
        "folder": run.path.absolute().name,
        "state": state,
        "mood": STATES.get(state, "warn"),
        "ending": _ending(status, state),
        "error": text(status.get("error")) if state == "failed" else "",
        "way_on": _way_on(run, state),
        "facts": [
            fact
            for fact in (
                moment(manifest.get("created")),
                text(manifest.get("device")),
                _threads(manifest.get("threads")),
                f"gradcli {text(versions['gradcli'])}" if "gradcli" in versions else "",
            )
            if fact
        ],
        "command": _command(manifest.get("argv")),
        "tiles": _tiles(run),
        "expectations": _expectations(status, state, expect),
        "unbeaten": _unbeaten(status),
    }


def _state(run: RunFiles) -> str:
    """What status.json says; a run that nobody works on any more does not run."""
    state = text(run.status.get("status")) or "unknown"
    return "killed" if state == "running" and not is_held(run.path / "lock") else state


def _threads(value: object) -> str:
    threads = whole(value)
    return "" if threads is None else quantity(threads, "thread")


def _command(argv: object) -> str:
    words = [text(word) for word in items(argv)]
    return shlex.join(["gradcli", *words[1:]]) if words else ""


def _ending(status: dict[str, Any], state: str) -> str:
    """`finished at step 320 of 320, after 0.3 s`."""
    if not status:
        return "how it ended is not known: status.json is absent or damaged"
    step, steps = count(status.get("step")), count(status.get("steps"))
    if state in ("running", "killed"):
        return f"at step {step} of {steps}, written down {moment(status.get('updated'))}"
    return f"at step {step} of {steps}, after {duration(status.get('seconds'))}"


def _way_on(run: RunFiles, state: str) -> str:
    """The command that goes on with a run that has not come to its end."""
    status = run.status
    if state in ("finished", "running", "unknown"):
        return ""
    if state == "failed" and number(status.get("saved")) in (None, -1.0):
        return ""
    return f"gradcli resume {shlex.quote(str(run.path))}"


def _tiles(run: RunFiles) -> list[FigureTile]:
    status = run.status
    metrics = mapping(status.get("metrics"))
    words = mapping(metrics.get("nonfinite"))
    baseline = mapping(mapping(status.get("baseline")).get("metrics"))
    names = [name for name in metrics if name != "nonfinite"]
    names.sort(key=lambda name: (not name.startswith("test."), not name.startswith("val.")))
    tiles = [
        FigureTile(
            figure(words.get(name, "not finite" if metrics[name] is None else metrics[name])),
            name,
            f"baseline {figure(baseline[name])}" if name in baseline else "",
        )
        for name in names[: MOST_TILES - 3]
    ]
    tiles.append(FigureTile(count(status.get("step")), "steps", duration(status.get("seconds"))))
    if whole(run.plan.get("total")) is not None:
        tiles.append(FigureTile(count(run.plan["total"]), "parameters"))
    memory = mapping(mapping(run.plan.get("memory")).get("train"))
    if memory:
        tiles.append(
            FigureTile(
                size(memory.get("then")),
                "memory of a step",
                f"{size(memory.get('learning'))} while it is learnt",
            )
        )
    return tiles


class ExpectationOutcome(NamedTuple):
    """A line of `expect:`, and whether the figures meet it; None where none were due."""

    sentence: str
    success: bool | None


def _expectations(
    status: dict[str, Any], state: str, expect: dict[str, Any]
) -> list[ExpectationOutcome]:
    failures = [text(item) for item in items(status.get("missed"))]
    metrics = mapping(status.get("metrics"))
    lines = [ExpectationOutcome(failure, success=False) for failure in failures]
    for name, bound in list(expect.items())[:50]:
        sentence = f"expected {text(name)} {text(bound)}"
        if any(failure.startswith(sentence + ",") for failure in failures):
            continue
        due = state == "finished" and "missed" in status
        outcome = f", got {figure(metrics.get(name))}" if due else ", not due before the end"
        lines.append(ExpectationOutcome(sentence + outcome, success=True if due else None))
    return lines


def _unbeaten(status: dict[str, Any]) -> str:
    baseline = mapping(status.get("baseline"))
    names = [text(name) for name in items(baseline.get("unbeaten"))]
    answer = text(baseline.get("answer"))
    if not names:
        return ""
    return f"{', '.join(names)}: not better than one answer to every sample ({answer})"
