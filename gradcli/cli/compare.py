"""`gradcli compare`: runs beside each other, and why their bits differ."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.errors import ConfigError, ExpectationError, RunError
from gradcli.table import Column, lines
from gradcli.wording import byte_size, quantity

if TYPE_CHECKING:
    from gradcli.report.comparison import Comparison, RunPair, Side

# What text says of a figure; bytes are shown in their units.
NAMES = {
    "samples_per_second": "samples/s",
    "memory_learning": "memory, first steps",
    "memory_then": "memory, then",
}
BYTES = ("memory_learning", "memory_then")
LESS_THAN_ALL = 12  # reasons of one kind in the text


@click.command("compare")
@click.argument("names", metavar="RUN RUN...", nargs=-1, shell_complete=completion.runs)
@click.option(
    "--same-bits",
    is_flag=True,
    help="Exit 6 unless weights and losses are equal bit for bit.",
)
@click.option(
    "--html",
    "target",
    type=options.path,
    metavar="FILE",
    help="Also write an HTML page with the curves of all runs.",
)
@options.runs
@options.json
@options.basic
def command(
    names: tuple[str, ...], same_bits: bool, target: Path | None, runs: Path, as_json: bool
) -> None:
    """Compare runs with the first one; each is a path, a run's name or `last`."""
    if len(names) < 2:
        raise click.UsageError(
            f"two runs or more are compared, got {quantity(len(names), 'run')}; `gradcli runs` "
            "lists them"
        )
    from gradcli.report.comparison import compare

    paths = [_path(runs, name) for name in names]
    if target is not None:
        from gradcli.report.written import keep_others

        keep_others("--html", target)
    comparison = compare(paths)
    if target is not None:
        from gradcli.report.comparison_page import comparison_page
        from gradcli.report.written import write_html

        write_html(target, comparison_page(comparison))
    if as_json:
        page = {} if target is None else {"html": str(target)}
        output.say_json({**_as_object(comparison), **page})
    else:
        _show(comparison)
        if target is not None:
            output.say(f"\nwrote {target}")
    if same_bits and not comparison.same_bits:
        raise ExpectationError(
            f"--same-bits: {_first_mismatch(comparison)}",
            notes=("without --same-bits this exits with 0",),
        )


def _path(runs: Path, name: str) -> Path:
    """The folder of a run."""
    from gradcli.train.run_name import find

    try:
        path, which = find(runs, name)
    except OSError as error:
        raise RunError(f"cannot read {error.filename or name}: {error.strerror}") from error
    if which is not None:
        raise ConfigError(
            f"whole runs are compared, not a checkpoint as in {ascii(name)[1:-1]}",
            notes=(f"leave the '@{ascii(which)[1:-1]}' away",),
        )
    return path


def _first_mismatch(comparison: Comparison) -> str:
    """The verdict on the first run that differs from the base."""
    from gradcli.report.comparison import verdict

    pair = next(pair for pair in comparison.pairs if not pair.same_bits)
    return f"{pair.base.label} and {pair.candidate.label}: {verdict(pair)}"


def _show(comparison: Comparison) -> None:
    for number, side in enumerate(comparison.sides):
        role = "base" if number == 0 else f"run {number + 1}" if number > 1 else "run"
        steps = "" if side.steps is None else f", step {side.steps}"
        output.say(f"{role:<11}{side.run.path}, {side.status}{steps}", "heading", 11)
    for pair in comparison.pairs:
        output.say()
        if len(comparison.pairs) > 1:
            output.say(f"{pair.candidate.label}", "heading")
        _show_pair(pair)
    output.say()
    _show_figures(comparison.sides)


def _show_pair(pair: RunPair) -> None:
    from gradcli.report.comparison import unequal_evaluation, verdict

    output.say(verdict(pair), "good" if pair.same_bits else None)
    sentence = unequal_evaluation(pair)
    if sentence:
        output.say(sentence)
    for difference in pair.config:
        remark = "" if difference.may_matter else "  (changes no bit)"
        change = f"{difference.base or 'nothing'} -> {difference.candidate or 'nothing'}"
        output.say(f"  {difference.key}: {change}{remark}")
    reasons = [reason for reason in pair.reasons if reason.kind != "config"]
    for reason in reasons[:LESS_THAN_ALL]:
        output.say(f"  {reason}")
    if len(reasons) > LESS_THAN_ALL:
        output.say(f"  and {len(reasons) - LESS_THAN_ALL} more; --json has all")
    if pair.same_bits is False and not pair.reasons:
        output.say("  no recorded difference can be why")
    for note in pair.notes:
        output.say_aside(f"note: {note}")


def _show_figures(sides: Sequence[Side]) -> None:
    names = list(dict.fromkeys(name for side in sides for name in side.figures))
    rows = [("", *(side.label for side in sides))]
    rows += [
        (NAMES.get(name, name), *(_cell(name, side.figures.get(name)) for side in sides))
        for name in names
    ]
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    columns = [Column(widths[0], "label")]
    columns += [
        Column(width, gap=2, rank=max(number - 1, 0)) for number, width in enumerate(widths[1:])
    ]
    for line in lines(columns, rows, output.width(sys.stdout)):
        output.say(line)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in BYTES:
        return byte_size(int(value))
    whole = abs(value) >= 10_000 or (value == int(value) and abs(value) >= 10)
    return f"{value:,.0f}" if whole and abs(value) < 1e12 else f"{value:.5g}"


def _as_object(comparison: Comparison) -> dict[str, Any]:
    return {
        "runs": [
            {
                "run": str(side.run.path),
                "name": side.run.name,
                "status": side.status,
                "figures": dict(side.figures),
                "bytes": side.bytes,
                "weights_sha256": side.weights_sha256 or None,
            }
            for side in comparison.sides
        ],
        "comparisons": [_pair_as_object(pair) for pair in comparison.pairs],
        "same_bits": comparison.same_bits,
    }


def _pair_as_object(pair: RunPair) -> dict[str, Any]:
    from gradcli.report.comparison import verdict

    common = pair.losses
    return {
        "base": str(pair.base.run.path),
        "run": str(pair.candidate.run.path),
        "same_bits": pair.same_bits,
        "verdict": verdict(pair),
        "config": [
            {
                "key": difference.key,
                "base": difference.base
                and {"value": difference.base.value, "origin": difference.base.origin},
                "run": difference.candidate
                and {"value": difference.candidate.value, "origin": difference.candidate.origin},
                "may_matter": difference.may_matter,
            }
            for difference in pair.config
        ],
        "steps_in_common": common.steps,
        "same_until": common.same_until,
        "first_difference": common.unequal and common.unequal._asdict(),
        "first_evaluation": common.unequal_evaluation and common.unequal_evaluation._asdict(),
        "same_weights": pair.same_weights,
        "reasons": [
            {"kind": reason.kind, "what": reason.what, "base": reason.base, "run": reason.candidate}
            for reason in pair.reasons
        ],
        "notes": list(pair.notes),
    }
