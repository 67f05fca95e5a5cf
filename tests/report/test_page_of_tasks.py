"""What the page shows of each kind of task, of the model and of the config."""

from __future__ import annotations

import base64
import io
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from run_on_disk import SCRIPT, seen
from tensor_bytes import encode

from gradcli.report.page_images import page_images, png
from gradcli.report.values import ticks
from gradcli.train.safetensors_file import RawTensor

NAMES = ["cat", "dog", SCRIPT]
WORST = [
    {"index": 7, "loss": 3.5, "truth": 0, "guess": 2, "certainty": 0.97},
    {"index": 9, "loss": None, "truth": 2, "guess": 1, "certainty": None},
]


def floats32(shape: tuple[int, ...], values: list[float]) -> RawTensor:
    return RawTensor("F32", shape, struct.pack(f"<{len(values)}f", *values))


def evaluation(task: str, **more: Any) -> dict[str, Any]:
    known = {"format": 1, "step": 40, "split": "test", "task": task, "samples": 10, "rows": 4}
    return {**known, "classes": None, "outputs": None, "columns": None, **more}


def test_classes_have_a_matrix_shares_and_calibration(tmp_path: Path) -> None:
    outputs = floats32((3, 3), [9.0, 0, 0, 0, 9, 0, 9, 0, 0])
    targets = RawTensor("I64", (3,), struct.pack("<3q", 0, 1, 2))
    made = seen(
        tmp_path,
        evaluation=evaluation(
            "classes",
            classes=NAMES,
            confusion=[[5, 0, 1], [0, 3, 0], [0, 1, 0]],
            worst=[{**one, "row": {"age": 3.5, SCRIPT: SCRIPT}} for one in WORST],
            columns=["age", SCRIPT],
        ),
        tensors=encode({"outputs": outputs, "targets": targets}),
    )
    assert "Confusion rows: the truth" in made.text
    assert "cat 6 100.0 % 83.3 %" in made.text and "dog 3 75.0 % 100.0 %" in made.text
    assert "100.0 % 66.7 % 3" in made.text  # all are sure, two of three are right
    assert f"#7 cat {SCRIPT} 97.0 % 3.5000 3.5 {SCRIPT}" in made.text
    assert [tag for tag, _ in made.tags if tag == "img"] == []


def test_many_classes_have_their_most_confused_pairs(tmp_path: Path) -> None:
    size = 40
    matrix = [[10 * (row == column) for column in range(size)] for row in range(size)]
    matrix[3][5], matrix[8][1] = 30, 7
    made = seen(tmp_path, evaluation=evaluation("classes", confusion=matrix))
    assert "Most confused pairs of 40 classes" in made.text
    assert "3 5 30 75.0 % 8 1 7 41.2 %" in made.text
    assert "the 30 classes of the lowest recall" in made.text


