"""origins.json of a run, and `gradcli check --origin`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import points
import pytest
from points import CONFIG, only_run

from gradcli.config import build, load
from gradcli.train.division import divide_batches
from gradcli.train.value_origins import ValueOrigin

gradcli = points.gradcli
Call = Callable[..., Any]


def origins(run: Path) -> dict[str, Any]:
    content = json.loads((run / "origins.json").read_text())
    assert content["format"] == 1
    values: dict[str, Any] = content["values"]
    return values


def test_a_run_has_them(gradcli: Call) -> None:
    assert gradcli("train", "dots.yaml", "-s", "train.keep=3", "--name", "dots").code == 0
    values = origins(only_run())
    assert values["train.keep"] == {"value": 3, "origin": "override", "place": "-s train.keep=3"}
    assert values["optim.lr"] == {"value": 0.05, "origin": "file", "place": "dots.yaml:10"}
    assert values["train.capture"] == {"value": True, "origin": "default", "place": None}
    assert values["name"] == {"value": "dots", "origin": "override", "place": "--name dots"}


def test_a_fork_renews_those_of_its_keys(gradcli: Call) -> None:
    assert gradcli("train", "dots.yaml", "--max-steps", "4", "-s", "train.keep=3").code == 0
    first = origins(only_run())
    words = ["-s", "optim.lr=0.01", "-s", "train.epochs=4"]
    assert gradcli("resume", "last", *words).code == 0
    renewed = origins(only_run())
    assert renewed["optim.lr"] == {"value": 0.01, "origin": "override", "place": "-s optim.lr=0.01"}
    assert renewed["train.epochs"]["place"] == "-s train.epochs=4"
    changed = {key for key in first if first[key] != renewed[key]}
    assert changed == {"optim.lr", "train.epochs"} and first.keys() == renewed.keys()
    assert gradcli("resume", "last", "-s", "train.epochs=5").code == 0
    assert origins(only_run())["optim.lr"] == renewed["optim.lr"]  # now in resolved.yaml


def test_a_run_goes_on_with_a_config_that_says_otherwise_by_now(gradcli: Call) -> None:
    assert gradcli("train", "dots.yaml", "--max-steps", "4").code == 0
    Path("dots.yaml").write_text(CONFIG.replace("epochs: 3", "epochs: 4"))
    assert gradcli("train", "dots.yaml", "--continue").code == 0
    epochs = {"value": 4, "origin": "file", "place": "dots.yaml:11"}
    assert origins(only_run())["train.epochs"] == epochs


@pytest.mark.parametrize("content", [None, "{", '{"values": 3}', "[]"])
def test_a_run_whose_origins_are_gone_or_damaged_goes_on(gradcli: Call, content: str) -> None:
    assert gradcli("train", "dots.yaml", "--max-steps", "4").code == 0
    file = only_run() / "origins.json"
    file.unlink() if content is None else file.write_text(content)
    assert gradcli("resume", "last", "-s", "optim.lr=0.01").code == 0
    assert (file.read_text() if file.exists() else None) == content


def test_an_entry_that_is_no_map_is_written_anew(gradcli: Call) -> None:
    assert gradcli("train", "dots.yaml", "--max-steps", "4").code == 0
    file = only_run() / "origins.json"
    file.write_text(json.dumps({"format": 1, "values": {"train.keep": 3}}))
    assert gradcli("resume", "last").code == 0
    assert origins(only_run())["train.keep"]["value"] == 2


def test_ranks_choose_the_parts_of_a_batch(gradcli: Call) -> None:
    job = divide_batches(build(load(Path("dots.yaml"), room=None)), 4, lambda _: None)
    assert job.origins["train.micro_batch"] == ValueOrigin(2, "ranks", "4 ranks")


def test_check_prints_them(gradcli: Call) -> None:
    ended = gradcli("check", "dots.yaml", "--origin", "-s", "optim.lr=0.5")
    assert ended.code == 0
    rows = [line.split(maxsplit=2) for line in ended.out.splitlines()]
    assert ["optim.lr", "0.5", "-s optim.lr=0.5"] in rows
    assert ["train.batch", "8", "dots.yaml:11"] in rows
    assert ["train.capture", "true", "default"] in rows
    values = gradcli("check", "dots.yaml", "--origin", "--json").json["configs"][0]["origins"]
    assert values["train.batch"] == {"value": 8, "origin": "file", "place": "dots.yaml:11"}
    assert "origins" not in gradcli("check", "dots.yaml", "--json").json["configs"][0]


def test_what_is_extended_is_called_so(gradcli: Call) -> None:
    Path("above.yaml").write_text("extends: dots.yaml\ntrain: {keep: 4}\n")
    lines = gradcli("check", "above.yaml", "--origin").out.splitlines()
    assert any(line.split() == ["train.keep", "4", "above.yaml:2"] for line in lines)
    assert any(line.split() == ["train.batch", "8", "dots.yaml:11", "(extended)"] for line in lines)


def test_check_prints_one_table(gradcli: Call) -> None:
    ended = gradcli("check", "dots.yaml", "--origin", "--resolved")
    assert ended.code == 2 and "choose one" in ended.err
