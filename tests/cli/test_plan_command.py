"""`gradcli plan`: what a training will need, and `train --memory`, which refuses more."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli, only_run

from gradcli.cli import options

__all__ = ["gradcli"]

Command = Callable[..., Ended]
CONFIGS = Path(__file__).parents[2] / "configs"


def planned(gradcli: Command, *words: str) -> dict:
    ended = gradcli("plan", *words, "--json")
    assert ended.code == 0, ended.err
    [found] = ended.json["configs"]
    return found


def test_each_layer_has_its_work_and_what_backward_keeps(gradcli: Command) -> None:
    found = planned(gradcli, str(CONFIGS / "mnist_cnn.yaml"))
    conv = found["model"][0]
    assert (conv["title"], conv["input"], conv["output"]) == ("conv 16", [1, 28, 28], [16, 24, 24])
    products = 2 * 64 * 16 * 24 * 24 * 25
    assert products <= conv["flops_forward"] < 1.1 * products
    assert conv["kept"] == 4 * 64 * 28 * 28  # its input, made from the stored pixels
    assert conv["bytes_backward"] > conv["bytes_forward"] > conv["kept"]
    assert set(found["parts"]) >= {"batch", "loss", "optimizer"}
    assert found["first_loss"] == pytest.approx(math.log(10))
    assert (found["steps"], found["steps_per_epoch"]) == (3440, 860)


def test_containers_count_what_is_inside_them(gradcli: Command) -> None:
    found = planned(gradcli, str(CONFIGS / "long" / "shakespeare_gpt.yaml"))
    repeat = found["model"][1]
    assert repeat["turn"] == 1 and len(repeat["children"]) == 6
    for key in ("flops_forward", "flops_backward", "parameters", "kept"):
        assert repeat[key] == sum(child[key] for child in repeat["children"]) > 0


def test_a_page_for_people_has_layers_memory_and_steps(gradcli: Command) -> None:
    ended = gradcli("plan", "dots.yaml")
    assert ended.code == 0
    for text in ("parameters", "memory:", "train:", "steps:", "first loss: about", "optimizer"):
        assert text in ended.out


def table(gradcli: Command, config: Path) -> tuple[list[str], list[str]]:
    """The heads of the columns of work and the last line, of the table for people."""
    text = gradcli("plan", str(config)).out.splitlines()
    total = next(line for line in text if line.startswith("total"))
    return re.findall(r"(?:back |kept )?[TGMk]?(?:FLOP|B)\b", text[1]), total.split()[2:]


def test_each_column_has_the_unit_of_its_largest_number(gradcli: Command) -> None:
    heads, small = table(gradcli, CONFIGS / "penguins.yaml")
    assert heads == ["kFLOP", "back kFLOP", "kB", "back kB", "kept kB"]
    assert all(1 <= float(number) < 1000 for number in small)
    heads, large = table(gradcli, CONFIGS / "mnist_cnn.yaml")
    assert {"MB", "kept MB"} < {*heads} and all(1 <= float(number) < 1000 for number in large)


def test_a_run_has_the_same_in_its_plan(gradcli: Command) -> None:
    found = planned(gradcli, "dots.yaml")
    assert gradcli("train", "dots.yaml").code == 0
    plan = json.loads((only_run() / "plan.json").read_text())
    assert plan["format"] == 1 and plan["layers"]
    for key in ("model", "parts", "memory", "steps", "checkpoints", "first_loss"):
        assert plan[key] == found[key]


def test_a_resume_writes_what_a_killed_run_could_not(gradcli: Command) -> None:
    planned_before = planned(gradcli, "dots.yaml")
    assert gradcli("train", "dots.yaml", "--max-steps", "2").code == 0
    file = only_run() / "plan.json"
    plan = json.loads(file.read_text())
    early = {key: plan[key] for key in ("format", "layers", "parameters", "total")}
    file.write_text(json.dumps(early))
    assert gradcli("resume", str(only_run())).code == 0
    plan = json.loads(file.read_text())
    assert {key: plan[key] for key in early} == early
    for key in ("model", "memory", "steps"):
        assert plan[key] == planned_before[key]


@pytest.mark.parametrize(
    "size", ["", "0", "-1", "8XB", "8KB", "8", "8 GB GB", "nan", "0GB", "1e9B"]
)
@pytest.mark.parametrize("command", ["plan", "train"])
def test_a_size_is_a_number_above_0_with_its_unit(
    gradcli: Command, command: str, size: str
) -> None:
    ended = gradcli(command, "dots.yaml", "--memory", size)
    assert ended.code == 2
    assert (
        "a size of memory is a number above 0 with a unit (B, kB, MB, GB, TB, KiB, MiB, GiB or "
        f"TiB), such as 8GB, got {size!r}" in (" ".join(ended.err.split()))
    )


def test_what_check_refuses_is_refused(gradcli: Command) -> None:
    assert gradcli("plan", "dots.yaml", "-s", "train.batch=x").code == 2
    assert gradcli("plan").code == 2


def test_the_others_are_planned_where_a_config_is_wrong(gradcli: Command) -> None:
    text = Path("dots.yaml").read_text()
    Path("wrong.yaml").write_text(text.replace("model:", "modle:", 1))
    names = ("dots.yaml", "wrong.yaml", "nowhere.yaml", "dots.yaml")
    ended = gradcli("plan", *names)
    assert ended.code == 2
    assert ended.out.count("first loss: about") == 2
    assert "wrong.yaml:" in ended.err and "there is no file nowhere.yaml" in ended.err
    ended = gradcli("plan", *names, "--json")
    assert ended.code == ended.json["exit_code"] == 2
    right, wrong, absent, again = ended.json["configs"]
    assert [one["ok"] for one in ended.json["configs"]] == [True, False, False, True]
    assert right == again and right["steps"] > 0
    assert wrong["config"] == "wrong.yaml" and wrong["errors"][0]["line"] > 0
    assert "there is no file nowhere.yaml" in absent["errors"][0]["message"]


def test_the_first_error_decides_the_exit_code(gradcli: Command) -> None:
    text = Path("dots.yaml").read_text()
    Path("wrong.yaml").write_text(text.replace("model:", "modle:", 1))
    data = "{name: csv, file: nowhere.csv, target: y, numeric: [x]}"
    Path("lost.yaml").write_text(text.replace("{name: points}", data))
    assert gradcli("plan", "dots.yaml", "lost.yaml", "wrong.yaml").code == 3
    assert gradcli("plan", "dots.yaml", "wrong.yaml", "lost.yaml", "--json").code == 2


def test_a_batch_more_than_fits_is_refused_with_the_one_that_does(gradcli: Command) -> None:
    config, room = str(CONFIGS / "mnist_cnn.yaml"), ("--memory", "180MB")
    largest = planned(gradcli, config, *room)["room"]["largest"]
    batch = largest["size"]
    assert largest["key"] == "train.batch" and 1 < batch < 55000 and not largest["most"]
    ended = gradcli("train", config, "-s", f"train.batch={batch + 1}", *room)
    assert ended.code == 4 and "error[E402] training needs" in ended.err
    assert f"the largest that fits: -s train.batch={batch}" in ended.err
    found = planned(gradcli, config, "-s", f"train.batch={batch}")["memory"]
    held = found["train"]
    assert max(held["learning"] + held["copies"], held["then"]) + found["process"] <= 180e6


def test_memory_that_python_alone_takes_is_told(gradcli: Command) -> None:
    ended = gradcli("train", "dots.yaml", "--memory", "1MB")
    assert ended.code == 4
    assert "needs more than 64.0 MB, --memory has 1.0 MB available" in ended.err
    assert "allow it more: Python alone takes about 64.0 MB of that" in ended.err
    ended = gradcli("plan", "dots.yaml", "--memory", "1MB")
    assert "fits into 1.0 MB; Python and the engine alone take about 64.0 MB" in ended.out
    assert planned(gradcli, "dots.yaml", "--memory", "1MB")["room"]["process"] == 64e6


def test_a_gpu_has_no_scratch_of_threads(gradcli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "unavailable", lambda device: "")
    config = str(CONFIGS / "penguins.yaml")
    here, there = (planned(gradcli, config, "--device", one)["memory"] for one in ("cpu", "cuda"))
    for use in ("train", "eval", "predict"):
        assert there[use]["then"] <= here[use]["then"]
    assert there["train"]["then"] < here["train"]["then"]


def test_a_part_of_a_batch_is_made_smaller_where_there_are_parts(gradcli: Command) -> None:
    config = str(CONFIGS / "mnist_cnn.yaml")
    words = ("-s", "train.batch=64", "-s", "train.micro_batch=32", "--memory", "1GB")
    largest = planned(gradcli, config, *words)["room"]["largest"]
    assert largest["key"] == "train.micro_batch" and largest["size"] == 64 and largest["most"]


def test_what_fits_in_no_way_and_in_any_is_said(gradcli: Command) -> None:
    assert (
        "not even train.batch=1 fits into 65.0 MB"
        in gradcli("plan", str(CONFIGS / "mnist.yaml"), "--memory", "65MB").out
    )
    assert planned(gradcli, "dots.yaml", "--memory", "1TB")["room"]["largest"]["most"]


def test_a_step_that_looks_at_numbers_is_told(gradcli: Command, curious_code: str) -> None:
    text = Path("dots.yaml").read_text()
    layer = f"code: [{curious_code}]\nmodel:\n  - curious"
    Path("own.yaml").write_text(text.replace("model:", layer, 1))
    found = planned(gradcli, "own.yaml", "--trust-code", "--memory", "1GB")
    assert "the step reads the values of a tensor (item, " in found["why_not_planned"]
    assert "memory" not in found and found["steps"] > 0 and found["room"]["largest"] is None


def test_the_length_of_a_run_is_told_from_steps_that_are_made(gradcli: Command) -> None:
    found = planned(gradcli, "dots.yaml", "--time")["time"]
    assert found["seconds"] > found["step"] > 0
    assert not Path("runs").exists()
