"""`python -m benchmarks gpu`, each part whole and small, on the stand-in: no speed is asserted."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

import cuda_standin

from benchmarks import tables, targets

# Says what NVIDIA's tool says, and runs what stands behind the options.
SANITIZER = """#!/bin/sh
shift 4
"$@" && echo "========= ERROR SUMMARY: 0 errors"
"""


def measured(part: str, folder: Path, **variables: str) -> dict[str, Any]:
    arguments = ("--quick", "--out", str(folder), "gpu", part)
    unchecked = {"STANDIN_CUDA_CHECKED": "0", **variables}
    done = cuda_standin.run("benchmarks", *arguments, variables=unchecked)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob(f"????-??-??-gpu-{part}.json")
    found: dict[str, Any] = json.loads(file.read_text())
    assert (found["kind"], found["quick"], found["format"]) == (f"gpu-{part}", True, 1)
    assert found["gpu"]["is"].startswith("stand-in for a GPU")
    assert {"gradcli", "cuda-bindings", "nvidia-cuda-nvrtc"} <= set(found["gpu"]["versions"])
    assert found["verdicts"] == [one.as_json() for one in targets.VERDICTS[found["kind"]](found)]
    assert tables.TABLES[found["kind"]](found).startswith("## ")
    return found


def test_checks_compare_ops_and_replays_and_run_the_sanitizer(tmp_path: Path) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(SANITIZER)
    tool.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    found = measured("checks", tmp_path, PATH=path)
    assert found["doctor"]["ops"] == 2
    assert found["doctor"]["failed"] == []
    for row in found["graph"].values():
        assert not row["why_not_captured"]
        assert (row["losses_that_differ"], row["parameters_that_differ"]) == (0, [])
        assert 0 < row["python_us"] <= row["step_us"]
    assert found["small_kernels"]["one replay"]["us_per_kernel"] > 0
    assert {tool: row["errors"] for tool, row in found["sanitizer"].items()} == {
        "memcheck": 0,
        "racecheck": 0,
    }
    assert all(verdict["passed"] for verdict in found["verdicts"])


def test_kernels_are_held_to_a_copy_and_to_torch(tmp_path: Path) -> None:
    found = measured("kernels", tmp_path)
    assert found["torch_missing"]  # no PyTorch knows the stand-in
    assert found["families"]["copy_gbs"] > 0
    rows = found["families"]["rows"]
    assert {row["family"] for row in rows.values()} >= set(targets.OF_A_COPY)
    assert {name: row["missing"] for name, row in rows.items() if "missing" in row} == {}
    for row in rows.values():
        assert row["ms"] > 0
        assert row["launches"] > 0
    for case in found["products"].values():
        assert "missing" not in case["rows"]["gradcli"]
        assert case["rows"]["gradcli"]["ms"] > 0
        assert case["ratio"] is case["ratio_bf16"] is case["ratio_tf32"] is None
        assert ("gradcli bf16" in case["rows"]) == ("gradcli tf32" in case["rows"])
    assert found["products"]["matmul 33x20x17"]["rows"]["gradcli tf32"]["ms"] > 0
    assert found["products"]["matmul 33x20x17"]["rows"]["gradcli bf16"]["ms"] > 0


def test_training_is_as_on_the_cpu(tmp_path: Path) -> None:
    found = measured("training", tmp_path)
    assert set(found["workloads"]) == {"MNIST MLP", "CNN", "character GPT"}
    for entry in found["workloads"].values():
        for contender in ("gradcli eager", "gradcli captured"):
            row = entry["rows"][contender]
            assert "missing" not in row
            assert "remark" not in row
            assert len(row["repeats"]) == 3
            assert row["steps_per_second"] > 0
        assert entry["losses"]["off_course"] < 1e-4
    assert found["workloads"]["character GPT"]["rows"]["gradcli eager"]["tokens_per_second"] > 0


def test_without_a_gpu_it_ends_with_what_is_missing(tmp_path: Path) -> None:
    import subprocess

    command = [sys.executable, "-m", "benchmarks", "--out", str(tmp_path), "gpu", "kernels"]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, env=hidden, cwd=cuda_standin.ROOT, check=False
    )
    assert done.returncode == 4
    assert "device 'cuda' cannot be used: it needs" in done.stderr
    assert not list(tmp_path.iterdir())
