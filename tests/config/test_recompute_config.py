"""`recompute: true`: the same bits in less memory, on every kind of layer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.config import build, load
from gradcli.config.planned import build_all
from gradcli.data import LoadedData
from gradcli.engine.nn.generation import cache_obstacle
from gradcli.engine.nn.hooks import parts_of
from gradcli.errors import ErrorGroup
from gradcli.train.job import Job
from gradcli.train.step import OneStep

Write = Callable[..., Path]
PLAIN = "  - flatten\n  - linear: 16\n  - relu\n"
HEAD = "linear: {out: $data.classes, name: head}"
TEXT = [("{name: fake}", "{name: fake, kind: text}"), (HEAD, "linear: $data.vocab")]
NORMED = "conv: {out: 4, kernel: 3, padding: same}, batch_norm, gelu, dropout: 0.2"
MODELS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "repeat": (
        "  - embed: 16\n  - positions\n"
        "  - repeat: {times: 6, AGAIN layers: [transformer: {heads: 2, dropout: 0.1}]}\n",
        TEXT,
    ),
    "repeat of several": (
        "  - embed: 16\n"
        "  - repeat: {times: 5, AGAIN layers: [linear: 32, gelu, dropout: 0.5, linear: 16]}\n",
        TEXT,
    ),
    "transformers": (
        "  - embed: 16\n" + "  - transformer: {heads: 2, AGAIN dropout: 0.1}\n" * 5,
        TEXT,
    ),
    "residual": (
        "  - conv: {out: 4, kernel: 3, stride: 3}\n"
        + f"  - residual: {{AGAIN layers: [{NORMED}, conv: {{out: 4, kernel: 1}}]}}\n" * 5
        + "  - flatten\n",
        [],
    ),
    "parallel": (
        "  - conv: {out: 4, kernel: 3, stride: 3}\n"
        + f"  - parallel: {{join: add, AGAIN branches: [[{NORMED}], [{NORMED}, batch_norm]]}}\n" * 5
        + "  - flatten\n",
        [],
    ),
    "block": (
        "  - flatten\n" + "  - block: {AGAIN layers: [linear: 64, batch_norm, gelu]}\n" * 5,
        [],
    ),
    "blocks": (
        "  - flatten\n" + "  - wide: {out: 64}\n" * 5,
        [
            (
                "model:",
                "blocks: {wide: {AGAIN params: {out: 8}, "
                "layers: [linear: $out, batch_norm, gelu]}}\nmodel:",
            )
        ],
    ),
    "inside one another": (
        "  - embed: 16\n  - repeat: {times: 4, AGAIN layers: [residual: {AGAIN layers: "
        "[linear: 64, gelu, dropout: 0.2, linear: 16]}, layer_norm]}\n",
        TEXT,
    ),
    "recurrent": ("  - embed: 16\n" + "  - lstm: {out: 16, AGAIN dropout: 0}\n" * 3, TEXT),
}


@pytest.fixture
def written(config_file: Write) -> Callable[[str, bool], Path]:
    """A config with one of the models."""

    def write(name: str, again: bool) -> Path:
        model, changes = MODELS[name]
        key = "recompute: true, " if again else ""
        pairs = [(PLAIN, model), *changes]
        return config_file(*((old, new.replace("AGAIN ", key)) for old, new in pairs))

    return write


def trained(job: Job, eager: bool) -> dict[str, Any]:
    """Weights, statistics and losses after four steps."""
    step = OneStep(job, None)  # type: ignore[arg-type]
    text = job.resolved["data"]["kind"] == "text"
    x = engine.randint(0, 65, (4, 6, 8)) if text else engine.randn(4, 6, 1, 28, 28)
    y = engine.randint(0, 10, (4, 6, 8) if text else (4, 6))

    def update(x: engine.Tensor, y: engine.Tensor, state: engine.Tensor) -> engine.Tensor:
        engine.set_rng_state(state)
        job.optimizer.zero_grad()
        loss = job.loss(job.model(x), y)
        loss.backward()
        step.update()
        return loss

    states = engine.tensor([[3, number, 0] for number in range(4)])
    captured = engine.capture(update, eager=eager)
    losses = captured.scan(x, y, states).tolist()
    assert eager or not captured.fallback_reason
    return {name: value.tolist() for name, value in job.model.state_dict().items()} | {
        "losses": losses
    }


@pytest.mark.parametrize("name", MODELS)
def test_it_trains_to_the_same_bits_captured_and_eagerly(
    written: Callable[[str, bool], Path], name: str
) -> None:
    ends = []
    for again, eager in ((False, False), (True, False), (True, True)):
        engine.manual_seed(1)
        config = load(written(name, again), room=None)
        data = LoadedData(config.data, config.facts, {}, {})  # it is never loaded
        ends.append(trained(build(config, data), eager))
    assert len(set(ends[0]["losses"])) == 4
    assert ends[1] == ends[0]
    assert ends[2] == ends[0]


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"recurrent"}))
def test_check_says_that_it_needs_less_memory(
    written: Callable[[str, bool], Path], name: str
) -> None:
    found = [load(written(name, again)).memory for again in (False, True)]
    assert found[0] and found[1]
    assert found[1].arena < 0.75 * found[0].arena
    assert found[1].persistent == found[0].persistent


@pytest.mark.parametrize("name", MODELS)
def test_the_resolved_config_recomputes_the_same(
    written: Callable[[str, bool], Path], config_file: Write, name: str
) -> None:
    config = load(written(name, True), room=None)
    again = load(config_file(text=json.dumps(config.resolved)), room=None)
    assert again.resolved == config.resolved
    parts = [parts_of(module) for module in build_all(config.model).modules()]
    assert [parts_of(module) for module in build_all(again.model).modules()] == parts
    assert sum(parts) > 0
    plain = build_all(load(written(name, False), room=None).model)
    assert sum(parts_of(module) for module in plain.modules()) == 0
    assert plain.state_dict().keys() == build_all(config.model).state_dict().keys()


def test_a_use_of_a_block_has_the_last_word(written: Callable[[str, bool], Path]) -> None:
    path = written("blocks", True)
    text = path.read_text().replace("  - wide: {out: 64}\n", "  - wide: {recompute: false}\n", 1)
    path.write_text(text)
    assert [layer.recompute for layer in load(path, room=None).model] == [0, 0, 1, 1, 1, 1, 0]


def test_a_parameter_of_a_block_may_have_the_name(config_file: Write) -> None:
    block = "blocks: {wide: {params: {recompute: 8}, layers: [linear: $recompute]}}\nmodel:"
    config = load(config_file(("model:", block), ("linear: 16", "wide: {recompute: 12}")))
    assert str(config.model[1].output) == "12"
    assert config.model[1].recompute == 0


def test_a_text_is_still_written_with_a_cache(written: Callable[[str, bool], Path]) -> None:
    config = load(written("repeat", True), room=None)
    assert cache_obstacle(build_all(config.model)) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("linear: 16", "linear: {out: 16, recompute: 2}"),
        ("linear: 16", "repeat: {times: 2, recompute: 2, layers: [relu]}"),
    ],
)
def test_what_is_no_truth_value_is_refused(config_file: Write, old: str, new: str) -> None:
    with pytest.raises(ErrorGroup, match="recompute must be true or false, got 2") as caught:
        load(config_file((old, new)))
    [error] = caught.value.errors
    assert error.location
