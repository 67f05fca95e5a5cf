"""A config file as typed values: read, merged, resolved, checked as a whole; nothing is built."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from gradcli.config import (
    blocks,
    crosscheck,
    data_lints,
    loss_fits,
    number_labels,
    own_code,
    reach,
    target_scale,
)
from gradcli.config.containers import CONTAINERS
from gradcli.config.grouping import choose_optimizer
from gradcli.config.layer_names import reserved
from gradcli.config.layers import LAYERS
from gradcli.config.lints import lints
from gradcli.config.lora import Lora
from gradcli.config.losses import LOSSES
from gradcli.config.memory import TrainingMemory, fitting
from gradcli.config.merge import Reading, full, override
from gradcli.config.metrics import choose_metrics, task_of, written_metrics
from gradcli.config.node import MAX_VALUES, RUN_VALUES, ErrorReport, YamlNode
from gradcli.config.own_code import OwnCode
from gradcli.config.planned import PlannedLayer, written_layers
from gradcli.config.planner import Planner
from gradcli.config.references import References, fill_facts
from gradcli.config.room import HERE, Room
from gradcli.config.sample_prompt import prompt_fits
from gradcli.config.schedules import choose_schedule
from gradcli.config.schema import check, schema_of
from gradcli.config.sections import (
    MISPLACED,
    VERSION,
    NamedSection,
    Pretrained,
    choose,
    expectations,
    plain_value,
    settings,
    top,
)
from gradcli.config.tensor_spec import TensorSpec
from gradcli.config.trust import Trust
from gradcli.data import DATASETS, DataSpec, Source
from gradcli.data.dataset import without_data
from gradcli.dataclass import dataclass
from gradcli.errors import ErrorGroup, GradcliError, Location
from gradcli.train import pretrained
from gradcli.train.job import Expectation, TrainSettings, logged_every
from gradcli.train.metrics import METRICS

UNKNOWN = "E102"  # of errors: a name that no table has
# The names that own code may not take, by its kind.
RESERVED: dict[str, Collection[str]] = {
    "layer": reserved([*LAYERS, *CONTAINERS]),
    "dataset": DATASETS,
    "loss": LOSSES,
    "metric": METRICS,
}


@dataclass(frozen=True)
class Config:
    """A config in which every name is known, every value allowed and every shape fits.

    Attributes:
        data: the located source; its files exist.
        steps: updates of the whole run.
        resolved: every value, defaults included; written as YAML it loads to the same config.
        explicit: what the file and the overrides say, without defaults.
        sources: the files as written, the config itself first.
        code: own Python files by name, as they were run.
        freeze: patterns of the parameters that are not trained.
        pretrained: the first weights; `from_` is an absolute path of a file.
        lora: the thin matrices that are trained in place of the weights.
        root: the folder of the config; relative paths in it begin there.
        tree: what the files and the overrides say, with places.
        warnings: what is allowed and probably not meant.
        memory: what the training needs; None where that is not known or not asked for.
    """

    name: str
    data: Source
    facts: DataSpec
    model: tuple[PlannedLayer, ...]
    loss: NamedSection
    metrics: Mapping[str, NamedSection]
    optim: NamedSection
    schedule: NamedSection
    train: TrainSettings
    expect: tuple[Expectation, ...]
    steps: int
    resolved: dict[str, Any]
    explicit: dict[str, Any]
    sources: tuple[tuple[Path, str], ...]
    code: Mapping[str, str]
    freeze: tuple[str, ...]
    pretrained: Pretrained | None
    lora: Lora | None
    root: Path
    tree: YamlNode
    warnings: tuple[GradcliError, ...]
    memory: TrainingMemory | None = None


def load(
    path: Path,
    overrides: Sequence[str] = (),
    room: Room | None = HERE,
    runs: Path | None = Path("runs"),
    facts: DataSpec | None = None,
    trust: Trust | None = None,
) -> Config:
    """The config in `path` with `overrides` (KEY=VALUE) laid over it; `room` is where it runs.

    Without a room it is not to be trained, and may need any memory. `pretrained.from` may name a
    run in the folder `runs`; of a run that has begun, None, it need not be there any more. With
    the facts of its data, the data need not be there. `trust` decides on own code; without it
    only that of this user's trainings is run.

    Raises:
        ErrorGroup: every mistake in it, in the order of the file.
    """
    report = ErrorReport(RUN_VALUES if runs is None else MAX_VALUES)
    try:
        config = _Loading(path, report, runs, facts, trust or Trust()).load(overrides)
    except ErrorGroup:
        raise
    except GradcliError as error:
        report.errors.append(error)
        config = None
    if report.errors or config is None:
        raise ErrorGroup(_sort(report.errors))
    return config if room is None else replace(config, memory=fitting(config, room))


def _sort(errors: list[GradcliError]) -> list[GradcliError]:
    """By exit code (what is written before what lies on the disk), then by place."""
    unique = {(error.message, str(error.location)): error for error in errors}
    return sorted(
        unique.values(),
        key=lambda error: (
            error.exit_code,
            error.location.file if error.location else "",
            (error.location.line, error.location.column) if error.location else (0, 0),
        ),
    )


class _Loading:
    """One config on its way from text to values."""

    def __init__(
        self,
        path: Path,
        report: ErrorReport,
        runs: Path | None,
        facts: DataSpec | None,
        trust: Trust,
    ) -> None:
        self.path = path
        self.runs = runs
        self.report = report
        self.facts = facts
        self.trust = trust
        self.reading = Reading(report)

    def load(self, overrides: Sequence[str]) -> Config | None:
        report = self.report
        tree = override(self.reading.file(self.path), overrides, report)
        files = tree.map().get("code")
        code = own_code.read(files, self.path.parent, RESERVED, report, self.trust)
        tree = blocks.expand(tree, {*RESERVED["layer"], *code.layers}, report)
        references = References(tree, report)
        root = references.resolve(tree)
        crosscheck.unused_vars(tree, references.names, report)
        values = check(root, schema_of(top), "", report, elsewhere=MISPLACED)
        self._version(root)
        data = self._data(root, code)
        source, facts = (data[0].instance, data[1]) if data else (None, None)
        root = fill_facts(root, facts, report)
        sections = root.map()
        loss = choose("loss", sections.get("loss"), {**LOSSES, **code.losses}, report)
        optim = choose_optimizer(sections.get("optim"), report)
        schedule = choose_schedule(
            sections.get("schedule", YamlNode("constant", root.location)), report
        )
        train = settings(sections.get("train"), report)
        pretrained = self._pretrained(sections.get("pretrained"))
        lora = self._lora(sections.get("lora"))
        task = task_of(facts, source) if facts else None
        metrics = choose_metrics(sections.get("metrics"), task, report, code.metrics)
        expect = expectations(sections.get("expect"), report)
        layers = self._model(root, facts, loss, code)
        if source and facts and loss and layers:
            source = target_scale.with_scale(root, source, facts, loss, layers, report)
        if train:
            target_scale.figures_lint(root, source, train, expect, report)
            prompt_fits(root, train, source, facts, report)
        if facts and train and schedule:
            steps = self._together(root, facts, train, layers, schedule, loss)
            instances = {name: metric.instance for name, metric in metrics.items()}
            crosscheck.watched(
                root, train, expect, instances, facts, schedule.instance.metric, report
            )
        if layers:
            crosscheck.parameters(layers, crosscheck.location_of(root, "model"), report)
        if layers and facts and loss and values and not report.errors:
            reach.weights_lint(layers, lora, values["freeze"], facts, report)
            reach.outputs_lint(root, loss, layers[-1], facts, report)
        if code.broken:  # an unknown name may be one of its own
            report.errors[:] = [error for error in report.errors if error.code != UNKNOWN]
        if report.errors:
            return None
        assert values and data and source and facts and loss and optim and schedule and train
        assert layers and steps is not None
        name = values["name"] if "name" in sections else _stem(self.path)
        config = Config(
            name=name,
            data=source,
            facts=facts,
            model=tuple(layers),
            loss=loss,
            metrics=metrics,
            optim=optim,
            schedule=schedule,
            train=replace(train, log_every=logged_every(train, steps)),
            expect=expect,
            steps=steps,
            resolved={},
            explicit=root.plain(),
            sources=tuple(self.reading.sources),
            code=code.files,
            freeze=tuple(values["freeze"]),
            pretrained=pretrained,
            lora=lora,
            root=self.path.parent,
            tree=root,
            warnings=tuple(report.warnings),
        )
        config.resolved.update(_resolve(config, data[0].name))
        return config

    def _pretrained(self, node: YamlNode | None) -> Pretrained | None:
        """Where first weights come from; that must be there, unless the run has begun."""
        if node is None:
            return None
        schema = schema_of(Pretrained)
        values = check(node, schema, "pretrained.", self.report)
        if values is None:
            return None
        section = Pretrained(**{schema.names[key]: value for key, value in values.items()})
        if self.runs is None:
            return replace(section, from_=os.path.abspath(self.path.parent / section.from_))  # noqa: PTH100
        try:
            file = pretrained.locate(section.from_, self.path.parent, self.runs)
        except GradcliError as error:
            error.location = node.map()["from"].location
            self.report.errors.append(error)
            return None
        return replace(section, from_=str(file.resolve()))

    def _lora(self, node: YamlNode | None) -> Lora | None:
        if node is None:
            return None
        values = check(node, schema_of(Lora), "lora.", self.report)
        return None if values is None else Lora(**values)

    def _version(self, root: YamlNode) -> None:
        node = root.map().get("gradcli")
        if node and type(node.value) is int and node.value != VERSION:
            self.report.error(
                "E104",
                f"config format {node.value} is not known; this gradcli reads gradcli: {VERSION}",
                node.location,
            )

    def _data(self, root: YamlNode, code: OwnCode) -> tuple[NamedSection, DataSpec] | None:
        """The data source with its paths, and what it says about itself."""
        node = root.map().get("data")
        table = ChainMap[str, Any](dict(code.datasets), DATASETS)
        choice = choose("data", node, table, self.report)
        if choice is None or node is None:
            return None
        if self.facts is not None:
            source = without_data(choice.instance, self.path.parent)
            return NamedSection(choice.name, choice.values, source), self.facts
        try:
            source = choice.instance.locate(self.path.parent)
            facts = source.facts()
        except GradcliError as error:
            error.location = error.location or _spoken_of(full(node), error.message)
            self.report.errors.append(error)
            return None
        return NamedSection(choice.name, choice.values, source), facts

    def _model(
        self, root: YamlNode, facts: DataSpec | None, loss: NamedSection | None, code: OwnCode
    ) -> list[PlannedLayer] | None:
        """All layers, or None when one is wrong."""
        node = root.map().get("model")
        if node is None or not node.list():
            return None
        before = len(self.report.errors)
        vocab = facts.vocab if facts and facts.input_kind == "index" else None
        spec = TensorSpec(facts.input, vocab) if facts else None
        layers, output = Planner(self.report, code.layers).plan(node, spec)
        if facts is None or output is None or len(self.report.errors) > before:
            return None
        lints(layers, self.report)
        if loss:
            loss_fits.end_lint(root, loss, layers[-1].leaf(-1), self.report)
            loss_fits.output_fits(root, loss, facts, layers, output, self.report)
            number_labels.lint(root, facts, self.report)
            data_lints.lint(root, facts, self.report)
        return layers

    def _together(
        self,
        root: YamlNode,
        facts: DataSpec,
        train: TrainSettings,
        layers: list[PlannedLayer] | None,
        schedule: NamedSection,
        loss: NamedSection | None,
    ) -> int | None:
        if loss and train.sampler is not None:
            crosscheck.sampler_fits(root, facts, loss, self.report)
        flat = [deep for layer in layers or [] for deep in layer.flat()]
        steps = crosscheck.lengths(root, train, flat, facts.sizes.get("train", 0), self.report)
        if steps is not None:
            crosscheck.schedule_fits(root, schedule, steps, self.report)
        return steps


def _spoken_of(section: YamlNode, message: str) -> Location:
    """Where the key stands that a message begins with, or the value that it quotes."""
    key = message.partition(" ")[0].rstrip(":")
    if key in section.keys:
        return section.keys[key]
    return section.location_quoted_in(message) or section.map()["name"].location


def _stem(path: Path) -> str:
    """A run's name from the file's, where the config gives none."""
    letters = [c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in path.stem]
    return "".join(letters).strip("-")[:100] or "run"


def _resolve(config: Config, data_name: str) -> dict[str, Any]:
    """Every value of the config, as plain YAML."""
    keys = [f.name for f in fields(config.data) if f.init]  # type: ignore[arg-type]
    data = {key: plain_value(getattr(config.data, key)) for key in keys}
    return {
        "gradcli": VERSION,
        "name": config.name,
        **({"code": list(config.code)} if config.code else {}),
        "data": {"name": data_name, **_without_none(data)},
        "model": written_layers(config.model),
        **_pretrained_values(config),
        **({"lora": plain_value(asdict(config.lora))} if config.lora else {}),
        **({"freeze": list(config.freeze)} if config.freeze else {}),
        "loss": config.loss.as_dict(),
        "metrics": written_metrics(config.metrics),
        "optim": config.optim.as_dict(),
        "schedule": config.schedule.as_dict(),
        "train": _without_none(asdict(config.train)),
        "expect": {e.metric: f"{e.comparison} {e.value!r}" for e in config.expect},
    }


def _pretrained_values(config: Config) -> dict[str, Any]:
    if config.pretrained is None:
        return {}
    section = schema_of(Pretrained)
    values = {key: getattr(config.pretrained, name) for key, name in section.names.items()}
    return {"pretrained": plain_value(values)}


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