def test_most_wrong_pictures_are_pngs_in_the_page(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    inputs = floats32((2, 1, 2, 3), [0, 0.5, 1, 1, 0, float("nan")] * 2)
    made = seen(
        tmp_path,
        evaluation=evaluation("classes", classes=NAMES, worst=WORST, pictures=True),
        tensors=encode({"worst_inputs": inputs}),
    )
    found = [dict(one) for tag, one in made.tags if tag == "img"]
    assert [one["alt"] for one in found] == [
        f"input of sample 7: cat taken for {SCRIPT}",
        f"input of sample 9: {SCRIPT} taken for dog",
    ]
    data = base64.b64decode((found[0]["src"] or "").removeprefix("data:image/png;base64,"))
    assert image.open(io.BytesIO(data)).tobytes() == bytes([0, 128, 255, 255, 0, 0])


def test_pictures_of_every_kind_are_written_as_they_are(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for channels, mode in ((1, "L"), (3, "RGB"), (4, "RGBA")):
        pixels = bytes(range(channels * 6))
        opened = image.open(
            io.BytesIO(png([pixels[: 3 * channels], pixels[3 * channels :]], 3, 2, channels))
        )
        assert (opened.mode, opened.tobytes()) == (mode, pixels)
    large = page_images({"x": floats32((1, 3, 400, 300), [0.25] * 360_000)}, "x")
    assert [(one.width, one.height) for one in large] == [(75, 100)]
    assert page_images({"x": floats32((2, 5), [0.0] * 10)}, "x") == []


def test_targets_that_are_images_stand_beside_inputs_and_outputs(tmp_path: Path) -> None:
    tensors = {
        f"worst_{name}": floats32((2, 1, 2, 2), [0.5] * 8)
        for name in ("inputs", "outputs", "targets")
    }
    blank = [{"index": 1, "loss": 0.5, "truth": None, "guess": None, "certainty": None}] * 2
    made = seen(
        tmp_path,
        evaluation=evaluation("images", worst=blank, pictures=True),
        tensors=encode(tensors),
    )
    assert len([tag for tag, _ in made.tags if tag == "img"]) == 6
    assert "input output target #1, loss 0.5000" in made.text


def test_values_are_drawn_against_the_truth(tmp_path: Path) -> None:
    outputs, targets = [1.0, 2.0, 3.5, 4.0], [1.0, 2.0, 3.0, float("nan")]
    tensors = {"outputs": floats32((4, 1), outputs), "targets": floats32((4, 1), targets)}
    worst = [{"index": 2, "loss": 0.1, "truth": 3.0, "guess": 3.5, "row": {"area": 12.0}}]
    made = seen(
        tmp_path,
        evaluation=evaluation("values", outputs=[SCRIPT], worst=worst, columns=["area"]),
        tensors=encode(tensors),
    )
    assert f"{SCRIPT} prediction (up) against truth (right)" in made.text
    assert "samples 3 mean error 0.1667" in made.text
    assert "#2 3.0000 3.5000 0.1000 12" in made.text
    [path] = [one["d"] for tag, one in made.tags if tag == "path"]
    assert (path or "").count("h0") == 3


def test_values_that_are_all_alike_have_a_picture(tmp_path: Path) -> None:
    tensors = {name: floats32((3, 1), [0.0] * 3) for name in ("outputs", "targets")}
    made = seen(tmp_path, evaluation=evaluation("values"), tensors=encode(tensors))
    assert "root mean square error 0.0000" in made.text


def test_texts_are_shown_over_time_the_newest_first(tmp_path: Path) -> None:
    log = [{"event": "sample", "step": at, "prompt": SCRIPT, "text": f"so {at}"} for at in (5, 9)]
    made = seen(tmp_path, log=log)
    assert made.text.index("so 9") < made.text.index("so 5")


def test_a_model_is_boxes_in_boxes(tmp_path: Path) -> None:
    inner = {"index": "0.0", "title": SCRIPT, "kind": "conv", "parameters": 50, "kept": 2048}
    outer = {"index": "0", "title": "block", "input": [1, 8, 8], "output": [4, 6, 6]}
    made = seen(tmp_path, plan={"total": 100, "model": [{**outer, "children": [inner]}]})
    assert f"0 block 1x8x8 → 4x6x6 0.0 {SCRIPT} 50 parameters 50 % keeps 2.0 kB" in made.text


def test_an_older_plan_is_lines_of_text(tmp_path: Path) -> None:
    made = seen(tmp_path, plan={"layers": ["  0  linear 8", f"  1  {SCRIPT}"], "total": 9})
    assert "0 linear 8 1 " + SCRIPT in made.text


def test_values_of_the_config_have_their_origins(tmp_path: Path) -> None:
    values = {
        "optim.lr": {"value": 0.1, "origin": "file", "place": "/far/away/a.yaml:7"},
        "train.batch": {"value": 8, "origin": "override", "place": "-s train.batch=8"},
        "train.keep": {"value": 2, "origin": "default", "place": None},
    }
    made = seen(tmp_path, origins={"format": 1, "values": values})
    for said in ("lr 0.1 a.yaml:7", "batch 8 -s train.batch=8", "keep 2 default"):
        assert said in made.text


@pytest.mark.parametrize("odd", [None, [], {}, "x", -1, 10**400, [[]], [None], [[1], [2, 3]], True])
def test_an_evaluation_of_another_shape_leaves_the_page_whole(tmp_path: Path, odd: Any) -> None:
    keys = ("step", "split", "classes", "confusion", "worst", "columns", "outputs", "pictures")
    for number, task in enumerate(("classes", "values", "images", odd)):
        folder = tmp_path / str(number)
        seen(
            folder,
            evaluation={**dict.fromkeys(keys, odd), "task": task},
            tensors=encode({"outputs": floats32((2, 1), [1, 2]), "targets": floats32((1,), [1])}),
        )
        worst = [dict.fromkeys(("index", "loss", "truth", "guess", "certainty", "row"), odd), odd]
        folder = tmp_path / f"{number} worst"
        seen(folder, evaluation={"task": task, "worst": worst, "columns": ["a"]})


def test_ticks_are_round_numbers() -> None:
    assert ticks(0.0, 10.0, 5) == [0, 2, 4, 6, 8, 10]
    assert ticks(-0.13, 0.11, 5) == pytest.approx([-0.1, -0.05, 0, 0.05, 0.1])
    assert (
        json.dumps(ticks(1e6, 3e6, 4)) == "[1000000.0, 1500000.0, 2000000.0, 2500000.0, 3000000.0]"
    )
