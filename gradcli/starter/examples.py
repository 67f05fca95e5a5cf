"""A piece of config for each word: laid over a plain config of its kind, `check` accepts it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from gradcli.config.layer import LayerSpec
from gradcli.config.schema import schema_of
from gradcli.config.sections import plain_value
from gradcli.dataclass import dataclass
from gradcli.starter.meanings import NAMES
from gradcli.train.metrics import METRICS
from gradcli.train.yaml_text import inline

Kind = Literal["images", "text", "values", "itself"]

# What the pieces are laid over: pictures with labels, a text, numbers to predict, pictures alone.
_REST = "optim: {name: adam, lr: 1e-3}\ntrain: {epochs: 2, batch: 32}\n"
BASES: dict[Kind, str] = {
    "images": "gradcli: 1\ndata: {name: mnist, split: {train: 55000, val: 5000}}\n"
    "model: [flatten, linear: 32, relu, linear: $data.classes]\nloss: cross_entropy\n" + _REST,
    "text": "gradcli: 1\ndata: {name: text, file: story.txt}\n"
    "model: [embed: 32, lstm: 32, linear: $data.vocab]\nloss: cross_entropy\n" + _REST,
    "values": "gradcli: 1\n"
    "data: {name: csv, file: houses.csv, target: price, task: regression, numeric: [area]}\n"
    "model: [linear: 32, relu, linear: 1]\nloss: mse\n" + _REST,
    "itself": "gradcli: 1\ndata: {name: mnist, target: input}\n"
    "model: [flatten, linear: 32, relu, linear: 784, reshape: [1, 28, 28]]\nloss: mse\n" + _REST,
}
# Values for keys without a default, and for those whose default says nothing.
_LAYER_KEYS: dict[str, Any] = {
    "out": 16,
    "kernel": 2,
    "heads": 4,
    "groups": 7,
    "size": 2,
    "factor": 2,
    "dim": 32,
    "cap": 30.0,
    "threshold": 0.1,
    "times": 2,
    "shape": [28, 28],
    "scale": 2.0,
    "layers": ["relu"],
    "branches": [["relu"], ["tanh"]],
}
_ONE_OF: dict[str, tuple[str, ...]] = {"upsample": ("scale",)}  # keys of which one is needed
_BY_LAYER: dict[str, dict[str, Any]] = {
    "group_norm": {"groups": 2},
    "concat": {"branches": [[{"conv": {"out": 8, "kernel": 1}}], [{"max_pool": {"kernel": 1}}]]},
    "repeat": {"layers": [{"linear": 28}, "relu"]},
    "residual": {"layers": [{"linear": 28}, "relu"]},
}
_AROUND = {  # what stands before and behind a layer, by what it takes
    "images": (["conv: {out: 4, kernel: 5}"], ["flatten", "linear: $data.classes"]),
    "lines": (["reshape: [28, 28]"], ["flatten", "linear: $data.classes"]),
    "sequences": (["reshape: [28, 28]"], ["flatten", "linear: $data.classes"]),
    "features": (["flatten"], ["linear: $data.classes"]),
    "numbers": ([], ["flatten", "linear: $data.classes"]),
    "anything": ([], ["flatten", "linear: $data.classes"]),
    "indices": ([], ["linear: $data.vocab"]),
}
_SCHEDULES = {
    "step": "{name: step, every: 30%, factor: 0.5}",
    "multi_step": "{name: multi_step, at: [50%, 75%], factor: 0.1}",
    "exponential": "{name: exponential, factor: 0.999}",
    "plateau": "{name: plateau, metric: val.loss, patience: 3}",
    "sequential": "{name: sequential, parts: [linear, cosine], at: [50%]}",
}
_DATA: dict[str, tuple[Kind, str]] = {
    "mnist": ("images", "{name: mnist, split: {train: 55000, val: 5000}}"),
    "fashion_mnist": ("images", "{name: fashion_mnist, normalize: true}"),
    "cifar10": ("images", "{name: cifar10, augment: [crop, hflip]}"),
    "cifar100": ("images", "{name: cifar100, augment: [crop, hflip]}"),
    "idx": ("images", "{name: idx, images: a-images.gz, labels: a-labels.gz}"),
    "image_folder": (
        "images",
        "{name: image_folder, dir: pictures, size: 64, "
        "split: {train: 80%, val: 20%, stratify: true}}",
    ),
    "npy": ("images", "{name: npy, inputs: inputs.npy, targets: targets.npy}"),
    "npz": ("images", "{name: npz, file: data.npz, inputs: x, targets: y}"),
    "csv": ("values", "{name: csv, file: a.csv, target: price, task: regression, numeric: [area]}"),
    "table": ("values", "{name: table, file: a.parquet, target: price, task: regression}"),
    "text": ("text", "{name: text, file: story.txt, context: 64}"),
    "tokens": ("text", "{name: tokens, file: train.bin, type: uint8, context: 64}"),
}
# Keys of tables whose default says nothing, with what they need beside them.
_TABLE_KEYS = {
    "test_file": "test_file: test.csv",
    "window": "window: 24",
    "horizon": "window: 24, horizon: 2",
    "channels": "window: 24, channels: first",
    "split": "split: {train: 80%, val: 20%, group: patient}",
}
_TRAIN = {
    "micro_batch": "16",
    "clip": "1.0",
    "clip_value": "0.5",
    "ema": "0.999",
    "seed": "7",
    "best": "val.loss",
    "early_stop": "{metric: val.loss, patience: 5}",
    "eval_every": "100",
    "checkpoint_every": "500",
    "checkpoint_minutes": "10",
    "log_every": "10",
    "keep": "3",
    "on_nonfinite": "skip",
    "sampler": "balanced",
    "drop_last": "true",
    "capture": "false",
    "precision": "bf16",
    "reduce": "library",
    "timeout": "60",
    "sample": '{prompt: "The ", tokens: 50}',
}
_TOP = {
    "gradcli": "gradcli: 1",
    "name": "name: first-try",
    "data": "data: {name: mnist, split: {train: 55000, val: 5000}}",
    "model": "model:\n  - flatten\n  - linear: 64\n  - relu\n  - linear: $data.classes",
    "loss": "loss: cross_entropy",
    "optim": "optim: {name: adamw, lr: 1e-3}",
    "train": "train: {epochs: 10, batch: 64, seed: 1}",
    "schedule": "schedule: {name: cosine, warmup: 5%}",
    "metrics": "metrics: [accuracy]",
    "expect": 'expect: {val.loss: "<= 0.5"}',
    "vars": "vars: {width: 32}\nmodel: [flatten, linear: $vars.width, linear: $data.classes]",
    "code": "code: [layers.py]",
    "blocks": "blocks:\n  dense:\n    params: {out: required}\n    layers: [linear: $out, relu]\n"
    "model: [flatten, dense: 64, linear: $data.classes]",
    "freeze": "freeze: ['0']",
    "pretrained": "pretrained: {from: mnist@best}",
    "lora": "lora: {match: [linear], rank: 4}",
    "extends": "extends: base.yaml",
}


@dataclass(frozen=True)
class Example:
    """A piece of a config, and what kind of config it fits."""

    text: str
    kind: Kind = "images"

    def whole(self) -> str:
        """The plain config with these sections in place of its own."""
        own = set(re.findall(r"^(\w+):", self.text, re.M))
        rest = [line for line in BASES[self.kind].splitlines() if line.split(":")[0] not in own]
        return "\n".join([*rest, self.text]) + "\n"


def of_top(key: str) -> Example:
    """With a key of the top level."""
    return Example(_TOP[key])


def of_train(key: str) -> Example:
    """With a key of `train:`."""
    if key in ("epochs", "steps", "batch"):
        length = "steps: 1000" if key == "steps" else "epochs: 10"
        return Example(f"train: {{{length}, batch: 64}}")
    value = _TRAIN[key]
    kind: Kind = "text" if key == "sample" else "images"
    return Example(f"train: {{epochs: 10, batch: 64, {key}: {value}}}", kind)


def of_layer(name: str) -> Example:
    """With a layer, between neighbours that make its input and a model of it."""
    row = NAMES["layer"][name]
    fields = schema_of(row).model.model_fields
    keys = [key for key, field in fields.items() if field.is_required()] + list(
        _ONE_OF.get(name, ())
    )
    values = {**_LAYER_KEYS, **_BY_LAYER.get(name, {})}
    entries = ", ".join(f"{key}: {inline(values[key])}" for key in keys)
    form = next(iter(row.forms)) if isinstance(row, LayerSpec) else "anything"
    form = "images" if name == "group_norm" else form
    form = "lines" if name in ("repeat", "residual", "transformer", "attention") else form
    before, behind = _AROUND[form]
    layers = [*before, f"{name}: {{{entries}}}" if entries else name, *behind]
    items = "\n".join(f"  - {layer}" for layer in layers)
    return Example(f"model:\n{items}", "text" if form == "indices" else "images")


def of_choice(kind: str, name: str) -> Example:
    """With one of the tables: a loss, metric, dataset, optimizer or schedule."""
    if kind == "layer":
        return of_layer(name)
    if kind == "dataset":
        fits, text = _DATA[name]
        return Example(f"data: {text}", fits)
    if kind == "optimizer":
        return Example(f"optim: {{name: {name}, lr: 1e-3}}")
    if kind == "schedule":
        return Example(f"schedule: {_SCHEDULES.get(name, f'{{name: {name}, warmup: 5%}}')}")
    return _of_metric(name) if kind == "metric" else _of_loss(name)


def with_key(kind: str, name: str, key: str) -> Example:
    """The same with a key of it, at its default where that says something."""
    example = of_choice(kind, name)
    field = schema_of(NAMES[kind][name]).model.model_fields[key]
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    pair = _TABLE_KEYS.get(key) if name in ("csv", "table") else None
    if re.search(rf"\b{key}:", example.text) or (pair is None and default in (None, "", ())):
        return example
    pair = pair or f"{key}: {inline(plain_value(default))}"
    braces = re.compile(rf"(\b{name}(?:: \{{.*?|,.*?))\}}(?=$|\])", re.M)
    if braces.search(example.text):
        return replace(example, text=braces.sub(rf"\1, {pair}}}", example.text, count=1))
    entry = f"{name}: {{{pair}}}" if kind in ("layer", "metric") else f"{{name: {name}, {pair}}}"
    bare = re.compile(rf"(?<=[ \[]){name}(?=$|\])", re.M)
    return replace(example, text=bare.sub(lambda _: entry, example.text, count=1))


def _of_metric(name: str) -> Example:
    if name in ("perplexity", "bits_per_character", "bits_per_byte"):
        return Example(f"metrics: [{name}]", "text")
    kind: Kind = "images" if METRICS[name].targets == "labels" else "values"
    several = name in ("precision", "recall", "f1")  # of more than two classes
    return Example(
        f"metrics: [{name}: {{average: macro}}]" if several else f"metrics: [{name}]", kind
    )


def _of_loss(name: str) -> Example:
    if name in ("cross_entropy", "nll"):
        end = ", log_softmax" if name == "nll" else ""
        return Example(f"model: [flatten, linear: $data.classes{end}]\nloss: {name}")
    if name in ("bce", "bce_with_logits", "kl"):
        end = {"bce": ", sigmoid", "kl": ", log_softmax"}.get(name, "")
        model = f"model: [flatten, linear: 784{end}, reshape: [1, 28, 28]]"
        return Example(f"data: {{name: mnist, target: input}}\n{model}\nloss: {name}", "itself")
    return Example(f"loss: {name}", "itself")
