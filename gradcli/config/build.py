"""From a checked config to a job: data are loaded, and the model gets its first weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gradcli import engine
from gradcli.config import own_code
from gradcli.config.crosscheck import location_of
from gradcli.config.lora import adapt, select_linear
from gradcli.config.loss_fits import target_kind
from gradcli.config.losses import OUTPUTS
from gradcli.config.node import Path as Keys
from gradcli.config.planned import PlannedLayer, build_all
from gradcli.config.selection import select, select_state
from gradcli.config.target_scale import scale_of
from gradcli.config.value_origins import origins_of
from gradcli.data import LoadedData
from gradcli.data.targets import absent_classes, target_notes, with_targets
from gradcli.dataclass import dataclass
from gradcli.engine import nn, optim
from gradcli.engine.nn.lora import is_adapter
from gradcli.errors import ConfigError, DeviceError, ErrorGroup, GradcliError, OptionError
from gradcli.table import Column, lines
from gradcli.train.job import Job, as_they_are
from gradcli.train.metrics import direction_of
from gradcli.train.pretrained import State, check_source, take_over

if TYPE_CHECKING:
    from gradcli.config.load import Config

T = TypeVar("T")
Find = Callable[[nn.Module, Sequence[str], str], set[str]]


def build(config: Config, dataset: LoadedData | None = None) -> Job:
    """Load the data and build the model with the weights that the seed gives.

    A dataset without splits, which only knows the facts, does for new files.
    """
    dataset = dataset or config.data.load()  # it may unpack files in threads
    if config.code:
        dataset = own_code.beside_data(dataset, config.code)

    dataset = with_targets(dataset)
    absent = absent_classes(dataset.facts, dataset.splits)
    dataset = replace(dataset, notes=(*dataset.notes, *target_notes(dataset, absent)))
    job = replace(_job(config, dataset), origins=origins_of(config))
    return replace(job, absent=absent, fresh=lambda: _job(config, dataset))


def _job(config: Config, dataset: LoadedData) -> Job:
    engine.manual_seed(config.train.seed)
    return job_of(config, dataset)


def job_of(config: Config, dataset: LoadedData) -> Job:
    """Build the job for this data, on the device of new tensors."""
    model = build_all(config.model)
    _set_trainable(model, config)
    optimizer = _optimizer(model, config)
    metrics = {name: metric.instance for name, metric in config.metrics.items()}
    rising = direction_of(config.schedule.instance.metric or "", metrics) == "higher"
    begin = None
    if config.pretrained is not None:
        begin = _first_weights(take_over, model, optimizer, config)
    postprocess = config.loss.instance.postprocess.get(target_kind(config.facts), as_they_are)
    job = Job(
        name=config.name,
        model=model,
        loss=config.loss.instance.make(),
        total_weight=config.loss.instance.total_weight,
        postprocess=postprocess,
        outputs=OUTPUTS.get(postprocess, as_they_are),
        metrics=metrics,
        optimizer=optimizer,
        optimizer_name=config.optim.name,
        schedule=config.schedule.instance.schedule(config.steps, rising),
        dataset=dataset,
        settings=config.train,
        expect=config.expect,
        resolved=config.resolved,
        explicit=config.explicit,
        sources=config.sources,
        code=config.code,
        begin=begin,
        model_layers=layer_lines(config.model),
    )
    scale = scale_of(config.data, dataset.facts)
    return job if scale is None else job.on_scale(scale)


def _optimizer(model: nn.Module, config: Config) -> optim.Optimizer:
    try:
        optimizer: optim.Optimizer = config.optim.instance.optimizer(model)
    except OptionError as error:
        error.location = location_of(config.tree, "optim", "groups")
        raise
    return optimizer


@dataclass(frozen=True)
class ParameterSizes:
    """The sizes of parameters by name: of those that `freeze` and `lora` freeze, and of A and B."""

    frozen: Mapping[str, int] = field(default_factory=dict)
    adapters: Mapping[str, int] = field(default_factory=dict)


def check_model(config: Config) -> ParameterSizes:
    """Refuse patterns without a match, and first weights that `train` could not load.

    Returns the sizes of what the patterns freeze and add. Only the model knows names and shapes, so
    it is built if anything needs them.

    Raises:
        ErrorGroup: every such pattern, or what is wrong with the weights.
    """
    patterns = (*_lora_patterns(config), *_patterns(config))
    if config.pretrained is None and not any(some for _, some, _ in patterns):
        return ParameterSizes()
    model = _outline(config)
    if config.pretrained is not None:
        try:
            _first_weights(check_source, model, _optimizer(model, config), config)()
        except GradcliError as error:
            raise ErrorGroup([error]) from None
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    trainable = {name for name, p in model.named_parameters() if p.requires_grad}
    frozen = {name: size for name, size in sizes.items() if name not in trainable}
    adapters = {
        name: size for name, size in sizes.items() if name in trainable and is_adapter(name)
    }
    return ParameterSizes(frozen, adapters)


def _set_trainable(model: nn.Module, config: Config) -> None:
    """Add the matrices of `lora` and freeze what `freeze` names.

    Every pattern of the config is checked first.
    """
    errors = list(_misses(model, config, _lora_patterns(config)))
    if not errors:
        _adapt(model, config)
        errors = list(_misses(model, config, _patterns(config)))
    if errors:
        raise ErrorGroup(errors)
    frozen = select(model, config.freeze, "freeze")
    parameters = dict(model.named_parameters())
    for name in frozen:
        parameters[name].requires_grad_(False)
    if frozen and not any(parameter.requires_grad for parameter in parameters.values()):
        location = config.tree.map()["freeze"].location
        raise ErrorGroup(
            [ConfigError("freeze: nothing is left to train", code="E104", location=location)]
        )


def _adapt(model: nn.Module, config: Config) -> None:
    try:
        adapt(model, config.lora)
    except ConfigError as error:
        error.location = location_of(config.tree, "lora", "rank")
        raise ErrorGroup([error]) from None


def _misses(
    model: nn.Module, config: Config, lists: Iterable[tuple[Keys, Sequence[str], Find]]
) -> Iterator[GradcliError]:
    for keys, patterns, find in lists:
        for number, pattern in enumerate(patterns):
            try:
                find(model, [pattern], ".".join(map(str, keys)))
            except ConfigError as error:
                error.location = config.tree.at((*keys, number))[0].location
                yield error


def _lora_patterns(config: Config) -> Iterator[tuple[Keys, Sequence[str], Find]]:
    """Those that choose among the layers as the config has them."""
    if config.lora:
        yield ("lora", "match"), config.lora.match, select_linear
        yield ("lora", "train"), config.lora.train, select


def _patterns(config: Config) -> Iterator[tuple[Keys, Sequence[str], Find]]:
    """Every other list of patterns: its keys, its patterns, and what they select from."""
    yield ("freeze",), config.freeze, select
    for keys, patterns in config.optim.instance.patterns():
        yield ("optim", *keys), patterns, select
    if config.pretrained:
        yield ("pretrained", "layers"), config.pretrained.layers, select_state


def _outline(config: Config) -> nn.Module:
    """The model on meta, with its trainable parameters marked."""
    try:
        with engine.device("meta"):
            model = build_all(config.model)
            _set_trainable(model, config)
    except DeviceError:  # own code looks at numbers
        model = build_all(config.model)
        _set_trainable(model, config)
    return model


def _first_weights(
    use: Callable[[nn.Module, Path, set[str], State | None], T],
    model: nn.Module,
    optimizer: optim.Optimizer,
    config: Config,
) -> Callable[[], T]:
    """Bind `use` to the weights of `pretrained`; its errors point at `from`."""
    section = config.pretrained
    assert section is not None
    names = select_state(model, section.layers, "pretrained.layers")
    state = State(optimizer, config.optim.name, config.resolved) if section.optimizer else None

    def call() -> T:
        try:
            return use(model, Path(section.from_), names, state)
        except GradcliError as error:
            error.location = error.location or location_of(config.tree, "pretrained", "from")
            raise

    return call


def layer_lines(
    layers: Sequence[PlannedLayer], total: bool = False, width: int | None = None
) -> list[str]:
    """One line per layer: index, name, output shape and parameters; then the totals."""
    rows = [
        (layer.index, "  " * depth + layer.title, str(layer.output), f"{layer.parameters:,}")
        for layer, depth in _flatten(layers, 0)
    ]
    indices = max([5, *(len(row[0]) for row in rows)])
    if total:
        rows.append(("total", "", "", f"{sum(layer.parameters for layer in layers):,}"))
    columns = (
        Column(indices, gap=0),
        Column(28, "label", gap=2),
        Column(14, rank=1),
        Column(14),
    )
    return lines(columns, rows, width)


def _flatten(layers: Sequence[PlannedLayer], depth: int) -> Iterator[tuple[PlannedLayer, int]]:
    for layer in layers:
        yield layer, depth
        inside = layer.children
        if layer.kind == "repeat":  # every turn is the same
            inside = inside[: len(inside) // int(layer.fields["times"])]
        yield from _flatten(inside, depth + 1)
