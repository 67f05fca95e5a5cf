"""A published model opened as it lies in its folder: nothing of it was trained here."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from gradcli import engine
from gradcli.config.build import build
from gradcli.config.load import load
from gradcli.config.planned import build_all
from gradcli.config.trained import TrainedRun
from gradcli.data import LoadedData
from gradcli.data.bpe.tokenizer import FILE as TOKENIZER
from gradcli.data.bpe.tokenizer import Tokenizer, tokenizer_at
from gradcli.data.facts import DataFacts
from gradcli.data.files import path_text
from gradcli.errors import CheckpointError, DataError
from gradcli.train.checkpoint import CheckpointMeta
from gradcli.train.published.folder import files_in, first_names, tensors_in
from gradcli.train.published.loading import match_model
from gradcli.train.published.shape import FILE as CONFIG
from gradcli.train.published.shape import Shape, shape_in
from gradcli.train.yaml_text import inline
from gradcli.wording import quantity

MOST_STEPS = 2048  # that a model reads at once: a cache for all that some were trained on is huge


def layers_of(shape: Shape) -> tuple[str, ...]:
    """The layers of a published model, as they stand in a config."""
    tied = ", tied: tokens" if shape.tied else ""
    block = f"transformer: {_keys(_block(shape))}"
    return (
        f"embed: {{dim: {shape.width}, std: 0.02, name: tokens}}",
        *(("positions",) if shape.kind == "gpt2" else ()),
        "repeat:\n      name: block\n"
        f"      times: {shape.layers}\n      layers:\n        - {block}",
        f"{'layer_norm' if shape.kind == 'gpt2' else 'rms_norm'}: {_keys({'eps': shape.eps})}",
        f"linear: {{out: $data.vocab, bias: false{tied}}}",
    )


def _block(shape: Shape) -> dict[str, object]:
    keys: dict[str, object] = {
        "heads": shape.heads,
        "mlp": shape.inner,
        "activation": shape.activation,
        "eps": shape.eps,
    }
    if shape.kind == "gpt2":
        return keys
    keys |= {"norm_kind": "rms", "bias": False, "rotary": True, "rotary_form": "half"}
    usual = {
        "kv_heads": shape.heads,
        "head_dim": shape.width / shape.heads,
        "rotary_base": 10000.0,
        "window": None,
    }
    keys |= {key: value for key, default in usual.items() if (value := _at(shape, key)) != default}
    keys |= {"qkv_bias": True} if shape.qkv_bias else {}
    return keys | ({"qk_norm": "rms"} if shape.qk_norm else {})


def _at(shape: Shape, key: str) -> object:
    value: object = getattr(shape, key)
    return value


def _keys(values: dict[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {inline(value)}" for key, value in values.items()) + "}"


def checked_tokenizer(folder: Path, shape: Shape) -> Tokenizer:
    """The tokenizer of a published model, which has no more tokens than that."""
    tokenizer = tokenizer_at(folder)
    if tokenizer.vocab > shape.vocab:
        raise DataError(
            f"{path_text(folder)}: {TOKENIZER} has {quantity(tokenizer.vocab, 'token')}, the model "
            f"{shape.vocab}: they do not belong together",
            code="E305",
        )
    if shape.end is not None and shape.end >= tokenizer.vocab:
        raise DataError(
            f"{path_text(folder)}: eos_token_id of {CONFIG} is {shape.end}, and {TOKENIZER} has "
            f"{quantity(tokenizer.vocab, 'token')}: they do not belong together",
            code="E305",
        )
    return tokenizer


def end_of(shape: Shape, tokenizer: Tokenizer) -> dict[str, str]:
    """The key `end` of its texts, where they end with another token than the usual one."""
    if shape.end is None or shape.end == tokenizer.end:
        return {}
    return {"end": tokenizer.names[shape.end]}


def open_published(folder: Path, device: str) -> TrainedRun:
    """Open the model in a folder with its tokenizer, as if it were a run of 0 steps.

    Raises:
        DataError: config.json or the tokenizer is missing, damaged or not supported.
        CheckpointError: the weights are missing, damaged or of another shape.
    """
    shape = shape_in(folder)
    tokenizer = checked_tokenizer(folder, shape)
    context = min(shape.context, MOST_STEPS)
    tensors = tensors_in(files_in(folder))
    if shape.layers > len(tensors):
        raise CheckpointError(
            f"{path_text(folder)}: {CONFIG} asks for {quantity(shape.layers, 'layer')}, and there "
            f"are {quantity(len(tensors), 'tensor')}",
            code="E704",
        )
    facts = DataFacts(
        input=(context,),
        input_kind="index",
        target=(context,),
        classes=tokenizer.vocab,
        vocab=tokenizer.vocab,
        labels=(),
        sizes={"train": 1},
        unit="bpe",
        tokenizer=tokenizer.sha256,
    )
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.yaml"
        path.write_text(_config(folder.absolute(), shape, tokenizer, context), encoding="utf-8")
        config = load(path, room=None, runs=None, facts=facts)
    with engine.device("meta"):  # sizes may be any
        outline = build_all(config.model)
    weights = outline.state_dict().keys()
    cure = (
        f"{CONFIG} describes another model; put the one that was published with the weights there"
    )
    match = match_model(outline, tensors, shape.kind, weights, path_text(folder), cure)
    extra = match.unused
    if extra:
        number = quantity(len(extra), "tensor")
        raise CheckpointError(
            f"{path_text(folder)} holds {number} that {CONFIG} says nothing of: "
            f"{first_names(extra)}",
            code="E704",
        )
    job = build(config, LoadedData(config.data, facts, {}, {}))
    match.copy_into(job.model)
    notes = []
    if context < shape.context:
        at_once = quantity(context, "token")
        notes.append(f"reads {at_once} at once, of the {shape.context} it was trained on")
    meta = CheckpointMeta(step=0, epoch=0, seed=0, optimizer="sgd", config_sha256="", facts=facts)
    there = replace(job, name=folder.absolute().name).to(device)
    return TrainedRun(folder, device, there, meta, notes)


def _config(folder: Path, shape: Shape, tokenizer: Tokenizer, context: int) -> str:
    data = {
        "name": "text",
        "file": "none",
        "unit": "bpe",
        "tokenizer": str(folder),
        "context": context,
        **end_of(shape, tokenizer),
    }
    layers = "\n".join(f"  - {layer}" for layer in layers_of(shape))
    return (
        f"gradcli: 1\ndata: {_keys(dict(data))}\nmodel:\n{layers}\nloss: cross_entropy\n"
        "metrics: [perplexity, bits_per_byte]\noptim: {name: sgd, lr: 1}\n"
        "train: {steps: 1, batch: 8}\n"
    )
