"""Ranks of mpirun whose gradients lie on GPUs, over the stand-ins for NVIDIA's driver and NCCL."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs the extra 'cuda'")

from jobs import ROOT, Job, started

sys.path.append(str(Path(__file__).parents[1] / "gpu"))  # where the stand-ins are built
import nccl_standin

pytestmark = pytest.mark.mpi

CONFIG = str(ROOT / "configs" / "penguins.yaml")
MODEL = "[{linear: 32}, relu, {dropout: 0.2}, {linear: {out: $data.classes, name: head}}]"
# The last batch of an epoch, of its 12, has three parts.
OPTIONS = ("train.batch=20", "train.micro_batch=5", "train.clip=1.0", f"model={MODEL}")
# What a step is: graphs launched, sums by the host, exchanges of NCCL (the slices, the sums).
BY_HOST, BY_NCCL, ALONE = (2, 1, 0), (1, 0, 2), (1, 0, 0)

PLACE = r"\S+ \(pid \d+\)"


@contextmanager
def training(
    folder: Path,
    ranks: int,
    *words: str,
    device: str = "cuda",
    nccl: bool = True,
    **variables: str,
) -> Iterator[Job]:
    """`gradcli train` of ranks (0: without a launcher), each on a GPU of its own."""
    case = ("-m", "cuda_process", "case", "a_training", str(folder), CONFIG, "--device", device)
    options = (*case, "--runs", str(folder), *words)
    devices = {**nccl_standin.environment(nccl), "STANDIN_CUDA_DEVICES": "2", **variables}
    with started(ranks, *options, cwd=folder, variables=devices) as job:
        yield job


@pytest.mark.parametrize(("nccl", "launches"), [(False, 2), (True, 1)])
@pytest.mark.parametrize("how", ["exact", "library"])
def test_two_ranks_have_the_bits_of_one(
    nccl: bool, launches: int, how: str, tmp_path: Path
) -> None:
    """Over the host's memory and over NCCL; the library's own sum is at least one for both."""
    case = ("-m", "cuda_process", "case")
    arguments = "a_rank_of_a_launcher", how, str(launches), str(tmp_path)
    variables = {**nccl_standin.environment(nccl), "STANDIN_CUDA_DEVICES": "2"}
    with started(2, *case, *arguments, cwd=tmp_path, variables=variables) as job:
        ended = job.end(120)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    first, second = [(tmp_path / f"rank{rank}").read_bytes() for rank in range(2)]
    assert first == second
    nccl_standin.check(nccl_standin.started("one_rank", tmp_path, nccl=False))
    if how == "exact":
        assert first == (tmp_path / "alone").read_bytes()


def test_a_training_has_the_weights_of_one_rank_by_either_way(tmp_path: Path) -> None:
    """All steps but the first are one launch and one exchange, or two around the host's sum."""
    words = [word for option in OPTIONS for word in ("-s", option)]
    weights: dict[str, set[str]] = {"6": set(), "10": set()}
    for ranks, nccl, each in ((0, False, ALONE), (2, False, BY_HOST), (2, True, BY_NCCL)):
        counts = []
        for steps in weights:
            with training(
                tmp_path, ranks, *words, "--json", "--max-steps", steps, nccl=nccl
            ) as job:
                ended = job.end(120)
            assert ended.code in (0, 6), ended.err  # its expectation needs more steps
            result = json.loads(ended.out)
            assert result["steps"] == int(steps)
            weights[steps].add(result["weights_sha256"])
            counts.append(
                [json.loads(one.read_text()) for one in sorted(tmp_path.glob("rank*.json"))]
            )
        for fewer, more in zip(*counts, strict=True):
            assert [b - a for a, b in zip(fewer, more, strict=True)] == [4 * n for n in each]
    assert [len(hashes) for hashes in weights.values()] == [1, 1]
    assert not weights["6"] & weights["10"]


def test_a_rank_that_does_not_come_to_nccl_is_named(tmp_path: Path) -> None:
    """The others wait on their GPUs then, and the host looks after them."""
    words = ("-s", "train.timeout=3", "-s", "train.epochs=10000", "-s", "train.checkpoint_every=8")
    with training(tmp_path, 2, *words) as job:
        while not list(tmp_path.glob("*/*/checkpoints/step-*[1-9].safetensors")):
            assert job.process.poll() is None, job.end().err
            time.sleep(0.05)
        os.kill(job.ranks()[1], signal.SIGSTOP)
        ended = job.end(30)
    assert ended.code == 75, ended.err
    assert ended.err.count("\ngradients travel by NCCL 2.28.3\n") == 1
    assert "error[E806] rank 0 on " in ended.err
    assert "nothing from rank 1 on " in ended.err and "go on with: gradcli resume " in ended.err


@pytest.mark.parametrize(
    ("device", "nccl", "variables", "why"),
    [
        ("cuda", False, {}, "NCCL cannot be loaded on all ranks"),
        ("cuda", True, {"GRADCLI_NCCL": "0"}, "GRADCLI_NCCL=0 on all ranks"),
        ("cuda:0", True, {}, "rank 0 on .* and rank 1 on .* share a GPU"),
    ],
)
def test_the_host_is_chosen_in_one_line(
    tmp_path: Path, device: str, nccl: bool, variables: dict[str, str], why: str
) -> None:
    words = ("--max-steps", "1")
    with training(tmp_path, 2, *words, device=device, nccl=nccl, **variables) as job:
        ended = job.end(60)
    assert ended.code in (0, 6), ended.err
    (way,) = re.findall("^gradients travel (.*)$", ended.err, re.MULTILINE)
    assert re.fullmatch(f"through host memory: {why}", way)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"STANDIN_CUDA_DEVICES": "1"}, r"rank 0 on {}: \S+ has 2 ranks and 1 GPU \(cuda\)"),
        (
            {"STANDIN_CUDA_LAST_NAME": "another"},
            r"rank 1 on {} computes on cuda:1 \(another\), rank 0 on {} on cuda \(stand-in ",
        ),
    ],
)
def test_ranks_need_gpus_of_their_own_and_of_one_kind(
    tmp_path: Path, variables: dict[str, str], says: str
) -> None:
    with training(tmp_path, 2, **variables) as job:
        ended = job.end(60)
    assert ended.code == 4, ended.err
    assert re.search(rf"error\[E803\] {says.replace('{}', PLACE)}", ended.err), ended.err
    assert not list(tmp_path.glob("penguins/*"))
