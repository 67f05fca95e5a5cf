"""Every layer that YAML knows works step by step, or is named as what keeps a model from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import planning
import pytest

from gradcli import engine
from gradcli.config import load
from gradcli.config.containers import CONTAINERS
from gradcli.config.layers import LAYERS
from gradcli.config.load import Config
from gradcli.config.planned import PlannedLayer, build_all
from gradcli.config.planner import layer_schema
from gradcli.config.tensor_spec import TensorSpec
from gradcli.engine import nn
from gradcli.engine.nn import activation
from gradcli.engine.nn.generation import cache_obstacle, generate
from gradcli.errors import ErrorGroup

Write = Callable[..., Path]
ROOT = Path(__file__).parents[2]
TEXTS = [path for path in sorted((ROOT / "configs").rglob("*.yaml"))
         if "name: text" in path.read_text()]  # fmt: skip
STEPS, VOCAB = 12, 7
SIGNALS = [
    TensorSpec((STEPS,), VOCAB),
    TensorSpec((STEPS, 8)),
    TensorSpec((STEPS, 2, 4)),
    TensorSpec((STEPS, 4, 4)),
]
# A value for each key that some layer requires; a layer with another one fails until it is here.
REQUIRED: dict[str, Any] = {
    "out": 6, "kernel": 2, "heads": 2, "groups": 2, "size": 2, "factor": 2, "dim": 6, "cap": 2.0,
    "threshold": 0.1, "shape": (2 * STEPS, 4),
}  # fmt: skip
MORE: dict[str, dict[str, Any]] = {"upsample": {"scale": 2.0}}  # one of two is required


def values_of(name: str, hint: Any) -> list[Any]:
    """What an option may be, as far as its kind of work depends on it."""
    if hint is bool:
        return [False, True]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [-2, -1, 0, 1] if name == "dim" and hint is int else []


def uses(kind: str) -> Iterator[dict[str, Any]]:
    """The keys of a layer: those required, and each option with each value once."""
    schema = layer_schema(kind)
    needed = {key for key, field in schema.model.model_fields.items() if field.is_required()}
    fields = {key: REQUIRED[key] for key in needed} | MORE.get(kind, {})
    yield fields
    for name, hint in schema.hints.items():
        for value in values_of(name, hint):
            yield {**fields, name: value}


def modules(kind: str) -> Iterator[tuple[TensorSpec, dict[str, Any], nn.Module]]:
    for spec in SIGNALS:
        for fields in uses(kind):
            try:
                [plan] = planning.planned(spec, {kind: fields})
            except ErrorGroup:
                continue  # it takes no such spec
            yield spec, fields, build_all([plan]).double().eval()


def inputs(spec: TensorSpec) -> engine.Tensor:
    if spec.vocab:
        return engine.randint(0, spec.vocab, (2, *spec.shape))
    return engine.randn(2, *spec.shape, dtype=engine.float64)


def difference(model: nn.Module, x: engine.Tensor, cut: tuple[int, ...]) -> float:
    """How far the model in portions is from the model on all steps at once."""
    expected, cache = model(x), nn.KeyValueCache(model, x.shape[1])
    output = engine.cat([cache(part) for part in x.split(cut, 1)], 1)
    assert output.shape == expected.shape
    return float((output - expected).abs().amax().item() / expected.abs().amax().item())


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_is_the_same_in_portions_or_is_named(kind: str) -> None:
    engine.manual_seed(2)
    made = list(modules(kind))
    assert made, "no spec of this test fits it"
    for spec, fields, model in made:
        reason = cache_obstacle(model)
        if reason:
            assert reason.startswith("layer '0"), fields
        else:
            for cut in ((1,) * STEPS, (5, 1, 1, 5)):
                assert difference(model, inputs(spec), cut) < 1e-12, fields


# Layers of lines and images: of a text they would treat each step's numbers as a line.
OF_LINES = {
    "adaptive_avg_pool1d",
    "adaptive_max_pool1d",
    "avg_pool1d",
    "instance_norm",
    "max_pool1d",
    "pad",
    "prelu",  # per_channel
    "upsample",
}


@pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind not in OF_LINES])
def test_a_layer_that_sees_no_later_steps_is_cached(kind: str) -> None:
    engine.manual_seed(2)
    for spec, fields, model in modules(kind):
        if spec.shape == (STEPS, 8) and cache_obstacle(model):
            assert not looks_back_only(model, spec), fields


def looks_back_only(model: nn.Module, spec: TensorSpec) -> bool:
    x = inputs(spec)
    expected = model(x)
    other = engine.cat([x[:, :5], inputs(spec)[:, 5:]], 1)
    y = model(other)
    return y.shape[1] == STEPS and y[:, :5].tolist() == expected[:, :5].tolist()


def test_every_activation_is_cached_as_it_is_written_first() -> None:
    others = {"linear", "embed", "layer_norm", "rms_norm", "dropout", "dropout1d", "identity",
              "positions", "attention", "transformer", "lstm", "gru", "rnn"}  # fmt: skip
    activations = 0
    for kind in LAYERS:
        _, fields, model = next(modules(kind))
        of_its_kind = inspect.getmodule(type(model[0])) is activation
        activations += of_its_kind
        if of_its_kind or kind in others:
            assert cache_obstacle(model) == "", fields
    assert activations > 20


HELD: dict[str, list[str]] = {
    "repeat": ["repeat: {times: 2, layers: [attention: 2, relu]}"],
    "block": ["block: {layers: [attention: 2, relu]}"],
    "residual": [
        "residual: {layers: [attention: 2]}",
        "residual: {layers: [linear: 6], shortcut: [linear: 6]}",
    ],
    "parallel": [
        "parallel: {branches: [[linear: 6], [attention: 2]], dim: -1}",
        "parallel: {branches: [[linear: 6], [attention: 2]], dim: 1}",
        "parallel: {branches: [[attention: 2], []], join: add}",
    ],
}


def planned(config_file: Write, *layers: str) -> nn.Module:
    """A model of text with 8 steps: these layers behind an embedding of 12, and a head."""
    listed = "".join(f"  - {layer}\n" for layer in ("embed: 12", *layers))
    path = config_file(
        ("  - flatten\n  - linear: 16\n  - relu\n", listed),
        ("fake", "fake, kind: text"),
        ("linear: {out: $data.classes, name: head}", "linear: $data.vocab"),
    )
    return model_of(load(path))


def model_of(config: Config) -> nn.Module:
    """The model, with no more than two turns of what it repeats."""
    layers: list[PlannedLayer] = []
    for layer in config.model:
        turns = layer.fields["times"] if layer.kind == "repeat" else 1
        layers += layer.children[: 2 * len(layer.children) // turns] if turns > 2 else [layer]
    engine.manual_seed(4)
    return build_all(layers).double().eval()


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_container_is_the_same_in_portions(config_file: Write, kind: str) -> None:
    for layer in HELD[kind]:
        model = planned(config_file, layer)
        x = engine.randint(0, 65, (2, 8))
        for cut in ((1,) * 8, (3, 1, 4)):
            assert difference(model, x, cut) < 1e-12, layer


def test_branches_one_behind_the_other_in_time_are_named(config_file: Write) -> None:
    layers = "parallel: {branches: [[relu], [tanh]], dim: 0}", "glu: {dim: 0}"
    assert "'1' (Parallel) works along dim=1" in cache_obstacle(planned(config_file, *layers))


def test_what_a_container_holds_is_named_by_its_place(config_file: Write) -> None:
    for layer, place in (
        ("repeat: {times: 2, layers: [relu, group_norm: 2]}", "1.1"),
        ("residual: {layers: [relu], shortcut: [softmax: {dim: 0}]}", "1.shortcut.0"),
        ("parallel: {branches: [[relu], [attention: {heads: 2, causal: false}]], join: add}",
         "1.1.0"),
    ):  # fmt: skip
        assert cache_obstacle(planned(config_file, layer)).startswith(f"layer '{place}' ")


LLAMA = (
    "repeat: {times: 2, layers: ["
    "residual: {layers: [rms_norm, "
    "attention: {heads: 3, kv_heads: 1, rotary: true, bias: false}]}, "
    "residual: {layers: [rms_norm, linear: {out: 48, bias: false}, swiglu, "
    "linear: {out: 12, bias: false}]}]}",
    "rms_norm: {eps: 1e-6}",
)
NANOCHAT = (
    "rms_norm",
    "repeat: {times: 2, layers: ["
    "residual: {layers: [rms_norm, attention: {heads: 2, rotary: true, bias: false}]}, "
    "residual: {layers: [rms_norm, linear: {out: 48, bias: false}, relusquared, "
    "linear: {out: 12, bias: false}]}]}",
    "rms_norm",
)


QWEN = (
    "repeat: {times: 2, layers: [transformer: {heads: 3, kv_heads: 1, head_dim: 6, rotary: true, "
    "rotary_form: half, rotary_base: 50, qk_norm: rms, norm_kind: rms, activation: swiglu, "
    "bias: false, qkv_bias: true}]}",
    "rms_norm",
)
WINDOWS = (
    "transformer: {heads: 2, rotary: true, window: 3, softcap: 2, qk_norm: rms_plain}",
    "transformer: {heads: 2, alibi: true, window: 2, activation: relusquared, mlp: 5}",
    "attention: {heads: 3, alibi: true, kv_heads: 1, softcap: 1}",
    "layer_norm: {affine: false}",
)


@pytest.mark.parametrize(
    "layers",
    [
        LLAMA,
        NANOCHAT,
        QWEN,
        WINDOWS,
        ("gru: {out: 12, depth: 2}", "positions", "lstm: 12", "silu", "rnn: 12"),
    ],
    ids=["llama", "nanochat", "qwen", "windows", "recurrent"],
)
def test_models_of_today_write_with_a_cache(config_file: Write, layers: tuple[str, ...]) -> None:
    end = ("linear: 65", "softcap: 15") if layers is NANOCHAT else ()
    assert_the_same_text(planned(config_file, *layers, *end), 65, 8)


def assert_the_same_text(model: nn.Module, vocab: int, context: int) -> None:
    """Token by token, beyond the context; and the logits, which tell steps apart."""
    assert cache_obstacle(model) == ""
    x = engine.randint(0, vocab, (1, context))
    assert difference(model, x, (context - 3, 1, 1, 1)) < 1e-10
    assert model(x).var(1).amin().item() > 1e-6
    prompt = x[0, :3].tolist()

    def text(cached: bool) -> list[int]:
        generator = engine.Generator(7, purpose="text")
        return list(
            generate(model, prompt, 2 * context, context, generator=generator, cached=cached)
        )

    assert text(cached=True) == text(cached=False)


@pytest.mark.parametrize("path", TEXTS, ids=[path.stem for path in TEXTS])
def test_each_shipped_model_of_text_writes_with_a_cache(path: Path) -> None:
    fewer = ["data.vocab=300"] if "vocab:" in path.read_text() else []
    config = load(path, ["data.context=12", *fewer])
    assert config.facts.vocab
    assert_the_same_text(model_of(config), config.facts.vocab, 12)


def test_there_are_three_models_of_text() -> None:
    assert len(TEXTS) >= 3
