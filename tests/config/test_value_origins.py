"""Where each value of a config comes from: default, file and line, a file below, `-s`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import BASE, fake_source
from hypothesis import given, settings
from hypothesis import strategies as st
from trusting import load

from gradcli.config.value_origins import origins_of
from gradcli.data import DATASETS
from gradcli.train.value_origins import ValueOrigin, as_json

SHIPPED = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))

RICH = """\
gradcli: 1
data: {name: fake}
vars: {width: 32, k: 3}
blocks:
  dense:
    params: {w: 8, p: 0.5}
    layers:
      - linear: $w
      - dropout: $p
model:
  - flatten
  - dense: {w: $vars.width}
  - residual: [linear: {out: 32}, relu]
  - repeat:
      times: 2
      layers: [linear: 16, gelu]
  - linear: {out: $data.classes, name: head}
loss: cross_entropy
metrics:
  - accuracy
  - top_k: $vars.k
optim: adamw
train:
  epochs: 2
  batch: 10
  ema: 0.99
"""


def origins_in(path: Path, *overrides: str) -> dict[str, tuple[Any, str, str | None]]:
    """Value, kind and place without the folder, by key."""
    origins = origins_of(load(path, overrides, room=None))
    return {
        key: (one.value, one.origin, one.place and one.place.removeprefix(f"{path.parent}/"))
        for key, one in origins.items()
    }


def test_each_value_of_the_resolved_config_has_one(config_file: Callable[..., Path]) -> None:
    config = load(config_file(text=RICH), room=None)
    origins = origins_of(config)
    for key, one in origins.items():
        value: Any = config.resolved
        for step in key.split("."):
            value = value[int(step)] if isinstance(value, list) else value[step]
        assert value == one.value and not (value and isinstance(value, dict | list)), key
    assert len(origins) == len(_parts(config.resolved))


def _parts(value: Any) -> list[Any]:
    """The single values, empty lists and maps among them."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, list) or not inner:
        return [value]
    return [part for item in inner for part in _parts(item)]


def test_places_are_those_of_the_file(config_file: Callable[..., Path]) -> None:
    table = origins_in(config_file(text=RICH))
    expected = {
        "model.0": ("flatten", 11),
        "model.1.block.of": ("dense", 12),
        "model.1.block.layers.0.linear.out": (32, 12),  # where the reference stands
        "model.1.block.layers.1.dropout.p": (0.5, 6),  # the parameter's default
        "model.2.residual.layers.0.linear.out": (32, 13),
        "model.2.residual.layers.1": ("relu", 13),
        "model.3.repeat.times": (2, 15),
        "model.3.repeat.layers.0.linear.out": (16, 16),
        "model.4.linear.out": (10, 17),
        "model.4.linear.name": ("head", 17),
        "loss.name": ("cross_entropy", 18),
        "metrics.0": ("accuracy", 20),
        "metrics.1.top_k.k": (3, 21),
        "optim.name": ("adamw", 22),
        "train.batch": (10, 25),
        "train.ema.decay": (0.99, 26),
    }
    assert {key: table[key] for key in expected} == {
        key: (value, "file", f"config.yaml:{line}") for key, (value, line) in expected.items()
    }
    defaults = ("name", "optim.lr", "model.4.linear.bias", "train.ema.warmup", "train.log_every")
    assert {table[key][1:] for key in defaults} == {("default", None)}


def test_what_a_file_extends_is_told_apart(config_file: Callable[..., Path]) -> None:
    config_file(text=RICH, name="base.yaml")
    path = config_file(text="extends: base.yaml\nmodel: {head: {bias: false}}\ntrain: {batch: 5}\n")
    table = origins_in(path, "optim.lr=0.5", "model.head.init=zeros")
    assert table["model.4.linear.bias"] == (False, "file", "config.yaml:2")
    assert table["train.batch"] == (5, "file", "config.yaml:3")
    assert table["train.epochs"] == (2, "extends", "base.yaml:24")
    assert table["optim.lr"] == (0.5, "override", "-s optim.lr=0.5")
    assert table["model.4.linear.init.name"] == ("zeros", "override", "-s model.head.init=zeros")


def test_a_value_that_was_taken_away_is_a_default_again(config_file: Callable[..., Path]) -> None:
    path = config_file(("batch: 10", "batch: 10, keep: 7"))
    assert origins_in(path)["train.keep"] == (7, "file", "config.yaml:13")
    assert origins_in(path, "train.keep=null")["train.keep"] == (2, "default", None)


def test_a_value_alone_is_the_key_that_it_is_short_for(config_file: Callable[..., Path]) -> None:
    table = origins_in(config_file(("  - flatten", "  - max_pool: 2\n  - flatten")))
    assert table["model.0.max_pool.kernel"][1:] == ("file", "config.yaml:5")


def test_no_number_of_origins_json_is_beyond_json() -> None:
    assert as_json({"a": ValueOrigin(float("inf"))})["a"]["value"] == "inf"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_each_line_of_a_shipped_config_gives_a_value(path: Path) -> None:
    table = origins_in(path)
    lines = {one[2] for one in table.values() if one[2]}
    assert all(place.startswith(f"{path.name}:") for place in lines)
    assert table["train.batch"][1] == "file"
    rows = path.read_text().splitlines()
    for key, (_, kind, place) in table.items():
        leaf = key.split(".")[-1]
        if kind == "file" and place is not None and not leaf.isdigit() and "model" not in key:
            assert leaf in rows[int(place.split(":")[1]) - 1] or leaf in ("name", "decay"), key


KEYS = {"seed": 1, "keep": 2, "log_every": 3, "eval_every": 4, "checkpoint_every": 5}
CHOICES = st.lists(st.sets(st.sampled_from(sorted(KEYS))), min_size=1, max_size=5)


@settings(deadline=None, max_examples=40)
@given(files=CHOICES, overrides=st.sets(st.sampled_from(sorted(KEYS))))
def test_the_last_who_says_a_value_is_its_origin(
    tmp_path_factory: pytest.TempPathFactory, files: list[set[str]], overrides: set[str]
) -> None:
    """Files over files, each with a few keys; the last one is the config, `-s` comes on top."""
    folder = tmp_path_factory.mktemp("layers")
    last = len(files) - 1
    for number, keys in enumerate(files):
        rows = [f"extends: {number - 1}.yaml" if number else BASE.replace("  5%", "5%")]
        if number:
            rows += ["train:", "  epochs: 2"] + [f"  {key}: {number + 2}" for key in sorted(keys)]
        (folder / f"{number}.yaml").write_text("\n".join(rows) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DATASETS, "fake", fake_source())
        table = origins_in(
            folder / f"{last}.yaml", *(f"train.{key}=9" for key in sorted(overrides))
        )
    for key in KEYS:
        who = [number for number, keys in enumerate(files) if number and key in keys]
        one = table.get(f"train.{key}")
        if key in overrides:
            assert one == (9, "override", f"-s train.{key}=9")
        elif who:
            assert one is not None
            assert one[:2] == (who[-1] + 2, "file" if who[-1] == last else "extends")
            assert str(one[2]).startswith(f"{who[-1]}.yaml:")
        else:
            assert one is None or one[1:] == ("default", None)
