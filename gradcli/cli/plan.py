"""`gradcli plan`: what a training will need, before it begins."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.errors import GradcliError, members
from gradcli.table import Column, lines
from gradcli.wording import byte_size, quantity

if TYPE_CHECKING:
    from gradcli.config import Config

USES = {"train": "train", "eval": "gradcli eval", "predict": "gradcli predict"}


@click.command("plan")
@click.argument(
    "configs", nargs=-1, required=True, type=options.path, shell_complete=completion.configs
)
@options.memory
@click.option(
    "--time",
    "timed",
    is_flag=True,
    help="Time a few steps and evaluations, and estimate how long the run will take.",
)
@options.overrides
@options.trust_code
@options.common
@click.pass_context
def command(
    ctx: click.Context,
    configs: tuple[Path, ...],
    memory: int | None,
    timed: bool,
    overrides: tuple[str, ...],
    trust_code: bool,
    as_json: bool,
    threads: int | None,
    device: str,
) -> None:
    """Estimate what training CONFIGS needs: steps, disk, and work and memory by layer.

    No step runs unless --time is given. With --memory, also find the largest batch that fits.
    """
    options.compute_on(device, threads)
    code, objects = 0, []
    for path in configs:
        try:
            plan = _plan_of(path, overrides, trust_code, memory, timed, device)
        except GradcliError as error:  # the other configs are planned all the same
            output.name_own_code(error)
            code = code or error.exit_code
            objects.append(_wrong(path, error))
            if not as_json:
                output.errors(members(error), error.exit_code, as_json=False)
            continue
        objects.append({**plan, "ok": True})
        if not as_json:
            _show(plan, device)
    if as_json:
        output.say_json({"configs": objects, "exit_code": code})
    ctx.exit(code)


def _wrong(path: Path, error: GradcliError) -> dict[str, Any]:
    """What --json says of a config that cannot be planned."""
    problems = [output.as_object(each) for each in members(error)]
    return {"config": str(path), "ok": False, "errors": problems}


def _plan_of(
    path: Path,
    overrides: tuple[str, ...],
    trust_code: bool,
    memory: int | None,
    timed: bool,
    device: str,
) -> dict[str, Any]:
    """Everything about one config, as plain values."""
    from gradcli.bench.sheet import sheet
    from gradcli.config import load

    config = load(path, overrides, room=None, trust=options.trust(trust_code))
    output.warnings(config.warnings)
    facts = {"config": str(path), "name": config.name, **sheet(config, device, memory)}
    if memory is not None:
        facts["room"] = _room_of(config, memory, device)
    if timed:
        from gradcli.bench.length import run_length

        facts["time"] = run_length(config, device)
    return facts


def _room_of(config: Config, memory: int, device: str) -> dict[str, Any]:
    """The largest batch that fits into so many bytes, of which Python has its part."""
    from gradcli.config.largest import largest_batch
    from gradcli.config.room import allowance

    process = allowance(memory, device).process
    largest = largest_batch(config, memory - process, device=device)
    return {"bytes": memory, "process": process, "largest": largest and largest.as_json()}


# What is shown.


def _show(plan: Mapping[str, Any], device: str) -> None:
    steps, per_epoch = plan["steps"], plan["steps_per_epoch"]
    output.say(f"{plan['config']}: {plan['name']}, {quantity(steps, 'step')}", "heading")
    if "model" in plan:
        for line in _layers(plan, output.width(sys.stdout)):
            output.say(line)
        for line in _memory(plan["memory"], device):
            output.say(line, indent=8)
    for reason in filter(None, (plan.get("why_not_captured"), plan.get("why_not_planned"))):
        output.say(f"eager: {reason}", "warning", indent=8)
    output.say(f"steps: {per_epoch:,} an epoch, {steps:,} in all")
    disk = plan["checkpoints"]
    at_once = quantity(disk["count"], "checkpoint")
    output.say(f"disk: {at_once} at a time, {byte_size(disk['bytes'])} together")
    if plan["first_loss"] is not None:
        output.say(f"first loss: about {plan['first_loss']:.4g}")
    if "room" in plan:
        output.say(_room(plan["room"]))
    if "time" in plan:
        output.say(_time(plan["time"]), indent=8)


def _layers(plan: Mapping[str, Any], width: int | None) -> list[str]:
    from gradcli.bench.sheet import branches

    whole = [*plan["model"], *plan["parts"].values()]
    total = {key: sum(work[key] for work in whole) for key in _FIGURES}
    units = {key: _unit(number) for key, number in total.items()}
    heads = [_FIGURES[key].format(prefix) for key, (prefix, _) in units.items()]
    rows: list[Sequence[str]] = [("", "", "output", "parameters", *heads)]
    for branch, depth in branches(plan["model"]):
        output_shape = "x".join(map(str, branch["output"]))
        title = "  " * depth + branch["title"]
        parameters = f"{branch['parameters']:,}"
        rows.append((branch["index"], title, output_shape, parameters, *_work(branch, units)))
    rows += [("", name, "", "", *_work(work, units)) for name, work in plan["parts"].items()]
    count = sum(branch["parameters"] for branch in plan["model"])
    rows.append(("total", "", "", f"{count:,}", *_work(total, units)))
    columns = (
        Column(5, "name", gap=0),
        Column(20, "label", gap=2),
        Column(10, "label", rank=3),
        Column(12),
        Column(9),
        Column(11, rank=2),
        Column(9, rank=4),
        Column(9, rank=5),
        Column(9, rank=1),
    )
    return lines(columns, rows, width)


_FIGURES = {
    "flops_forward": "{}FLOP",
    "flops_backward": "back {}FLOP",
    "bytes_forward": "{}B",
    "bytes_backward": "back {}B",
    "kept": "kept {}B",
}
_PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}


def _unit(number: int) -> tuple[str, float]:
    """The prefix, and its value, with which a number has one digit or more before its point."""
    units = (pair for pair in _PREFIXES.items() if number >= pair[1])
    return next(units, ("", 1.0))


def _work(work: Mapping[str, Any], units: Mapping[str, tuple[str, float]]) -> Sequence[str]:
    return [f"{work[key] / size:,.{2 if prefix else 0}f}" for key, (prefix, size) in units.items()]


def _memory(memory: Mapping[str, Any], device: str) -> Iterator[str]:
    yield "memory:  while the step is learnt, then"
    for use, title in USES.items():
        usage = memory[use]
        if usage is not None:
            yield f"  {title}: {byte_size(usage['learning'])}, {byte_size(usage['then'])}"
    if memory["mapped"]:
        files = f"mapped, not counted: {byte_size(memory['mapped'])} of data files"
        data = f"in the host's memory, not counted: {byte_size(memory['mapped'])} of data"
        yield f"  {files if device == 'cpu' else data}"
    copies = memory["train"]["copies"]
    yield (
        f"  beside it Python: about {byte_size(memory['process'])}, and copies of "
        f"{byte_size(copies)} while the step is learnt"
    )


def _room(room: Mapping[str, Any]) -> str:
    largest, size = room["largest"], byte_size(room["bytes"])
    if largest is None:
        return f"room: {size}; what fits is not known"
    if not largest["size"]:
        alone = f"; Python and the engine alone take about {byte_size(room['process'])}"
        sentence = f"room: not even {largest['key']}={largest['least']} fits into {size}"
        return sentence + alone * bool(room["process"])
    more = ", all samples" if largest["most"] else ""
    return f"room: {largest['key']}={largest['size']} is the largest that fits into {size}{more}"


def _time(length: Mapping[str, Any]) -> str:
    evaluations = quantity(length["evaluations"], "evaluation")
    saves = quantity(length["checkpoints"], "checkpoint")
    return (
        f"time: {_span(length['seconds'])} in all; a step takes {_span(length['step'])}, each of "
        f"{evaluations} {_span(length['evaluation'])}, each of {saves} {_span(length['saving'])}"
    )


def _span(seconds: float) -> str:
    return f"{seconds:.3g} s"
