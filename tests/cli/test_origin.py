"""What computed a run: recorded, chosen by --isa, and named on resume where it changed."""

from __future__ import annotations

import json
import random
import re
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from points import Ended, gradcli, only_run

from gradcli.config import build
from gradcli.config.trained import load_run
from gradcli.engine.device import cpu
from gradcli.train import origin
from gradcli.train.directory import find_checkpoint
from gradcli.train.origin import group_of

__all__ = ["gradcli"]

USABLE = cpu.usable_isas()
CONFIGS = {
    "text": """\
data: {name: text, file: words, context: 16}
model: [embed: 32, positions, transformer: {heads: 4}, linear: $data.vocab]
optim: {name: adam, lr: 0.003}
""",
    "lstm": """\
data: {name: text, file: words, context: 16}
model: [embed: 32, lstm: 40, layer_norm, gelu, linear: $data.vocab]
optim: {name: sgd, lr: 0.5, momentum: 0.9}
""",
    "images": """\
data: {name: idx, images: images, labels: labels}
model: [conv: {out: 16, kernel: 3}, batch_norm, silu, max_pool: 2, dropout: 0.1, flatten, linear: 4]
optim: {name: adamw, lr: 0.003}
""",
}


def write_config(name: str, precision: str) -> None:
    drawn = random.Random(1)
    Path("words").write_text("".join(drawn.choices(["the cat ", "a dog ", "runs. "], k=400)))
    head = bytes([0, 0, 8, 3]) + struct.pack(">3I", 48, 12, 12)
    Path("images").write_bytes(head + drawn.randbytes(48 * 144))
    Path("labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 48]) + bytes(range(4)) * 12)
    train = f"train: {{steps: 15, batch: 8, clip: 1.0, precision: {precision}}}\n"
    Path("c.yaml").write_text(
        f"gradcli: 1\nname: bits\n{CONFIGS[name]}loss: cross_entropy\n{train}"
    )


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
@pytest.mark.parametrize("name", CONFIGS)
def test_instruction_sets_of_one_group_give_the_same_bits(gradcli, name: str, precision) -> None:
    write_config(name, precision)
    bits: dict[str, set[str]] = {}
    for isa in USABLE:
        ended = gradcli("train", "c.yaml", "--isa", isa, "--device", "cpu", "--json")
        assert ended.code == 0, ended.err
        bits.setdefault(group_of(isa, precision), set()).add(ended.json["weights_sha256"])
    assert all(len(each) == 1 for each in bits.values())
    if name == "text":  # where roundings differ in this one, groups differ
        assert len(set().union(*bits.values())) == len(bits)


def test_the_groups_are_what_was_measured() -> None:
    group = {p: [group_of(i, p) for i in cpu.INSTRUCTION_SETS[:3]] for p in ("float32", "bf16")}
    assert group == {"float32": ["avx2"] * 3, "bf16": ["avx512bf16", "avx2", "avx2"]}
    assert len({group_of(isa, "float32") for isa in ("avx2", "neon", "baseline")}) == 3


def test_the_choice_is_recorded_and_ends_with_the_command(gradcli) -> None:
    before = cpu.isa()
    assert gradcli("train", "dots.yaml", "--isa", "baseline", "--max-steps", "1").code == 0
    assert cpu.isa() == before
    recorded = find_checkpoint(only_run(), "last")[1].meta.origin
    assert recorded == json.loads((only_run() / "manifest.json").read_text())["origin"]
    assert (recorded["isa"], recorded["device"]) == ("baseline", "cpu")
    assert recorded["group"] == group_of("baseline", "float32")
    assert (recorded["source"], recorded["flags"]) == (origin.BUILD.source, origin.BUILD.flags)
    assert recorded["commit"] == origin.gradcli_commit()


def test_eval_takes_an_instruction_set(gradcli, monkeypatch) -> None:
    gradcli("train", "dots.yaml")
    chosen: list[str] = []
    monkeypatch.setattr("gradcli.cli.options.compute_on", lambda *_: chosen.append(cpu.isa()))
    for isa in USABLE:
        assert gradcli("eval", "last", "--isa", isa).code == 0
    assert chosen == list(USABLE)


needs_choice = pytest.mark.skipif(len(USABLE) < 2, reason="this machine has one instruction set")


@needs_choice
def test_another_group_is_named_with_the_way_to_the_same_bits(gradcli) -> None:
    whole = gradcli("train", "dots.yaml", "--isa", "baseline", "--json").json
    for count, options in enumerate([(), ("--isa", "baseline")]):
        gradcli("train", "dots.yaml", "--isa", "baseline", "--max-steps", "4")
        ended = gradcli("resume", "last", *options, "--device", "cpu")
        assert ended.code == 0
        note = (
            f"warning: the steps so far were computed by baseline, now {USABLE[0]}: the bits are "
            "others than those of an uninterrupted run; resume with --isa baseline for the same "
            "bits\n"
        )
        assert (note in ended.err) == (count == 0)
    assert f"weights sha256 {whole['weights_sha256']}" in ended.out
    assert "computed by" not in ended.err


def stopped(gradcli: Callable[..., Ended], *options: str) -> None:
    assert gradcli("train", "dots.yaml", "--max-steps", "4", "--device", "cpu", *options).code == 0


@needs_choice
def test_a_machine_without_that_group_says_what_it_has(gradcli, monkeypatch) -> None:
    stopped(gradcli)
    monkeypatch.setattr(cpu, "INSTRUCTION_SETS", ("baseline",))
    ended = gradcli("resume", "last", "--isa", "baseline", "--device", "cpu")
    assert "this machine cannot give the same bits (it has baseline)" in ended.err


@pytest.mark.skipif("avx512" not in USABLE, reason="needs two instruction sets of one group")
def test_another_instruction_set_of_the_group_is_not_named(gradcli) -> None:
    stopped(gradcli, "--isa", "avx512")
    ended = gradcli("resume", "last", "--isa", "avx2", "--device", "cpu")
    assert (ended.code, "computed by" in ended.err) == (0, False)


@pytest.mark.skipif("avx512bf16" not in USABLE, reason="needs a group of bf16 alone")
def test_a_fork_to_another_precision_is_no_other_computer(gradcli) -> None:
    stopped(gradcli, "--isa", "avx512bf16")
    arguments = ("-s", "train.precision=bf16", "--device", "cpu", "--isa")
    assert "so far were computed" not in gradcli("resume", "last", *arguments, "avx512bf16").err
    stopped(gradcli, "--isa", "avx2")
    ended = gradcli("resume", "last", *arguments, "avx512bf16")
    assert "computed by avx2, now avx512bf16: the bits are others" in ended.err
    assert "resume with --isa avx2 for the same bits" in ended.err


def test_another_build_is_named(gradcli, monkeypatch) -> None:
    stopped(gradcli)
    compiler = origin.BUILD.compiler
    other = replace(origin.BUILD, compiler="gcc 1.2.3", source="ab")
    monkeypatch.setattr(origin, "BUILD", other)
    ended = gradcli("resume", "last", "--device", "cpu")
    (line,) = (line for line in ended.err.splitlines() if "computed by" in line)
    assert f"computed by {compiler}, now gcc 1.2.3; from csrc " in line
    assert line.endswith(", now ab: the bits may be others than those of an uninterrupted run")


@needs_choice
def test_another_group_and_build_are_one_sentence(gradcli, monkeypatch) -> None:
    stopped(gradcli)
    flags = f"{origin.BUILD.flags} -O9"
    monkeypatch.setattr(origin, "BUILD", replace(origin.BUILD, flags=flags))
    ended = gradcli("resume", "last", "--isa", "baseline", "--device", "cpu")
    (line,) = (line for line in ended.err.splitlines() if "computed by" in line)
    assert re.search(r"by \w+, now baseline; with fewer flags, now -O9: the bits are others", line)
    assert "--isa" not in line


def test_odd_texts_in_a_checkpoint_are_only_shown(gradcli) -> None:
    stopped(gradcli)
    job = build(load_run(only_run()))
    for odd in ({"group": 3}, {"device": ["\x1b[2J"], "isa": None}, {"isa": "x" * 10**6}):
        (note,) = origin.changes(odd, job)
        assert len(note) < 1000
        assert note.isprintable()
    assert origin.changes({}, job) == []


def test_the_commit_is_that_of_the_checkout_alone(tmp_path: Path, monkeypatch) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True)

    def commit(package: Path) -> str | None:
        monkeypatch.setattr(origin, "PACKAGE", package)
        return origin.gradcli_commit.__wrapped__()

    (tmp_path / "gradcli").mkdir()
    (tmp_path / "file").write_text("1")
    assert commit(tmp_path / "gradcli") is None
    git("init", "-q")
    git("add", "file")
    git("commit", "-qm", "one")
    clean = commit(tmp_path / "gradcli")
    assert clean and re.fullmatch("[0-9a-f]{40}", clean)
    (tmp_path / "file").write_text("2")
    assert commit(tmp_path / "gradcli") == f"{clean}-dirty"
    assert commit(tmp_path / "venv" / "site-packages" / "gradcli") is None


def test_a_gpu_is_a_group_of_its_own(gradcli) -> None:
    stopped(gradcli)
    job = build(load_run(only_run()))
    here = origin.origin_of(job)
    weights = [SimpleNamespace(device="cuda:1")]
    on_gpu = replace(job, model=SimpleNamespace(parameters=lambda: iter(weights)))
    there = origin.origin_of(on_gpu)
    assert (there["device"], there["group"]) == ("cuda", "cuda")
    assert there["source"] != here["source"]
    (note,) = origin.changes(here, on_gpu)
    assert f"by {cpu.isa()}, now cuda: the bits are" in note
    assert note.endswith(f"resume with --device cpu --isa {cpu.isa()} for the same bits")
    (note,) = origin.changes(there, job)
    assert note.endswith("resume with --device cuda for the same bits")
