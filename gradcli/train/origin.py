"""What computed a checkpoint: instruction set, build of the kernels, version of gradcli."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import __version__
from gradcli.data.files import path_text
from gradcli.devices import kind_of
from gradcli.engine.device import cpu
from gradcli.engine.device.kernels import BUILD
from gradcli.train import git_folder

if TYPE_CHECKING:
    from gradcli.train.job import Job, Precision

PACKAGE = Path(__file__).parents[1]
# Instruction sets of x86-64 with the bits of avx2, by precision; tf32 is float32 on a CPU.
LIKE_AVX2: Mapping[str, tuple[str, ...]] = {
    "float32": ("avx512bf16", "avx512", "avx2"),
    "tf32": ("avx512bf16", "avx512", "avx2"),
    "bf16": ("avx512", "avx2"),  # avx512bf16 adds products in pairs
}
LONGEST, DIGITS = 60, 12  # letters of a value, and of a hash, in a sentence


def group_of(isa: str, precision: Precision) -> str:
    """The name of the instruction sets that give the same bits as this one, with one build."""
    if isa in LIKE_AVX2[precision]:
        return "avx2"
    return isa if isa != "baseline" else f"baseline {platform.machine().lower()}"


def origin_of(job: Job) -> dict[str, str | None]:
    """What computes this job, as texts; None for what is unknown.

    `group` names all that give the same bits: instruction sets of a CPU, or the kind of GPU.
    `source`, `compiler` and `flags` describe the build of the kernels.
    """
    device = kind_of(next((parameter.device for parameter in job.model.parameters()), "cpu"))
    on_cpu = device == "cpu"
    build = asdict(BUILD) if on_cpu else {**asdict(BUILD), "source": _with_gpu(BUILD.source)}
    return {
        "device": device,
        "isa": cpu.isa(),
        "group": group_of(cpu.isa(), job.settings.precision) if on_cpu else device,
        **build,
        "gradcli": __version__,
        "commit": gradcli_commit(),
    }


@cache
def _with_gpu(source: str) -> str:
    """One hash of the CPU's kernels and of the text of the GPUs', which is compiled when used."""
    digest = hashlib.sha256(source.encode())
    for path in sorted((PACKAGE / "csrc" / "gpu").rglob("*.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def gradcli_commit() -> str | None:
    """The commit of gradcli itself, "-dirty" behind it where files differ; None if installed."""
    return git_folder.commit(PACKAGE.parent)


def changes(theirs: Mapping[str, Any], job: Job) -> list[str]:
    """A warning if a checkpoint's machine or build may give other bits than this one.

    `theirs` is the checkpoint's origin, empty in checkpoints of older versions.
    """
    ours = origin_of(job)
    other_group = bool(theirs) and _group(theirs, job) != ours["group"]
    was, now = _computer(theirs), _computer(ours)
    differences = [f"{was}, now {now}"] if other_group else []
    differences += _other_build(theirs, ours) if theirs else []
    if not differences:
        return []
    verb = "are" if other_group else "may be"
    cure = f"; {_cure(theirs, ours, job)}" if other_group and len(differences) == 1 else ""
    return [
        f"warning: the steps so far were computed by {'; '.join(differences)}: the bits {verb} "
        f"others than those of an uninterrupted run{cure}"
    ]


def _group(theirs: Mapping[str, Any], job: Job) -> object:
    """The group of a checkpoint's machine at the job's precision, which a fork may change."""
    isa = theirs.get("isa")
    if theirs.get("device") == "cpu" and isa in LIKE_AVX2["float32"]:
        return group_of(str(isa), job.settings.precision)
    return theirs.get("group")


def _other_build(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """The differences between two builds of the kernels; of flags, those of only one build."""
    was, now = (origin.get("compiler") for origin in (theirs, ours))
    if was != now:
        yield f"{_brief(was)}, now {_brief(now)}"
    was, now = (str(origin.get("flags")).split() for origin in (theirs, ours))
    if was != now:
        only = [" ".join(f for f in a if f not in b) for a, b in ((was, now), (now, was))]
        yield f"with {_brief(only[0] or 'fewer flags')}, now {_brief(only[1] or 'fewer flags')}"
    was, now = (origin.get("source") for origin in (theirs, ours))
    # On a GPU its kernels count too.
    if was != now and theirs.get("device") == ours["device"]:
        yield f"from csrc {_brief(was, DIGITS)}, now {_brief(now, DIGITS)}"


def _cure(theirs: Mapping[str, Any], ours: Mapping[str, Any], job: Job) -> str:
    """How to resume with the same bits, if this machine can."""
    device = theirs.get("device")
    if device != "cpu":
        return f"resume with --device {_brief(device)} for the same bits"
    usable = cpu.usable_isas()
    group = _group(theirs, job)
    alike = [n for n in usable if group_of(n, job.settings.precision) == group]
    if not alike:
        return f"this machine cannot give the same bits (it has {', '.join(usable)})"
    isa = theirs["isa"] if theirs.get("isa") in alike else alike[0]
    option = "" if ours["device"] == "cpu" else "--device cpu "
    return f"resume with {option}--isa {isa} for the same bits"


def _computer(origin: Mapping[str, Any]) -> str:
    return _brief(origin.get("isa" if origin.get("device") == "cpu" else "device"))


def _brief(value: object, longest: int = LONGEST) -> str:
    text = path_text(str(value))
    return text if len(text) <= longest else f"{text[:longest]}..."
