"""Where a newcomer's data go wrong: each sentence says what to write instead, at the right key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended
from refusals import gradcli, refused

__all__ = ["gradcli", "refused"]

Refused = Callable[..., Ended]

CONFIG = """\
gradcli: 1
name: homes
data:
  name: csv
  file: homes.csv
  target: price
  task: regression
  numeric: [area]
  category: [city]
model: [linear: 1]
loss: mse
optim: {name: adam, lr: 0.01}
train: {epochs: 1, batch: 16}
"""
SERIES = CONFIG.replace("  category: [city]\n", "  window: 3\n").replace(
    "model: [", "model: [flatten, "
)
ROWS = [f"{40 + n % 7},{('Nice', 'Lyon')[n % 2]},{n * 997}" for n in range(90)]
FILES = "fill it in the file, or split the series there into files of their own (file: parts/*.csv)"


def homes(config: str = CONFIG, rows: list[str] = ROWS, header: str = "area,city,price") -> None:
    """The config and its table."""
    Path("homes.csv").write_text("\n".join([header, *rows]) + "\n")
    Path("homes.yaml").write_text(config)


@pytest.mark.parametrize("missing", ["error", "mean"])
@pytest.mark.parametrize(
    ("config", "split", "row", "what"),
    [
        (CONFIG, "", "50,Nice,", "number, found the missing value ''; a target is never filled"),
        (
            CONFIG.replace("task: regression", "task: classification"),
            "",
            "50,Nice,NA",
            "category, found the missing value 'NA'; a target is never filled",
        ),
        (
            CONFIG.replace("  category: [city]\n", ""),
            "split={train: 80%, val: 20%, group: city}",
            "50,,1",
            "category, found the missing value ''; a group is never filled",
        ),
        (SERIES, "", "50,Nice,", "number, found the missing value ''; a target is never filled"),
    ],
    ids=["values", "classes", "group", "series"],
)
def test_a_gap_that_nothing_fills_has_a_way_out(
    refused: Refused, missing: str, config: str, split: str, row: str, what: str
) -> None:
    homes(config, [*ROWS, row])
    sets = ["-s", f"data.missing={missing}", *(["-s", f"data.{split}"] if split else [])]
    way = FILES if config == SERIES else "`missing: drop` leaves its row out"
    refused(3, f"expected a {what}; {way}", "train", "homes.yaml", *sets)


def test_a_gap_in_an_input_is_told_of_what_its_rows_allow(refused: Refused) -> None:
    rows = [*ROWS, ",Nice,1"]
    homes(CONFIG, rows)
    refused(3, "''; `missing: drop` or `mean` accept it", "train", "homes.yaml")
    homes(SERIES, rows)
    refused(3, "''; `missing: mean` accepts it", "train", "homes.yaml")


def test_the_way_out_of_a_missing_target_leads_out(gradcli: Refused) -> None:
    homes(CONFIG, [*ROWS, "50,Nice,"])
    assert gradcli("train", "homes.yaml", "-s", "data.missing=drop").code == 0


def test_each_misspelt_column_gets_the_nearest(refused: Refused) -> None:
    homes(CONFIG.replace("[area]", "[aera]").replace("[city]", "[citty, zzz]"))
    what = (
        "no column is called 'aera' (did you mean 'area'?), 'citty' (did you mean 'city'?), 'zzz'"
    )
    refused(3, what, "check", "homes.yaml")
    homes(CONFIG.replace("[area]", "[aera]"))
    refused(3, "no column is called 'aera'; did you mean 'area'?", "check", "homes.yaml")


def test_a_new_series_without_its_target_is_told_why_it_is_needed(gradcli: Refused) -> None:
    homes(SERIES.replace("  numeric: [area]\n", ""))
    assert gradcli("train", "homes.yaml").code == 0
    Path("new.csv").write_text("area,city\n" + "40,Nice\n" * 9)
    ended = gradcli("predict", "homes", "new.csv")
    assert (ended.code, "no column is called 'price'" in ended.err) == (3, True)
    assert "= the past of 'price' is an input of this run: a new series needs it too" in ended.err
    homes(SERIES)
    assert gradcli("train", "homes.yaml").code == 0
    assert gradcli("predict", "homes", "new.csv").code == 0


def caret(ended: Ended) -> str:
    """The text that the first caret points at."""
    lines = ended.err.splitlines()
    marks = next(at for at, line in enumerate(lines) if "^" in line)
    return lines[marks - 1][lines[marks].index("^") : lines[marks].rindex("^") + 1]


@pytest.mark.parametrize(
    ("change", "rows", "place"),
    [
        (("", ""), ["50,Nice,"], "price"),
        (("", ""), ["x,Nice,1"], "area"),
        (("", ""), ["50,,1"], "city"),
        (("[city]", "[city, area]"), [], "area"),
        (("[city]", "[city, city]"), [], "city"),
        (("[city]", "[city, price]"), [], "price"),
    ],
)
def test_a_mistake_in_a_column_is_shown_where_the_config_names_it(
    gradcli: Refused, change: tuple[str, str], rows: list[str], place: str
) -> None:
    homes(CONFIG.replace(*change), [*ROWS, *rows])
    ended = gradcli("check", "homes.yaml")
    assert (ended.code, caret(ended)) == (3 if rows else 2, place), ended.err


@pytest.mark.parametrize(
    ("key", "value", "message", "cure"),
    [
        ("data.split", "{train: 0.8, val: 0.2}", "or percents such as 10% or null, got 0.8", "80%"),
        ("data.split", "{train: 1.0}", "got 1.0 for train", "100%"),
        ("schedule", "{name: cosine, warmup: 0.055}", "schedule.warmup must be", "5.5%"),
        ("schedule", "{name: step, at: [0.5, 1]}", "schedule.at must be", "50%"),
    ],
)
def test_a_share_that_is_no_percent_is_told_as_one(
    refused: Refused, key: str, value: str, message: str, cure: str
) -> None:
    homes()
    ended = refused(2, message, "check", "homes.yaml", "-s", f"{key}={value}")
    assert f"write {cure}\n" in ended.err


def test_a_number_that_is_no_share_gets_no_percent(refused: Refused) -> None:
    homes()
    ended = refused(
        2, "got 80.5 for train", "check", "homes.yaml", "-s", "data.split={train: 80.5}"
    )
    assert "write" not in ended.err


@pytest.mark.parametrize(
    ("best", "meant"),
    [
        ("val_loss", "val.loss"),
        ("val-mae", "val.mae"),
        ("val/los", "val.loss"),
        ("valloss", "val.loss"),
        ("loss", "val.loss"),
        ("mea", "val.mae"),
        ("zzz", "val.loss or val.mae"),
    ],
)
def test_a_figure_without_a_split_is_told_with_its_own(
    refused: Refused, best: str, meant: str
) -> None:
    homes(CONFIG.replace("loss: mse", "loss: mse\nmetrics: [mae]"))
    message = f"train.best: '{best}' names no split; write {meant}\n"
    refused(2, message, "check", "homes.yaml", "-s", f"train.best={best}")


def test_an_expectation_without_a_split_is_told_with_that_of_its_name(refused: Refused) -> None:
    homes()
    for name, meant in (("test_loss", "test.loss"), ("loss", "val.loss or test.loss")):
        sets = ("-s", f"expect={{{name}: '<= 1'}}")
        refused(2, f"'{name}' names no split; write {meant}\n", "check", "homes.yaml", *sets)


@pytest.mark.parametrize("layer", ["lstm", "gru", "rnn"])
def test_steps_before_a_last_linear_have_two_ways_out(gradcli: Refused, layer: str) -> None:
    homes(SERIES.replace("[flatten, ", f"[{layer}: 4, "))
    ended = gradcli("check", "homes.yaml")
    cure = f"put flatten before the linear layers, or write last: true in layer 0, {layer} 4\n"
    assert (ended.code, cure in ended.err) == (2, True), ended.err
    homes(SERIES.replace("[flatten, ", f"[{layer}: {{out: 4, last: true}}, "))
    assert gradcli("check", "homes.yaml").code == 0
    homes(SERIES.replace("flatten, ", ""))
    assert "= put flatten before the linear layers\n" in gradcli("check", "homes.yaml").err
