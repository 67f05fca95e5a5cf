"""`gradcli export`: the weights of a run for other programs, with the A and B of LoRA or merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bpe_files import STORY
from points import CONFIG, Ended, gradcli
from published_folders import CONFIGS, write_folder

import gradcli as package
from gradcli import engine
from gradcli.engine import nn

__all__ = ["gradcli"]


def train(gradcli: Callable[..., Ended], config: str, *options: str) -> Path:
    ended = gradcli("train", config, "--json", "--no-report", *options)
    assert ended.code == 0, ended.err
    return Path(ended.json["run"])


def test_a_run_leaves_as_its_weights(gradcli: Callable[..., Ended]) -> None:
    Path("dots.yaml").write_text(CONFIG.replace("best: val.accuracy", "ema: 0.5"))
    run = train(gradcli, "dots.yaml")
    assert gradcli("export", "dots", "dots.safetensors").code == 0
    tensors = package.load_tensors("dots.safetensors")
    model = package.load("dots").model
    assert tensors.metadata == {"run": run.name, "step": "18"}
    assert tensors.keys() == model.state_dict().keys()
    assert all(engine.equal(tensors[name], one) for name, one in model.state_dict().items())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("export", "dots", "dots.pt"), "only .safetensors is written; call it dots.safetensors"),
        (("export", "dots", "there.safetensors"), "is there already"),
        (("export", "dots", "none/new.safetensors"), "there is no folder none; make it first"),
        (("export", "dots", "new.safetensors", "--merge"), "trained without lora"),
        (("export", "dot", "new.safetensors"), "did you mean 'dots'"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(
    gradcli: Callable[..., Ended], words: tuple[str, ...], told: str
) -> None:
    Path("dots.yaml").write_text(CONFIG)
    train(gradcli, "dots.yaml", "--max-steps", "1")
    Path("there.safetensors").write_text("mine")
    ended = gradcli(*words)
    assert ended.code in (2, 7)
    assert ended.err.count("error[") == 1
    assert told in ended.err
    assert Path("there.safetensors").read_text() == "mine"
    assert not Path("new.safetensors").exists()


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_published_model_is_adapted_and_merged(gradcli: Callable[..., Ended], kind: str) -> None:
    write_folder(Path("model"), CONFIGS[kind])
    Path("story.txt").write_text(STORY * 40, encoding="utf-8")
    assert gradcli("init", "model", "--data", "story.txt").code == 0
    config = Path("model.yaml").read_text()
    section = "lora: {rank: 3, match: [attention, mlp]}\nloss:"
    Path("adapted.yaml").write_text(config.replace("\nloss:", f"\n{section}", 1))
    said = gradcli("check", "adapted.yaml").out
    assert "in A and B of 8 linear layers" in said
    options = ("-s", "optim.lr=0.01", "-s", "train.steps=40", "-s", "schedule=constant")
    run = train(gradcli, "adapted.yaml", *options, "-s", "train.eval_every=20")
    published = package.load("model").model
    adapted = package.load(str(run)).model
    for name, tensor in published.state_dict().items():
        rows = adapted.state_dict()[name].shape[0]  # of positions only as many as the context has
        assert engine.equal(adapted.state_dict()[name], tensor[:rows]), name
    assert {type(one) for one in adapted.modules()} >= {nn.LoRALinear}
    first = gradcli("eval", "model", "--data", "story.txt", "--json").json["metrics"]["data.loss"]
    after = gradcli("eval", str(run), "--data", "story.txt", "--json").json["metrics"]["data.loss"]
    assert after < first - 0.05

    assert gradcli("export", str(run), "merged.safetensors", "--merge").code == 0
    tensors = package.load_tensors("merged.safetensors")
    assert tensors.keys() == published.state_dict().keys()
    Path("merged.yaml").write_text(config.replace("from: model", "from: merged.safetensors"))
    again = train(gradcli, "merged.yaml", "-s", "optim.lr=1e-30", "--max-steps", "1")
    merged = gradcli("eval", str(again), "--data", "story.txt", "--json").json["metrics"]
    assert merged["data.loss"] == pytest.approx(after, abs=2e-6)
    how = ("--prompt", "The old king", "--tokens", "8", "--temperature", "0", "--json")
    texts = {gradcli("predict", str(one), *how).json["text"] for one in (run, again)}
    assert len(texts) == 1

    assert gradcli("export", str(run), "apart.safetensors").code == 0
    Path("more.yaml").write_text(config.replace("from: model", "from: apart.safetensors"))
    ended = gradcli("train", "more.yaml", "--no-report")
    assert (ended.code, "--merge" in ended.err) == (7, True)
