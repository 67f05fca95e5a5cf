"""What is trained on a GPU: configs of the project, made small for a quick look."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gradcli.config import build, load
from gradcli.train.job import Job

ROOT = Path(__file__).resolve().parents[1] / "configs"
GPT2 = "GPT-2 124M"
CONFIGS = {
    "MNIST MLP": ROOT / "mnist.yaml",
    "CNN": ROOT / "mnist_cnn.yaml",
    "character GPT": ROOT / "long" / "shakespeare_gpt.yaml",
    GPT2: ROOT / "long" / "gpt2.yaml",
}
# GPT-2 takes as many tokens a step as in llm.c's first measurements: 4 times 1,024.
OVERRIDES = {GPT2: ("train.batch=4",)}
_FEW_IMAGES = ("data.split.train=64", "data.split.val=8")
# For a quick look, which also runs on a model of a GPU.
QUICKER = {
    "MNIST MLP": ("train.batch=8", *_FEW_IMAGES),
    "CNN": ("train.batch=4", *_FEW_IMAGES),
    "character GPT": (
        "train.batch=1",
        "data.context=8",
        "data.stride=8",
        "model.tokens.dim=24",
    ),
}


def job_of(path: Path, overrides: Iterable[str] = ()) -> Job:
    """A config's training on the CPU."""
    return build(load(path, tuple(overrides)))


def tokens(job: Job) -> int:
    """Of a sample, where samples are texts; else 0."""
    facts = job.dataset.facts
    return facts.input[0] if facts.input_kind == "index" else 0
