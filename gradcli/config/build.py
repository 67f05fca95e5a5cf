"""From a checked config to a job: the only place of the config package that touches the engine."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.config.crosscheck import steps_of
from gradcli.config.load import Config
from gradcli.config.planner import PlannedLayer
from gradcli.train.job import Job


def build(config: Config) -> Job:
    """Load the data and build the model with the weights that the seed gives."""
    dataset = config.data.load()  # it may unpack files while it imports the engine

    from gradcli import engine
    from gradcli.engine import nn

    engine.manual_seed(config.train.seed)
    model = nn.Sequential(*(layer.make() for layer in config.model))
    plan = config.schedule.made
    # A run without steps has no points to mark; all of them would be step 0.
    marks = [steps_of(mark, config.steps) for mark in plan.marks if config.steps]
    return Job(
        name=config.name,
        model=model,
        loss=config.loss.made.make(),
        metrics=config.metrics,
        optimizer=config.optim.made(model.parameters()),
        optimizer_name=config.optim.name,
        schedule=plan.make(steps_of(plan.warmup, config.steps), marks, config.steps),
        dataset=dataset,
        settings=config.train,
        expect=config.expect,
        resolved=config.resolved,
        sources=config.sources,
        model_layers=layer_lines(config.model),
    )


def layer_lines(layers: Sequence[PlannedLayer], depth: int = 0) -> list[str]:
    """One line a layer: index, name, output shape, parameters."""
    lines: list[str] = []
    for layer in layers:
        title = "  " * depth + layer.title
        lines.append(f"{layer.index:>5}  {title:<28} {layer.output!s:>14} {layer.parameters:>14,}")
        inside = layer.children
        if layer.kind == "repeat":  # every turn is the same
            inside = inside[: len(inside) // int(layer.fields["times"])]
        lines += layer_lines(inside, depth + 1)
    return lines
