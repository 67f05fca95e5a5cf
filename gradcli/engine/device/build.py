"""Builds csrc/ into the extension `gradcli.engine.device._cpu` through cffi, in API mode.

setup.py names `ffibuilder`; nothing imports this file at run time. With GRADCLI_DEVELOP=1 only the
best instruction set of this machine is built, and quickly. `python build.py --compile-commands`
writes what editors and clang-tidy ask for: how each file is compiled.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi

ROOT = Path(__file__).resolve().parents[3]
CSRC = Path("gradcli") / "csrc"

# No -ffast-math: it deletes NaN checks and flushes subnormals in the whole process. Contraction is
# off so that every instruction set rounds where the source says; the two -fno flags only drop errno
# and trap bookkeeping, without which exp and friends do not vectorise; -fwrapv: integers wrap.
FLAGS = [
    "-O3",
    "-std=c11",
    "-pthread",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-g0",  # debug information is most of the library's size
]


def declarations() -> str:
    """The text of call.h, which is plain C declarations, without its guard."""
    lines = (ROOT / CSRC / "call.h").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def every_source() -> list[str]:
    """All C files, relative to the project."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / CSRC / "cpu").rglob("*.c"))


def sources() -> list[str]:
    """Those that are compiled: all, or in a development build those of its instruction sets."""
    builds = CSRC / "cpu" / "builds"
    sets = developed()
    return [
        name
        for name in every_source()
        if not sets or builds not in Path(name).parents or Path(name).parent.name in sets
    ]


# What an instruction set needs of an x86 processor, as Linux calls it; best first.
_AVX512 = ("avx512f", "avx512vl", "avx512dq", "avx512bw", "fma")
NEEDS = {"avx512bf16": (*_AVX512, "avx512_bf16"), "avx512": _AVX512, "avx2": ("avx2", "fma")}


def developed() -> tuple[str, ...]:
    """The folders of builds/ that a development build compiles; none where this is none."""
    if os.environ.get("GRADCLI_DEVELOP", "0") in ("", "0"):
        return ()
    machine = platform.machine().lower()
    if machine in ("arm64", "aarch64"):
        return ("neon",)
    features = _features() if machine in ("x86_64", "amd64") else set()
    best = next((name for name, needs in NEEDS.items() if features.issuperset(needs)), "baseline")
    return ("avx512bf16", "avx512") if best == "avx512bf16" else (best,)


def _features() -> set[str]:
    """What this x86 processor says that it has."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        return set(cpuinfo.read_text(encoding="utf-8").lower().split())
    names = ["machdep.cpu.features", "machdep.cpu.leaf7_features"]
    answer = subprocess.run(["sysctl", "-n", *names], capture_output=True, text=True, check=False)
    return set(answer.stdout.lower().split())


def flags() -> list[str]:
    """FLAGS, or those of a development build, which also tell tables.c what there is (GC_SETS)."""
    sets = developed()
    if not sets:
        return FLAGS
    plain = " ".join(f"SET({name})" for name in sets if name != "avx512bf16")
    pairs = "PAIRED(avx512bf16, avx512) " if "avx512bf16" in sets else ""
    quick = ["-O1" if flag == "-O3" else flag for flag in FLAGS]
    return [*quick, f"-DGC_SETS={pairs}{plain}"]


def headers() -> list[str]:
    """The CPU's headers, relative to the project: where one changes, all is compiled again."""
    own = (path for path in (ROOT / CSRC).rglob("*.h") if "gpu" not in path.parts)
    return sorted(str(path.relative_to(ROOT)) for path in own)


def source_sha256() -> str:
    """One hash of all these files and their names."""
    digest = hashlib.sha256()
    for name in sorted([*every_source(), *headers()]):
        content = (ROOT / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


# What the library says of how it was built: three lines. The compiler names itself.
BUILD = """
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif
static const char *gc_build(void) { return %s "\\n" COMPILER "\\n" %s; }
"""


def builder(options: Sequence[str], link: Sequence[str] = ()) -> cffi.FFI:
    """The extension, compiled with these flags; $CFLAGS comes on top."""
    ffi = cffi.FFI()
    ffi.cdef(declarations() + "const char *gc_build(void);")
    all_flags = " ".join([*options, *os.environ.get("CFLAGS", "").split()])
    ffi.set_source(
        "gradcli.engine.device._cpu",
        '#include <stdint.h>\n#include "call.h"\n'
        + BUILD % (json.dumps(source_sha256()), json.dumps(all_flags)),
        sources=sources(),
        depends=headers(),
        include_dirs=[str(CSRC)],
        extra_compile_args=list(options),
        extra_link_args=["-pthread", *link],
        libraries=["m"],
    )
    return ffi


ffibuilder = builder(flags())


def compile_commands() -> list[dict[str, Any]]:
    """The entries of compile_commands.json: each file by itself, the headers too."""
    command = ["cc", *FLAGS, f"-I{CSRC}", "-c"]
    return [
        {"directory": str(ROOT), "file": name, "arguments": [*command, name]}
        for name in [*every_source(), *headers()]
    ]


if __name__ == "__main__":
    if sys.argv[1:] != ["--compile-commands"]:
        sys.exit("usage: build.py --compile-commands")
    text = json.dumps(compile_commands(), indent=1)
    (ROOT / "compile_commands.json").write_text(text + "\n", encoding="utf-8")
