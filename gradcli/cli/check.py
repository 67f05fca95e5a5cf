"""`gradcli check`: every mistake of configs, the layers of the right ones, no training."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli import completion, options, output
from gradcli.dataclass import dataclass
from gradcli.errors import ErrorGroup
from gradcli.wording import byte_size, quantity, verb

if TYPE_CHECKING:
    from gradcli.config import Config
    from gradcli.config.build import ParameterSizes
    from gradcli.config.trust import Trust
    from gradcli.train.value_origins import ValueOrigin

WIDEST = 40  # cells of a column of origins
MOST_NAMES = 4  # names of frozen parameters on a line


@click.command("check")
@click.argument("configs", nargs=-1, type=options.path, shell_complete=completion.configs)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of configs, for editors.")
@click.option(
    "--markdown",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Print FILE, such as docs/config.md, with its tables of keys updated.",
)
@click.option("--resolved", is_flag=True, help="Print the config as YAML, with all defaults.")
@click.option("--origin", is_flag=True, help="Print where each value of the config comes from.")
@options.overrides
@options.trust_code
@options.json
@options.basic
@click.pass_context
def command(
    ctx: click.Context,
    configs: tuple[Path, ...],
    schema: bool,
    markdown: Path | None,
    resolved: bool,
    origin: bool,
    overrides: tuple[str, ...],
    trust_code: bool,
    as_json: bool,
) -> None:
    """Check CONFIGS for mistakes; print the layers of each valid config."""
    if schema:
        _print_schema(ctx, bool(configs), resolved or origin)
        return
    if markdown is not None:
        from gradcli.config.reference import renewed

        output.say_as_is(renewed(markdown.read_text(encoding="utf-8")).rstrip("\n"))
        return
    if resolved and origin:
        raise click.UsageError("--resolved and --origin print another table each: choose one", ctx)
    if not configs:
        raise click.UsageError("check needs a config file, or --schema", ctx)
    trust = options.trust(trust_code)
    results = [_check(path, overrides, trust) for path in configs]
    code = next((result.error.exit_code for result in results if result.error), 0)
    if as_json:
        objects = [_as_object(result, origin) for result in results]
        output.say_json({"configs": objects, "exit_code": code})
    else:
        for result in results:
            _show(result, _show_resolved if resolved else _show_origins if origin else _show_layers)
    ctx.exit(code)


def _print_schema(ctx: click.Context, configs: bool, tables: bool) -> None:
    """The JSON Schema, which is of no config."""
    if configs:
        raise click.UsageError("--schema is the same for all configs: leave them out", ctx)
    if tables:
        raise click.UsageError("--schema prints no config: leave --resolved and --origin out", ctx)
    from gradcli.config.json_schema import json_schema

    output.say_as_is(json.dumps(json_schema(), ensure_ascii=False))


@dataclass(frozen=True)
class CheckResult:
    """A config that is right, with the sizes of some parameters, or what is wrong."""

    path: Path
    config: Config | None = None
    sizes: ParameterSizes | None = None
    error: ErrorGroup | None = None


def _check(path: Path, overrides: tuple[str, ...], trust: Trust) -> CheckResult:
    from gradcli.config import check_model, load

    try:
        config = load(path, overrides, trust=trust)
        return CheckResult(path, config, check_model(config))
    except ErrorGroup as error:
        return CheckResult(path, error=error)


def _as_object(check_result: CheckResult, with_origins: bool = False) -> dict[str, Any]:
    config, error = check_result.config, check_result.error
    result: dict[str, Any] = {"config": str(check_result.path), "ok": error is None}
    if error:
        result["errors"] = [output.as_object(each) for each in error.errors]
    if config:
        if config.code:
            from gradcli.config.own_code import hashes

            result["code"] = hashes(config.code)
        result["frozen"] = list(check_result.sizes.frozen) if check_result.sizes else []
        result["warnings"] = [output.as_object(each) for each in config.warnings]
        result["parameters"] = sum(layer.parameters for layer in config.model)
        result["steps"] = config.steps
        result["layers"] = [
            {
                "index": layer.index,
                "layer": layer.title,
                "output": list(layer.output.shape),
                "parameters": layer.parameters,
            }
            for top in config.model
            for layer in top.flat()
        ]
        if config.memory:
            result["memory"] = asdict(config.memory)
        result["resolved"] = config.resolved
    if config and with_origins:
        from gradcli.config.value_origins import origins_of
        from gradcli.train.value_origins import as_json

        result["origins"] = as_json(origins_of(config))
    return result


def _show(result: CheckResult, show: Callable[[CheckResult, Config], None]) -> None:
    config, error = result.config, result.error
    if error:
        output.errors(error.errors, error.exit_code, as_json=False)
        return
    assert config is not None
    output.warnings(config.warnings)
    show(result, config)


def _show_resolved(result: CheckResult, config: Config) -> None:
    """Print the config as YAML."""
    from gradcli.train.yaml_text import to_yaml

    output.say_as_is(to_yaml(config.resolved).rstrip("\n"))


def _show_origins(result: CheckResult, config: Config) -> None:
    """Print a line for each value and its origin."""
    from gradcli.config.value_origins import origins_of
    from gradcli.table import Column, lines

    rows = [
        (key, _format(origin.value), _from(origin)) for key, origin in origins_of(config).items()
    ]
    sizes = [min(WIDEST, max(len(row[i]) for row in rows)) for i in range(2)]
    columns = (
        Column(sizes[0], "name", gap=0),
        Column(sizes[1], "text", gap=2, rank=1),
        Column(0, "label", gap=2),
    )
    for line in lines(columns, rows, output.width(sys.stdout)):
        output.say(line)


def _format(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _from(origin: ValueOrigin) -> str:
    """`default`, or the place, and that this is a file which the config extends."""
    note = " (extended)" if origin.origin == "extends" else ""
    return f"{origin.place or origin.origin}{note}"


def _show_sizes(sizes: ParameterSizes) -> None:
    """Print what is frozen and what LoRA adds."""
    if sizes.frozen:
        names = list(sizes.frozen)
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        total = sum(sizes.frozen.values())
        output.say(f"frozen: {total:,} of them, in {', '.join(names[:MOST_NAMES])}{more}")
    if sizes.adapters:
        total, layers = sum(sizes.adapters.values()), len(sizes.adapters) // 2
        output.say(f"lora: {total:,} more, in A and B of {quantity(layers, 'linear layer')}")


def _show_layers(result: CheckResult, config: Config) -> None:
    """Print the layers and the memory that the training needs."""
    from gradcli.config.build import layer_lines

    samples = ", ".join(f"{split} {size}" for split, size in config.facts.sizes.items())
    samples += verb(max(config.facts.sizes.values()), " sample", " samples")
    steps = quantity(config.steps, "step")
    output.say(f"{result.path}: {config.name}, {samples}, {steps}", "heading")
    for line in layer_lines(config.model, total=True, width=output.width(sys.stdout)):
        output.say(line)
    if result.sizes:
        _show_sizes(result.sizes)
    if config.memory:
        persistent, arena = byte_size(config.memory.persistent), byte_size(config.memory.arena)
        output.say(
            f"memory: {persistent} of weights, their gradients, the optimizer and data", indent=8
        )
        output.say(f"        {arena} of a step's intermediates", indent=8)
        if config.memory.mapped:
            output.say(f"        mapped, not counted: {byte_size(config.memory.mapped)}", indent=8)
