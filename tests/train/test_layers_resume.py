"""Every layer that YAML names: trained, stopped, resumed and measured by another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradcli.config.containers import CONTAINERS
from gradcli.config.load import load
from gradcli.config.planner import LAYERS, layer_schema
from gradcli.errors import ErrorGroup

CONFIG = """
gradcli: 1
name: whole
data: {{name: text, file: text.txt, context: 8, stride: 4, split: {{train: 75%, val: 25%}}}}
model: {model}
loss: cross_entropy
optim: {{name: {optim}, lr: 0.02}}
schedule: cosine
{further}
train: {{steps: 6, batch: 7, seed: 3, best: val.loss}}
"""
# What a layer must be told, by the name of the key; else 0.5 or 2.
NEEDED: dict[str, Any] = {
    "out": 6,
    "dim": 12,
    "shape": [6, 16],
    "heads": 3,
    "layers": [{"linear": 12}, "tanh"],
    "branches": [[{"linear": 3}], [], ["sigmoid", {"dropout": 0.4}]],
}
TOLD: dict[str, dict[str, Any]] = {"upsample": {"scale": 2}}
TABLE = {"embed": {"dim": 12, "std": 0.5, "name": "tokens"}}
HEAD = ["flatten", {"linear": 40}, {"reshape": [8, 5]}]
# 8 steps of 12 features are lines too; else images, else rows.
BEFORE: list[list[Any]] = [[], [{"reshape": [4, 4, 6]}], ["flatten"]]
MORE: dict[str, list[Any]] = {
    "attention of shared heads": [
        TABLE,
        {"attention": {"heads": 4, "kv_heads": 2, "dropout": 0.3, "bias": False}},
        *HEAD,
    ],
    "transformer that turns": [
        TABLE,
        {"transformer": {"heads": 3, "rotary": True, "dropout": 0.3, "norm": "post", "mlp": "2x"}},
        *HEAD,
    ],
    "gpt": [
        TABLE,
        "positions",
        {"repeat": {"times": 2, "layers": [{"transformer": {"heads": 2, "dropout": 0.1}}]}},
        "layer_norm",
        {"linear": {"out": 5, "bias": False, "tied": "tokens"}},
    ],
    "nanochat": [
        TABLE,
        {
            "transformer": {
                "heads": 2,
                "rotary": True,
                "rotary_form": "half",
                "qk_norm": "rms_plain",
                "norm_kind": "rms_plain",
                "activation": "relusquared",
                "bias": False,
                "window": 5,
            }
        },
        {"linear": 5},
        {"softcap": 15},
    ],
    "lstm of depth": [
        TABLE,
        {"lstm": {"out": 5, "depth": 2, "dropout": 0.3, "bidirectional": True}},
        *HEAD,
    ],
}
MORE["gpt with lora"] = MORE["gpt"]
FURTHER = {"gpt with lora": "lora: {match: [attention, mlp], rank: 3, dropout: 0.2, train: [norm]}"}
OPTIMIZERS = {"nanochat": "muon"}
CASES = (*LAYERS, *CONTAINERS, *MORE)
# Runs the commands it is given in one process, and prints a list of the lines of each.
COMMANDS = """
import contextlib, io, json, sys
from gradcli.cli.main import run
printed = []
for command in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        code = run(command)
    assert code == 0, (command, code)
    printed.append(text.getvalue())
print(json.dumps(printed))
"""
ROOT = Path(__file__).parents[2]


def written(folder: Path, kind: str) -> Path:
    """A config whose model has a layer of this kind where it fits."""
    path = folder / f"{kind}.yaml"
    for before in BEFORE:
        layers = json.dumps(MORE.get(kind) or model(kind, before))
        optim, further = OPTIMIZERS.get(kind, "adamw"), FURTHER.get(kind, "")
        path.write_text(CONFIG.format(model=layers, optim=optim, further=further))
        try:
            load(path)
        except ErrorGroup:
            continue
        return path
    raise AssertionError(f"{kind} fits nowhere; NEEDED or TOLD lacks a key of it?")


def model(kind: str, before: list[Any]) -> list[Any]:
    fields = layer_schema(kind).model.model_fields.items()
    told = {
        name: NEEDED.get(name, 0.5 if field.annotation is float else 2)
        for name, field in fields
        if field.is_required()
    } | TOLD.get(kind, {})
    if kind == "embed":
        return [{kind: told}, *HEAD]
    return [TABLE, {"linear": 12}, *before, {kind: told}, *HEAD]


def process(commands: list[list[str]]) -> list[dict[str, Any]]:
    """The JSON objects that these commands print, in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        input=json.dumps([[*command, "--json"] for command in commands]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(one) for one in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """For each kind: the whole training, the resumed half, and both measured afterwards."""
    folder = tmp_path_factory.mktemp("layers")
    (folder / "text.txt").write_text("abcd\nbbad\ncadb\n" * 12)
    first: list[list[str]] = []
    second: list[list[str]] = []
    for number, kind in enumerate(CASES):
        runs = ["--runs", f"{folder}/runs{number}"]
        train = ["train", str(written(folder, kind)), *runs, "--name"]
        first += [[*train, "whole"], [*train, "half", "--max-steps", "2"]]
        second += [["resume", "half", *runs]]
        second += [["eval", name, "--split", "val", *runs] for name in ("whole", "half")]
    whole, later = process(first)[::2], process(second)
    return {
        kind: [whole[number], *later[3 * number : 3 * number + 3]]
        for number, kind in enumerate(CASES)
    }


@pytest.mark.parametrize("kind", CASES)
def test_a_layer_resumes_to_the_same_bits_in_a_fresh_process(
    results: dict[str, list[dict[str, Any]]], kind: str
) -> None:
    whole, resumed, *_ = results[kind]
    assert (whole["steps"], resumed["steps"]) == (6, 6)
    assert resumed["weights_sha256"] == whole["weights_sha256"]
    assert resumed["metrics"] == whole["metrics"]


@pytest.mark.parametrize("kind", CASES)
def test_a_layer_is_measured_alike_in_a_fresh_process(
    results: dict[str, list[dict[str, Any]]], kind: str
) -> None:
    trained, _, *measured = results[kind]
    for found in measured:
        assert found["metrics"] == trained["metrics"]
        assert found["measured_step"] == trained["measured_step"]
        if found["measured_step"] == trained["steps"]:  # the hash is of the last step
            assert found["weights_sha256"] == trained["weights_sha256"]
