"""What the way back from the loss reaches: the weights, and the outputs of the model.

Layers of the table let gradients through, but for a few that give the same for every input in the
shapes of a model. Own layers are asked: the model runs once on `meta`, and backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.config.layers import LAYERS
from gradcli.config.lora import Lora, adapt
from gradcli.config.loss_fits import classes_of, target_kind
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.config.planned import PlannedLayer, build_all
from gradcli.config.sections import NamedSection
from gradcli.config.selection import select
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor, nn
from gradcli.wording import join_words, quantity, verb

if TYPE_CHECKING:
    from gradcli.data import DataSpec

LARGEST = 10_000_000  # parameters of a model that is run on the CPU where `meta` will not do
NUMBERS = 1_000_000  # of outputs on which a loss is tried
MOST_NAMES = 3
SOFTMAXES = {"softmax", "log_softmax", "softmin"}


def weights_lint(
    layers: Sequence[PlannedLayer],
    lora: Lora | None,
    freeze: Sequence[str],
    facts: DataSpec,
    report: ErrorReport,
) -> None:
    """Warn of weights that no gradient reaches, once for what cuts their way."""
    flat = {layer.index: layer for top in layers for layer in top.flat()}
    _one_step(flat.values(), report)
    cuts = {index: reason for index, layer in flat.items() if (reason := _constant(layer))}
    if not cuts and all(layer.kind in LAYERS or layer.children for layer in flat.values()):
        return
    for device in ("meta", "cpu"):
        if device == "cpu" and sum(layer.parameters for layer in layers) > LARGEST:
            return
        try:
            walk = _walk_back(layers, lora, freeze, facts, cuts, device)
        except Exception:  # own code that looks at numbers, or takes no zeros
            continue
        _say(walk, flat, cuts, report)
        return


def _constant(layer: PlannedLayer) -> str:
    """Why a layer of the table gives the same whatever comes in; empty where it does not."""
    shape, fields = layer.input.shape, layer.fields
    if layer.kind in SOFTMAXES and shape[fields["dim"]] == 1:
        return f"is taken over a single value (dim: {fields['dim']})"
    values = {
        "layer_norm": math.prod(shape if len(shape) == 3 else shape[-1:]),
        "group_norm": math.prod(shape) // fields["groups"] if layer.kind == "group_norm" else 0,
        "instance_norm": math.prod(shape[1:]),
    }
    return "normalises a single value" if values.get(layer.kind) == 1 else ""


def _one_step(layers: Collection[PlannedLayer], report: ErrorReport) -> None:
    """Warn of recurrent layers that never recur."""
    locations = set()
    for layer in layers:
        recurs = layer.kind in ("lstm", "gru", "rnn")
        if recurs and layer.input.shape[0] == 1 and layer.location not in locations:
            locations.add(layer.location)
            report.warn(
                "W110",
                f"layer {layer.index}, {layer.title}: its input has one step, so its recurrent "
                "weights get no gradient",
                layer.location,
                caret="use linear, or more steps",
            )


@dataclass(frozen=True)
class _Walk:
    """What came of a way back.

    Attributes:
        missing: by the index of a layer, how many of its parameters got none, and of how many.
        order: the layers in the order in which they ran, by their indices.
        cutters: those out of which no gradient comes, although one could have gone in.
    """

    missing: dict[str, tuple[int, int]]
    order: list[str]
    cutters: set[str]


def _walk_back(
    layers: Sequence[PlannedLayer],
    lora: Lora | None,
    freeze: Sequence[str],
    facts: DataSpec,
    cuts: Collection[str],
    device: str,
) -> _Walk:
    state = engine.get_rng_state()
    try:
        with engine.device(device), engine.enable_grad():
            model = build_all(layers)
            adapt(model, lora)
            for name in select(model, freeze, "freeze"):
                model.get_parameter(name).requires_grad_(False)
            walk = _Walk({}, [], set(cuts))
            modules = {
                module.layer_title.partition(" ")[0]: module
                for module in model.modules()
                if "layer_title" in vars(module)
            }
            for index, module in modules.items():
                _follow(module, index, walk)
            dtype = engine.int64 if facts.input_kind == "index" else engine.float32
            outputs = model(engine.zeros(2, *facts.input, dtype=dtype))
            if outputs.requires_grad:
                outputs.sum().backward()
            for index, module in modules.items():
                _count(module, index, walk)
        return walk
    finally:
        engine.set_rng_state(state)


def _follow(module: nn.Module, index: str, walk: _Walk) -> None:
    """Note when a layer runs and whether it cuts: its output is the same for all inputs."""

    def before(_: nn.Module, args: Any) -> Any:
        walk.order.append(index)
        return tuple(tensor.detach() for tensor in args) if index in walk.cutters else None

    def behind(_: nn.Module, args: Any, output: Tensor) -> None:
        if args[0].requires_grad and not output.requires_grad:
            walk.cutters.add(index)

    module.register_forward_pre_hook(before)
    module.register_forward_hook(behind)


def _count(module: nn.Module, index: str, walk: _Walk) -> None:
    if any("layer_title" in vars(inner) for inner in list(module.modules())[1:]):
        return  # it holds layers
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    missing = sum(parameter.grad is None for parameter in parameters)
    if missing:
        walk.missing[index] = missing, len(parameters)


def _say(
    walk: _Walk, flat: dict[str, PlannedLayer], cuts: dict[str, str], report: ErrorReport
) -> None:
    groups: dict[str, list[str]] = {}
    for index, (missing, all_) in walk.missing.items():
        cutter = _cutter(index, walk) if missing == all_ else None
        groups.setdefault(cutter or index, []).append(index)
    locations = set()
    for cutter, indices in groups.items():
        layer = flat[cutter]
        if layer.location in locations:
            continue  # another turn of a repeat
        locations.add(layer.location)
        missing, all_ = walk.missing.get(cutter, (0, 0))
        if cutter in walk.cutters and (missing == all_ or indices != [cutter]):
            reason = cuts.get(cutter, "lets no gradient through")
            message = f", {reason}: the weights of {_names_of(indices, flat)} get none"
            cure = "change or remove it, or freeze these weights"
        else:
            gets = verb(missing, "gets", "get")
            message = f": {missing} of its {quantity(all_, 'parameter')} {gets} no gradient"
            cure = "use them without detach(), argmax() or round()"
        report.warn(
            "W110", f"layer {layer.index}, {layer.title}{message}", layer.location, caret=cure
        )


def _cutter(index: str, walk: _Walk) -> str | None:
    """The first layer from this one on that cuts; None if this layer itself loses gradients."""
    later = walk.order[walk.order.index(index) :] if index in walk.order else []
    return next((layer for layer in later if layer in walk.cutters), None)


def _names_of(indices: Sequence[str], flat: dict[str, PlannedLayer]) -> str:
    """`layer 1, linear 16` or `layers 1, 3, 5, ...`."""
    if len(indices) == 1:
        return f"layer {indices[0]}, {flat[indices[0]].title},"
    return f"layers {join_words(indices, MOST_NAMES)}"


def outputs_lint(
    root: YamlNode, loss: NamedSection, last: PlannedLayer, facts: DataSpec, report: ErrorReport
) -> None:
    """Warn of outputs that never change the loss, because of own code or weights of 0."""
    if loss.instance.attempt is None and 0 not in loss.values.get("weight", ()):
        return
    shape = last.output.shape
    blind = list(_blind_outputs(loss.instance.make, shape, facts)) if shape else []
    if not blind:
        return
    along = shape[-1] if target_kind(facts) == "labels" else math.prod(shape)
    report.warn(
        "W114",
        f"loss '{loss.name}' never sees {len(blind)} of the {quantity(along, 'output')} of layer "
        f"{last.index}, {last.title}: {join_words(map(str, blind), MOST_NAMES)}, counted from 0",
        root.map()["loss"].location,
        caret="use all of them, or let the model have fewer",
    )


def _blind_outputs(
    make: Callable[[], Callable[[Tensor, Tensor], Tensor]], shape: tuple[int, ...], facts: DataSpec
) -> Iterator[int]:
    """The outputs with a gradient of 0 at many random outputs, large and small."""
    labels = target_kind(facts) == "labels"
    classes = classes_of(facts) or 1
    batch = max(16, 4 * classes // max(math.prod(facts.target), 1))
    if batch * math.prod(shape) > NUMBERS:
        return
    state = engine.get_rng_state()
    try:
        with engine.device("cpu"), engine.enable_grad():
            engine.manual_seed(0)
            total = None
            for scale in (0.1, 1.0, 10.0):
                outputs = (engine.randn(batch, *shape) * scale).requires_grad_()
                if labels:
                    count = batch * math.prod(facts.target)
                    flat = engine.arange(count, dtype=engine.int64) % classes
                    targets = flat.reshape(batch, *facts.target)
                else:
                    targets = engine.rand(batch, *facts.target)
                make()(outputs, targets).backward()
                assert outputs.grad is not None
                rows = outputs.grad.reshape(-1, shape[-1] if labels else math.prod(shape))
                hits = (rows != 0).sum(0)
                total = hits if total is None else total + hits
            assert total is not None
            yield from (index for index, count in enumerate(total.tolist()) if count == 0)
    except Exception:  # such numbers may be none that it takes: then nobody knows
        return
    finally:
        engine.set_rng_state(state)
